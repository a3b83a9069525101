// Copies of bytes, of 2D and 3D shapes, between devices, and in batches.
#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_arrays.h"
#include "sim/memory/sim_managed.h"
#include "sim/streams/sim_callbacks.h"
#include "sim/streams/sim_checking.h"

// ---- Copies in two and three dimensions, to and from arrays and between devices; sets of elements and of rows. Each is one piece of work.

// --- submission -----------------------------------------------------------------------------------------------------

static bool is_valid(struct vr_sim *sim, const struct vr_sim_stream *queue, const struct vr_sim_work *work) {
    const bool valid = vr_sim_work_is_valid(sim, work);
    if (VR_UNLIKELY(sim->checking != NULL) && !valid) vr_sim_checking_refused(sim, queue, work);
    return valid;
}

static vr_cu_result submit_copy(struct vr_sim *sim, struct vr_sim_work *work, uint64_t stream) {
    struct vr_sim_stream *queue;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS || work->width_bytes == 0 || work->rows == 0 || work->planes == 0) return result;
    work->device = vr_sim_context_find(sim, queue->context)->device;
    return is_valid(sim, queue, work) ? vr_sim_submit(sim, queue, work) : VR_CU_INVALID_VALUE;
}

// Waits for a synchronous copy. One on the device may return before it is complete, so the host knows nothing more: other streams still
// have to wait for it. The simulated copy is complete.
static vr_cu_result wait_for_copy(struct vr_sim *sim, uint64_t to, uint64_t from) {
    const bool on_device = vr_sim_ranges_holding(&sim->spaces, to) != NULL && vr_sim_ranges_holding(&sim->spaces, from) != NULL;
    if (VR_LIKELY(sim->checking == NULL) || !on_device) return vr_sim_stream_synchronize(sim, 0);
    vr_check_pause(sim->checking->check, true);
    const vr_cu_result result = vr_sim_stream_synchronize(sim, 0);
    vr_check_pause(sim->checking->check, sim->stack == VR_SIM_STACK_HIDDEN);
    return result;
}

// Submits a synchronous copy.
static vr_cu_result submit_and_wait(struct vr_sim *sim, struct vr_sim_work *work) {
    vr_cu_result result = vr_sim_unsafe(sim);
    if (result == VR_CU_SUCCESS) result = submit_copy(sim, work, 0);
    return result == VR_CU_SUCCESS ? wait_for_copy(sim, work->to, work->from) : result;
}

// --- shapes ---------------------------------------------------------------------------------------------------------

struct side {
    uint64_t address, pitch_bytes, plane_bytes;
};

static vr_cu_result side_of_array(struct vr_sim *sim, const struct vr_cu_memcpy_side *from, const struct vr_cu_memcpy3d *copy,
                                  struct side *side) {
    const struct vr_sim_array *array = vr_sim_array_find(sim, from->array);
    if (array == NULL) return VR_CU_INVALID_HANDLE;
    if (from->x_bytes > array->row_bytes || copy->width_bytes > array->row_bytes - from->x_bytes) return VR_CU_INVALID_VALUE;
    if (from->y > array->rows || copy->rows > array->rows - from->y) return VR_CU_INVALID_VALUE;
    if (from->z > array->planes || copy->planes > array->planes - from->z) return VR_CU_INVALID_VALUE;
    side->pitch_bytes = array->pitch_bytes;
    side->plane_bytes = array->pitch_bytes * array->rows;
    side->address = array->address + from->x_bytes + from->y * side->pitch_bytes + from->z * side->plane_bytes;
    return VR_CU_SUCCESS;
}

