// sim_copy_batch.c: many copies, prefetches or discards in one call. They are done in order; CUDA leaves their order open.
#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_arrays.h"
#include "sim/memory/sim_managed.h"

enum { NO_COPY_FAILED = -1, ORDERS = 3 };

// A batch goes to a stream of the program's, or to the thread's own.
static bool is_for_batches(uint64_t stream) { return stream != 0 && stream != VR_CU_STREAM_LEGACY; }

// Each entry of a list of attributes holds from its first copy to that of the next: the first is 0, and they rise.
static bool are_firsts(const uint64_t *first_of, uint64_t entries, uint64_t count) {
    if (first_of == NULL || entries == 0 || entries > count || first_of[0] != 0) return false;
    for (uint64_t i = 1; i < entries; i++)
        if (first_of[i] <= first_of[i - 1] || first_of[i] >= count) return false;
    return true;
}

static bool are_attributes(const struct vr_cu_memcpy_attributes *attributes, uint64_t count) {
    for (uint64_t i = 0; attributes != NULL && i < count; i++)
        if (attributes[i].access_order < 1 || attributes[i].access_order > ORDERS) return false;
    return attributes != NULL;
}

// --- copies ---------------------------------------------------------------------------------------------------------

vr_cu_result vr_sim_memcpy_batch_async(struct vr_sim *sim, const uint64_t *to, const uint64_t *from, const uint64_t *sizes, uint64_t count,
                                       const struct vr_cu_memcpy_attributes *attributes, const uint64_t *first_of, uint64_t attribute_count,
                                       uint64_t *failed, uint64_t stream) {
    if (failed != NULL) *failed = (uint64_t)(int64_t)NO_COPY_FAILED;
    if (to == NULL || from == NULL || sizes == NULL || count == 0 || !is_for_batches(stream)) return VR_CU_INVALID_VALUE;
    if (!are_firsts(first_of, attribute_count, count) || !are_attributes(attributes, attribute_count)) return VR_CU_INVALID_VALUE;
    for (uint64_t i = 0; i < count; i++) {
        const vr_cu_result result = sizes[i] == 0 ? VR_CU_INVALID_VALUE : vr_sim_memcpy_async(sim, to[i], from[i], sizes[i], stream);
        if (result != VR_CU_SUCCESS && failed != NULL) *failed = i;
        if (result != VR_CU_SUCCESS) return result;
    }
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_memcpy_batch_async_v2(struct vr_sim *sim, const uint64_t *to, const uint64_t *from, const uint64_t *sizes,
                                          uint64_t count, const struct vr_cu_memcpy_attributes *attributes, const uint64_t *first_of,
                                          uint64_t attribute_count, uint64_t stream) {
    return vr_sim_memcpy_batch_async(sim, to, from, sizes, count, attributes, first_of, attribute_count, NULL, stream);
}

vr_cu_result vr_sim_memcpy_with_attributes_async(struct vr_sim *sim, uint64_t to, uint64_t from, uint64_t size_bytes,
                                                 const struct vr_cu_memcpy_attributes *attributes, uint64_t stream) {
    return are_attributes(attributes, 1) ? vr_sim_memcpy_async(sim, to, from, size_bytes, stream) : VR_CU_INVALID_VALUE;
}

// Widths count elements where an array is on either side. *element: its bytes.
static vr_cu_result element_of(const struct vr_sim *sim, const struct vr_cu_memcpy3d_operand *operand, uint64_t *element) {
    enum { MEMORY = 1, ARRAY = 2 };
    if (operand->type != MEMORY && operand->type != ARRAY) return VR_CU_INVALID_VALUE;
    if (operand->type == MEMORY) return VR_CU_SUCCESS;
    const struct vr_sim_array *array = vr_sim_array_find(sim, operand->array.array);
    if (array == NULL) return VR_CU_INVALID_HANDLE;
    *element = array->row_bytes / array->descriptor.width;
    return VR_CU_SUCCESS;
}

static struct vr_cu_memcpy_side side_of_operand(const struct vr_cu_memcpy3d_operand *operand, const struct vr_cu_memcpy3d_batched *copy,
                                                uint64_t element) {
    enum { MEMORY = 1 };
    if (operand->type == MEMORY) {
        const uint64_t length = operand->memory.row_length == 0 ? copy->width : operand->memory.row_length;
        const uint64_t height = operand->memory.layer_height == 0 ? copy->height : operand->memory.layer_height;
        const bool fits = length <= VR_SIM_LIMIT / element;
        return (struct vr_cu_memcpy_side){.memory_type = VR_CU_MEMORY_TYPE_UNIFIED,
                                          .device = operand->memory.address,
                                          .pitch_bytes = fits ? length * element : 0, // no row fits into 0
                                          .rows = height};
    }
    return (struct vr_cu_memcpy_side){.memory_type = VR_CU_MEMORY_TYPE_ARRAY,
                                      .array = operand->array.array,
                                      .x_bytes = operand->array.x > VR_SIM_LIMIT / element ? VR_SIM_LIMIT : operand->array.x * element,
                                      .y = operand->array.y,
                                      .z = operand->array.z};
}

vr_cu_result vr_sim_memcpy_3d_with_attributes_async(struct vr_sim *sim, const struct vr_cu_memcpy3d_batched *copy, unsigned long long flags,
                                                    uint64_t stream) {
    uint64_t element = 1;
    if (copy == NULL || flags != 0 || copy->access_order < 1 || copy->access_order > ORDERS) return VR_CU_INVALID_VALUE;
    vr_cu_result result = element_of(sim, &copy->from, &element);
    if (result == VR_CU_SUCCESS) result = element_of(sim, &copy->to, &element);
    struct vr_cu_memcpy3d whole = {.rows = copy->height, .planes = copy->depth};
    if (result == VR_CU_SUCCESS && !vr_mul_u64(copy->width, element, &whole.width_bytes)) result = VR_CU_INVALID_VALUE;
    if (result != VR_CU_SUCCESS) return result;
    whole.from = side_of_operand(&copy->from, copy, element);
    whole.to = side_of_operand(&copy->to, copy, element);
    return vr_sim_memcpy_3d_async(sim, &whole, stream);
}

vr_cu_result vr_sim_memcpy_3d_batch_async(struct vr_sim *sim, uint64_t count, const struct vr_cu_memcpy3d_batched *copies, uint64_t *failed,
                                          unsigned long long flags, uint64_t stream) {
    if (failed != NULL) *failed = (uint64_t)(int64_t)NO_COPY_FAILED;
    if (count == 0 || copies == NULL || !is_for_batches(stream)) return VR_CU_INVALID_VALUE;
    for (uint64_t i = 0; i < count; i++) {
        const vr_cu_result result = vr_sim_memcpy_3d_with_attributes_async(sim, &copies[i], flags, stream);
        if (result != VR_CU_SUCCESS && failed != NULL) *failed = i;
        if (result != VR_CU_SUCCESS) return result;
    }
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_memcpy_3d_batch_async_v2(struct vr_sim *sim, uint64_t count, const struct vr_cu_memcpy3d_batched *copies,
                                             unsigned long long flags, uint64_t stream) {
    return vr_sim_memcpy_3d_batch_async(sim, count, copies, NULL, flags, stream);
}

// --- managed memory -------------------------------------------------------------------------------------------------

vr_cu_result vr_sim_mem_prefetch_batch_async(struct vr_sim *sim, const uint64_t *addresses, const uint64_t *sizes, uint64_t count,
                                             const struct vr_cu_location *locations, const uint64_t *first_of, uint64_t location_count,
                                             unsigned long long flags, uint64_t stream) {
    if (addresses == NULL || sizes == NULL || locations == NULL || count == 0 || flags != 0 || !is_for_batches(stream))
        return VR_CU_INVALID_VALUE;
    if (!are_firsts(first_of, location_count, count)) return VR_CU_INVALID_VALUE;
    uint64_t entry = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (entry + 1 < location_count && first_of[entry + 1] == i) entry++;
        const vr_cu_result result = vr_sim_mem_prefetch_async_v2(sim, addresses[i], sizes[i], locations[entry], 0, stream);
        if (result != VR_CU_SUCCESS) return result;
    }
    return VR_CU_SUCCESS;
}

// What is discarded need not be kept; it is, here.
vr_cu_result vr_sim_mem_discard_batch_async(struct vr_sim *sim, const uint64_t *addresses, const uint64_t *sizes, uint64_t count,
                                            unsigned long long flags, uint64_t stream) {
    struct vr_sim_stream *queue;
    if (addresses == NULL || sizes == NULL || count == 0 || flags != 0 || !is_for_batches(stream)) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS) return result;
    if (queue->capture != 0) return VR_CU_STREAM_CAPTURE_UNSUPPORTED;
    for (uint64_t i = 0; i < count; i++)
        if (!vr_sim_is_managed(sim, addresses[i], sizes[i])) return VR_CU_INVALID_VALUE;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_discard_and_prefetch_batch_async(struct vr_sim *sim, const uint64_t *addresses, const uint64_t *sizes,
                                                         uint64_t count, const struct vr_cu_location *locations, const uint64_t *first_of,
                                                         uint64_t location_count, unsigned long long flags, uint64_t stream) {
    const vr_cu_result result = vr_sim_mem_discard_batch_async(sim, addresses, sizes, count, flags, stream);
    if (result != VR_CU_SUCCESS) return result;
    return vr_sim_mem_prefetch_batch_async(sim, addresses, sizes, count, locations, first_of, location_count, flags, stream);
}