static vr_cu_result side_of_copy(struct vr_sim *sim, const struct vr_cu_memcpy_side *from, const struct vr_cu_memcpy3d *copy,
                                 struct side *side) {
    const bool host = from->memory_type == VR_CU_MEMORY_TYPE_HOST;
    if (from->memory_type == VR_CU_MEMORY_TYPE_ARRAY) return side_of_array(sim, from, copy, side);
    if (!host && from->memory_type != VR_CU_MEMORY_TYPE_DEVICE && from->memory_type != VR_CU_MEMORY_TYPE_UNIFIED)
        return VR_CU_INVALID_VALUE;
    const bool pitched = copy->rows > 1 || copy->planes > 1 || from->y > 0 || from->z > 0;
    if (pitched && from->pitch_bytes < copy->width_bytes) return VR_CU_INVALID_VALUE;
    if ((copy->planes > 1 || from->z > 0) && from->rows < copy->rows) return VR_CU_INVALID_VALUE;
    uint64_t planes, rows;
    side->pitch_bytes = from->pitch_bytes;
    bool fits = vr_mul_u64(from->pitch_bytes, from->rows, &side->plane_bytes) && vr_mul_u64(from->z, side->plane_bytes, &planes) &&
                vr_mul_u64(from->y, from->pitch_bytes, &rows);
    fits = fits && vr_add_u64(host ? from->host : from->device, from->x_bytes, &side->address) &&
           vr_add_u64(side->address, rows, &side->address);
    return fits && vr_add_u64(side->address, planes, &side->address) ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

vr_cu_result vr_sim_copy_shape(struct vr_sim *sim, const struct vr_cu_memcpy3d *copy, struct vr_sim_work *work) {
    struct side to, from;
    if (copy == NULL) return VR_CU_INVALID_VALUE;
    vr_cu_result result = side_of_copy(sim, &copy->to, copy, &to);
    if (result == VR_CU_SUCCESS) result = side_of_copy(sim, &copy->from, copy, &from);
    if (result != VR_CU_SUCCESS) return result;
    *work = vr_sim_copy_work(to.address, from.address, copy->width_bytes);
    work->rows = copy->rows;
    work->planes = copy->planes;
    work->to_pitch = to.pitch_bytes;
    work->to_plane = to.plane_bytes;
    work->from_pitch = from.pitch_bytes;
    work->from_plane = from.plane_bytes;
    work->to_device = copy->to.memory_type == VR_CU_MEMORY_TYPE_DEVICE;
    work->from_device = copy->from.memory_type == VR_CU_MEMORY_TYPE_DEVICE;
    return VR_CU_SUCCESS;
}

static vr_cu_result copy_shape(struct vr_sim *sim, const struct vr_cu_memcpy3d *copy, bool wait, uint64_t stream) {
    struct vr_sim_work work;
    const vr_cu_result result = vr_sim_copy_shape(sim, copy, &work);
    if (result != VR_CU_SUCCESS) return result;
    return wait ? submit_and_wait(sim, &work) : submit_copy(sim, &work, stream);
}

vr_cu_result vr_sim_memcpy_3d(struct vr_sim *sim, const struct vr_cu_memcpy3d *copy) { return copy_shape(sim, copy, true, 0); }
vr_cu_result vr_sim_memcpy_3d_async(struct vr_sim *sim, const struct vr_cu_memcpy3d *copy, uint64_t stream) {
    return copy_shape(sim, copy, false, stream);
}

// Copies between devices. The reserved fields of the 3D struct hold the contexts here. The addresses determine the location.
static vr_cu_result copy_peer(struct vr_sim *sim, const struct vr_cu_memcpy3d *copy, bool wait, uint64_t stream) {
    if (copy == NULL) return VR_CU_INVALID_VALUE;
    const bool known = vr_sim_context_find(sim, copy->to.reserved) != NULL && vr_sim_context_find(sim, copy->from.reserved) != NULL;
    return known ? copy_shape(sim, copy, wait, stream) : VR_CU_INVALID_CONTEXT;
}

vr_cu_result vr_sim_memcpy_3d_peer(struct vr_sim *sim, const struct vr_cu_memcpy3d *copy) { return copy_peer(sim, copy, true, 0); }
vr_cu_result vr_sim_memcpy_3d_peer_async(struct vr_sim *sim, const struct vr_cu_memcpy3d *copy, uint64_t stream) {
    return copy_peer(sim, copy, false, stream);
}

static vr_cu_result copy_line_peer(struct vr_sim *sim, uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context,
                                   uint64_t size_bytes, bool wait, uint64_t stream) {
    if (vr_sim_context_find(sim, to_context) == NULL || vr_sim_context_find(sim, from_context) == NULL) return VR_CU_INVALID_CONTEXT;
    struct vr_sim_work work = vr_sim_copy_work(to, from, size_bytes);
    work.to_device = work.from_device = true;
    return wait ? submit_and_wait(sim, &work) : submit_copy(sim, &work, stream);
}

vr_cu_result vr_sim_memcpy_peer(struct vr_sim *sim, uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context,
                                uint64_t size_bytes) {
    return copy_line_peer(sim, to, to_context, from, from_context, size_bytes, true, 0);
}

vr_cu_result vr_sim_memcpy_peer_async(struct vr_sim *sim, uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context,
                                      uint64_t size_bytes, uint64_t stream) {
    return copy_line_peer(sim, to, to_context, from, from_context, size_bytes, false, stream);
}

static struct vr_cu_memcpy_side side_2d(const struct vr_cu_memcpy2d_side *side) {
    return (struct vr_cu_memcpy_side){.x_bytes = side->x_bytes,
                                      .y = side->y,
                                      .memory_type = side->memory_type,
                                      .host = side->host,
                                      .device = side->device,
                                      .array = side->array,
                                      .pitch_bytes = side->pitch_bytes};
}

static vr_cu_result copy_2d(struct vr_sim *sim, const struct vr_cu_memcpy2d *copy, bool wait, uint64_t stream) {
    if (copy == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_cu_memcpy3d whole = {
        .from = side_2d(&copy->from), .to = side_2d(&copy->to), .width_bytes = copy->width_bytes, .rows = copy->rows, .planes = 1};
    return copy_shape(sim, &whole, wait, stream);
}

vr_cu_result vr_sim_memcpy_2d(struct vr_sim *sim, const struct vr_cu_memcpy2d *copy) { return copy_2d(sim, copy, true, 0); }
vr_cu_result vr_sim_memcpy_2d_unaligned(struct vr_sim *sim, const struct vr_cu_memcpy2d *copy) { return copy_2d(sim, copy, true, 0); }
vr_cu_result vr_sim_memcpy_2d_async(struct vr_sim *sim, const struct vr_cu_memcpy2d *copy, uint64_t stream) {
    return copy_2d(sim, copy, false, stream);
}

// --- the first row of an array --------------------------------------------------------------------------------------

static struct vr_cu_memcpy_side array_side(uint64_t array, uint64_t offset_bytes) {
    return (struct vr_cu_memcpy_side){.memory_type = VR_CU_MEMORY_TYPE_ARRAY, .array = array, .x_bytes = offset_bytes};
}

static struct vr_cu_memcpy_side device_side(uint64_t address) {
    return (struct vr_cu_memcpy_side){.memory_type = VR_CU_MEMORY_TYPE_DEVICE, .device = address};
}

static struct vr_cu_memcpy_side host_side(const void *host) {
    return (struct vr_cu_memcpy_side){.memory_type = VR_CU_MEMORY_TYPE_HOST, .host = (uint64_t)(uintptr_t)host};
}

static struct vr_cu_memcpy3d line_copy(struct vr_cu_memcpy_side to, struct vr_cu_memcpy_side from, uint64_t size_bytes) {
    return (struct vr_cu_memcpy3d){.to = to, .from = from, .width_bytes = size_bytes, .rows = 1, .planes = 1};
}

vr_cu_result vr_sim_memcpy_dtoa(struct vr_sim *sim, uint64_t array, uint64_t offset_bytes, uint64_t from, uint64_t size_bytes) {
    const struct vr_cu_memcpy3d copy = line_copy(array_side(array, offset_bytes), device_side(from), size_bytes);
    return copy_shape(sim, &copy, true, 0);
}

vr_cu_result vr_sim_memcpy_atod(struct vr_sim *sim, uint64_t to, uint64_t array, uint64_t offset_bytes, uint64_t size_bytes) {
    const struct vr_cu_memcpy3d copy = line_copy(device_side(to), array_side(array, offset_bytes), size_bytes);
    return copy_shape(sim, &copy, true, 0);
}

vr_cu_result vr_sim_memcpy_htoa(struct vr_sim *sim, uint64_t array, uint64_t offset_bytes, const void *from, uint64_t size_bytes) {
    const struct vr_cu_memcpy3d copy = line_copy(array_side(array, offset_bytes), host_side(from), size_bytes);
    return copy_shape(sim, &copy, true, 0);
}

vr_cu_result vr_sim_memcpy_atoh(struct vr_sim *sim, void *to, uint64_t array, uint64_t offset_bytes, uint64_t size_bytes) {
    const struct vr_cu_memcpy3d copy = line_copy(host_side(to), array_side(array, offset_bytes), size_bytes);
    return copy_shape(sim, &copy, true, 0);
}

vr_cu_result vr_sim_memcpy_atoa(struct vr_sim *sim, uint64_t to, uint64_t to_offset, uint64_t from, uint64_t from_offset,
                                uint64_t size_bytes) {
    const struct vr_cu_memcpy3d copy = line_copy(array_side(to, to_offset), array_side(from, from_offset), size_bytes);
    return copy_shape(sim, &copy, true, 0);
}

vr_cu_result vr_sim_memcpy_htoa_async(struct vr_sim *sim, uint64_t array, uint64_t offset_bytes, const void *from, uint64_t size_bytes,
                                      uint64_t stream) {
    const struct vr_cu_memcpy3d copy = line_copy(array_side(array, offset_bytes), host_side(from), size_bytes);
    return copy_shape(sim, &copy, false, stream);
}

vr_cu_result vr_sim_memcpy_atoh_async(struct vr_sim *sim, void *to, uint64_t array, uint64_t offset_bytes, uint64_t size_bytes,
                                      uint64_t stream) {
    const struct vr_cu_memcpy3d copy = line_copy(host_side(to), array_side(array, offset_bytes), size_bytes);
    return copy_shape(sim, &copy, false, stream);
}

// --- sets -----------------------------------------------------------------------------------------------------------

struct set {
    uint64_t address, pitch_bytes, width, rows; // width in elements
    uint32_t value, element_bytes;
};

static vr_cu_result set_elements(struct vr_sim *sim, const struct set *set, uint64_t stream) {
    struct vr_sim_work work = vr_sim_set_work(set->address, 0, 0);
    if (set->address % set->element_bytes != 0 || !vr_mul_u64(set->width, set->element_bytes, &work.width_bytes))
        return VR_CU_INVALID_VALUE;
    if (set->rows > 1 && (set->pitch_bytes < work.width_bytes || set->pitch_bytes % set->element_bytes != 0)) return VR_CU_INVALID_VALUE;
    work.value = set->value;
    work.element_bytes = set->element_bytes;
    work.rows = set->rows;
    work.to_pitch = set->pitch_bytes;
    return submit_copy(sim, &work, stream);
}

vr_cu_result vr_sim_memset_d16_async(struct vr_sim *sim, uint64_t address, uint16_t value, uint64_t count, uint64_t stream) {
    return set_elements(sim, &(const struct set){address, 0, count, 1, value, 2}, stream);
}
vr_cu_result vr_sim_memset_d32_async(struct vr_sim *sim, uint64_t address, uint32_t value, uint64_t count, uint64_t stream) {
    return set_elements(sim, &(const struct set){address, 0, count, 1, value, 4}, stream);
}
// Waits for a set of pinned or managed memory, which is complete when the call returns. One of device memory need not be.
static vr_cu_result wait_for_set(struct vr_sim *sim, uint64_t address, vr_cu_result result) {
    if (result != VR_CU_SUCCESS || vr_sim_ranges_holding(&sim->hosts, address) == NULL) return result;
    return vr_sim_stream_synchronize(sim, 0);
}

vr_cu_result vr_sim_memset_d16(struct vr_sim *sim, uint64_t address, uint16_t value, uint64_t count) {
    return wait_for_set(sim, address, vr_sim_memset_d16_async(sim, address, value, count, 0));
}
vr_cu_result vr_sim_memset_d32(struct vr_sim *sim, uint64_t address, uint32_t value, uint64_t count) {
    return wait_for_set(sim, address, vr_sim_memset_d32_async(sim, address, value, count, 0));
}

vr_cu_result vr_sim_memset_d2d8_async(struct vr_sim *sim, uint64_t address, uint64_t pitch_bytes, uint8_t value, uint64_t width,
                                      uint64_t rows, uint64_t stream) {
    return set_elements(sim, &(const struct set){address, pitch_bytes, width, rows, value, 1}, stream);
}
vr_cu_result vr_sim_memset_d2d16_async(struct vr_sim *sim, uint64_t address, uint64_t pitch_bytes, uint16_t value, uint64_t width,
                                       uint64_t rows, uint64_t stream) {
    return set_elements(sim, &(const struct set){address, pitch_bytes, width, rows, value, 2}, stream);
}
vr_cu_result vr_sim_memset_d2d32_async(struct vr_sim *sim, uint64_t address, uint64_t pitch_bytes, uint32_t value, uint64_t width,
                                       uint64_t rows, uint64_t stream) {
    return set_elements(sim, &(const struct set){address, pitch_bytes, width, rows, value, 4}, stream);
}
vr_cu_result vr_sim_memset_d2d8(struct vr_sim *sim, uint64_t address, uint64_t pitch_bytes, uint8_t value, uint64_t width, uint64_t rows) {
    return wait_for_set(sim, address, vr_sim_memset_d2d8_async(sim, address, pitch_bytes, value, width, rows, 0));
}
vr_cu_result vr_sim_memset_d2d16(struct vr_sim *sim, uint64_t address, uint64_t pitch_bytes, uint16_t value, uint64_t width,
                                 uint64_t rows) {
    return wait_for_set(sim, address, vr_sim_memset_d2d16_async(sim, address, pitch_bytes, value, width, rows, 0));
}
vr_cu_result vr_sim_memset_d2d32(struct vr_sim *sim, uint64_t address, uint64_t pitch_bytes, uint32_t value, uint64_t width,
                                 uint64_t rows) {
    return wait_for_set(sim, address, vr_sim_memset_d2d32_async(sim, address, pitch_bytes, value, width, rows, 0));
}

// ---- Copies and sets that take no time in the stream.

static vr_cu_result submit_on(struct vr_sim *sim, struct vr_sim_stream *queue, struct vr_sim_work *work) {
    work->device = vr_sim_context_find(sim, queue->context)->device;
    if (!is_valid(sim, queue, work)) return VR_CU_INVALID_VALUE;
    // Any device can copy to any other, but a set is done by one device, which must have access to the memory.
    const struct vr_sim_range *space = vr_sim_ranges_holding(&sim->spaces, work->to);
    const bool set =
        work->type == VR_CU_GRAPH_NODE_TYPE_MEMSET && space != NULL && (space->kind == VR_SIM_ALLOCATION || space->kind == VR_SIM_IMPORT);
    if (set && !vr_sim_reaches(sim, work->device, space)) return VR_CU_INVALID_VALUE;
    return vr_sim_submit(sim, queue, work);
}

// Submits an asynchronous copy. The function's name says which sides must be device addresses, not pageable host memory.
static vr_cu_result copy_async(struct vr_sim *sim, struct vr_sim_work work, bool to_device, bool from_device, uint64_t stream) {
    struct vr_sim_stream *queue;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS || work.width_bytes == 0) return result;
    work.to_device = to_device;
    work.from_device = from_device;
    return submit_on(sim, queue, &work);
}

vr_cu_result vr_sim_memcpy_async(struct vr_sim *sim, uint64_t to, uint64_t from, uint64_t size_bytes, uint64_t stream) {
    return copy_async(sim, vr_sim_copy_work(to, from, size_bytes), false, false, stream);
}

vr_cu_result vr_sim_memcpy_htod_async(struct vr_sim *sim, uint64_t to, const void *from, uint64_t size_bytes, uint64_t stream) {
    return copy_async(sim, vr_sim_copy_work(to, (uint64_t)(uintptr_t)from, size_bytes), true, false, stream);
}

vr_cu_result vr_sim_memcpy_dtoh_async(struct vr_sim *sim, void *to, uint64_t from, uint64_t size_bytes, uint64_t stream) {
    return copy_async(sim, vr_sim_copy_work((uint64_t)(uintptr_t)to, from, size_bytes), false, true, stream);
}

vr_cu_result vr_sim_memcpy_dtod_async(struct vr_sim *sim, uint64_t to, uint64_t from, uint64_t size_bytes, uint64_t stream) {
    return copy_async(sim, vr_sim_copy_work(to, from, size_bytes), true, true, stream);
}

vr_cu_result vr_sim_memcpy_dtod(struct vr_sim *sim, uint64_t to, uint64_t from, uint64_t size_bytes) {
    const vr_cu_result result = vr_sim_memcpy_dtod_async(sim, to, from, size_bytes, 0);
    return result == VR_CU_SUCCESS ? wait_for_copy(sim, to, from) : result;
}

// Submits a synchronous copy between a device and host memory of any kind. write: the device is the target.
static vr_cu_result copy_and_wait(struct vr_sim *sim, struct vr_sim_work *work, bool write) {
    struct vr_sim_stream *queue;
    vr_cu_result result = vr_sim_stream_for_work(sim, 0, &queue);
    if (result == VR_CU_SUCCESS) result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS || work->width_bytes == 0) return result;
    work->device = vr_sim_context_find(sim, queue->context)->device;
    work->to_device = write;
    work->from_device = !write;
    if (!is_valid(sim, queue, work)) return VR_CU_INVALID_VALUE;
    result = vr_sim_submit(sim, queue, work);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_wait_stream(sim, queue);
    vr_sim_callback_wait(sim, queue->callback); // the copy may have been left to that thread
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_memcpy_htod(struct vr_sim *sim, uint64_t to, const void *from, uint64_t size_bytes) {
    if (from == NULL && size_bytes != 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_work work = vr_sim_copy_work(to, (uint64_t)(uintptr_t)from, size_bytes);
    return copy_and_wait(sim, &work, true);
}

vr_cu_result vr_sim_memcpy_dtoh(struct vr_sim *sim, void *to, uint64_t from, uint64_t size_bytes) {
    if (to == NULL && size_bytes != 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_work work = vr_sim_copy_work((uint64_t)(uintptr_t)to, from, size_bytes);
    return copy_and_wait(sim, &work, false);
}

vr_cu_result vr_sim_memset_d8_async(struct vr_sim *sim, uint64_t address, uint8_t value, uint64_t size_bytes, uint64_t stream) {
    struct vr_sim_stream *queue;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS || size_bytes == 0) return result;
    struct vr_sim_work work = vr_sim_set_work(address, value, size_bytes);
    return submit_on(sim, queue, &work);
}

vr_cu_result vr_sim_memset_d8(struct vr_sim *sim, uint64_t address, uint8_t value, uint64_t size_bytes) {
    return wait_for_set(sim, address, vr_sim_memset_d8_async(sim, address, value, size_bytes, 0));
}

// ---- Batches of copies, prefetches or discards. They are done in order, although CUDA does not guarantee an order.

enum { NO_COPY_FAILED = -1, ORDERS = 3 };

// Batches need a created stream or the per-thread stream.
static bool is_for_batches(uint64_t stream) { return stream != 0 && stream != VR_CU_STREAM_LEGACY; }

// Returns whether first_of is a valid list of attribute entries. Entry i covers the copies from first_of[i] up to, but not including,
// first_of[i + 1]. The first index is 0, and each is larger than the one before.
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

// Gets the bytes of an element: if either side is an array, widths count elements.
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
                                          .pitch_bytes = fits ? length * element : 0, // 0 is less than any row, so the copy is refused
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

// Discards managed memory. Contents need not be kept then, but they are.
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
