// sim_copy_shape.c: copies of rows and planes: between any two of host memory, device memory and arrays.
#include "driver/sim/memory/sim_arrays.h"
#include "driver/sim/streams/sim_copies.h"

// One side of a copy as addresses.
struct side {
    uint64_t first, pitch, plane;
};

static bool offset_of(const struct vr_cu_memcpy_side *side, const struct side *at, uint64_t *offset) {
    uint64_t planes, rows;
    if (!vr_mul_u64(side->z, at->plane, &planes) || !vr_mul_u64(side->y, at->pitch, &rows)) return false;
    return vr_add_u64(side->x_bytes, rows, offset) && vr_add_u64(*offset, planes, offset);
}

static vr_cu_result resolve_array(const struct vr_sim *sim, const struct vr_cu_memcpy_side *side, const struct vr_cu_memcpy3d *copy,
                                  struct side *at) {
    const struct vr_sim_array *array = vr_sim_array_find(sim, side->array);
    if (array == NULL) return VR_CU_INVALID_HANDLE;
    const uint64_t width = array->shape.width * array->element_bytes;
    const uint64_t height = array->shape.height == 0 ? 1 : array->shape.height, depth = array->shape.depth == 0 ? 1 : array->shape.depth;
    if (side->x_bytes > width || copy->width_bytes > width - side->x_bytes || side->y > height || copy->rows > height - side->y ||
        side->z > depth || copy->planes > depth - side->z)
        return VR_CU_INVALID_VALUE;
    *at = (struct side){array->address, array->pitch_bytes, array->plane_bytes};
    return VR_CU_SUCCESS;
}

static vr_cu_result resolve(const struct vr_sim *sim, const struct vr_cu_memcpy_side *side, const struct vr_cu_memcpy3d *copy,
                            struct side *at) {
    const bool host = side->memory_type == VR_CU_MEMORY_TYPE_HOST;
    const bool pitched = copy->rows > 1 || copy->planes > 1;
    uint64_t offset;
    vr_cu_result result = VR_CU_SUCCESS;
    *at = (struct side){.first = host ? side->host : side->device, .pitch = side->pitch_bytes};
    if (side->memory_type == VR_CU_MEMORY_TYPE_ARRAY)
        result = resolve_array(sim, side, copy, at);
    else if (!host && side->memory_type != VR_CU_MEMORY_TYPE_DEVICE && side->memory_type != VR_CU_MEMORY_TYPE_UNIFIED)
        result = VR_CU_INVALID_VALUE;
    else if ((pitched && at->pitch < copy->width_bytes) || (copy->planes > 1 && side->rows < copy->rows) ||
             !vr_mul_u64(at->pitch, side->rows, &at->plane))
        result = VR_CU_INVALID_VALUE;
    if (result != VR_CU_SUCCESS) return result;
    return offset_of(side, at, &offset) && vr_add_u64(at->first, offset, &at->first) ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

vr_cu_result vr_sim_shaped_work(const struct vr_sim *sim, const struct vr_cu_memcpy3d *copy, struct vr_sim_work *work) {
    struct side to, from;
    vr_cu_result result = resolve(sim, &copy->to, copy, &to);
    if (result == VR_CU_SUCCESS) result = resolve(sim, &copy->from, copy, &from);
    if (result != VR_CU_SUCCESS) return result;
    *work = vr_sim_copy_work(to.first, from.first, copy->width_bytes);
    work->rows = copy->rows;
    work->planes = copy->planes;
    work->to_pitch = to.pitch;
    work->from_pitch = from.pitch;
    work->to_plane = to.plane;
    work->from_plane = from.plane;
    return VR_CU_SUCCESS;
}

// --- the rows of the table ------------------------------------------------------------------------------------------

static vr_cu_result copy_async(struct vr_sim *sim, const struct vr_cu_memcpy3d *copy, uint64_t stream) {
    struct vr_sim_stream *queue;
    if (copy == NULL) return VR_CU_INVALID_VALUE;
    vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS || copy->width_bytes == 0 || copy->rows == 0 || copy->planes == 0) return result;
    struct vr_sim_work work;
    result = vr_sim_shaped_work(sim, copy, &work);
    if (result != VR_CU_SUCCESS) return result;
    work.device = vr_sim_context_find(sim, queue->context)->device;
    return vr_sim_work_is_valid(sim, &work) ? vr_sim_submit(sim, queue, &work) : VR_CU_INVALID_VALUE;
}

static vr_cu_result copy_and_wait(struct vr_sim *sim, const struct vr_cu_memcpy3d *copy) {
    vr_cu_result result = vr_sim_unsafe(sim);
    if (result == VR_CU_SUCCESS) result = copy_async(sim, copy, 0);
    return result == VR_CU_SUCCESS ? vr_sim_stream_synchronize(sim, 0) : result;
}

static struct vr_cu_memcpy_side flat_side(const struct vr_cu_memcpy2d_side *side) {
    return (struct vr_cu_memcpy_side){.x_bytes = side->x_bytes,
                                      .y = side->y,
                                      .memory_type = side->memory_type,
                                      .host = side->host,
                                      .device = side->device,
                                      .array = side->array,
                                      .pitch_bytes = side->pitch_bytes};
}

// One plane. A pitch of 0 is that of rows without gaps.
static struct vr_cu_memcpy3d flat_copy(const struct vr_cu_memcpy2d *copy) {
    struct vr_cu_memcpy3d made = {
        .from = flat_side(&copy->from), .to = flat_side(&copy->to), .width_bytes = copy->width_bytes, .rows = copy->rows, .planes = 1};
    if (made.from.pitch_bytes == 0) made.from.pitch_bytes = copy->from.x_bytes + copy->width_bytes;
    if (made.to.pitch_bytes == 0) made.to.pitch_bytes = copy->to.x_bytes + copy->width_bytes;
    return made;
}

vr_cu_result vr_sim_memcpy_2d(struct vr_sim *sim, const struct vr_cu_memcpy2d *copy) {
    if (copy == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_cu_memcpy3d made = flat_copy(copy);
    return copy_and_wait(sim, &made);
}

vr_cu_result vr_sim_memcpy_2d_unaligned(struct vr_sim *sim, const struct vr_cu_memcpy2d *copy) { return vr_sim_memcpy_2d(sim, copy); }

vr_cu_result vr_sim_memcpy_2d_async(struct vr_sim *sim, const struct vr_cu_memcpy2d *copy, uint64_t stream) {
    if (copy == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_cu_memcpy3d made = flat_copy(copy);
    return copy_async(sim, &made, stream);
}

vr_cu_result vr_sim_memcpy_3d(struct vr_sim *sim, const struct vr_cu_memcpy3d *copy) { return copy_and_wait(sim, copy); }

vr_cu_result vr_sim_memcpy_3d_async(struct vr_sim *sim, const struct vr_cu_memcpy3d *copy, uint64_t stream) {
    return copy_async(sim, copy, stream);
}

// Contexts are the only thing that a copy between peers names besides; addresses say it, too.
static bool are_contexts(const struct vr_sim *sim, uint64_t one, uint64_t other) {
    return vr_sim_context_find(sim, one) != NULL && vr_sim_context_find(sim, other) != NULL;
}

vr_cu_result vr_sim_memcpy_3d_peer_async(struct vr_sim *sim, const struct vr_cu_memcpy3d_peer *copy, uint64_t stream) {
    if (copy == NULL) return VR_CU_INVALID_VALUE;
    if (!are_contexts(sim, copy->copy.from.reserved, copy->copy.to.reserved)) return VR_CU_INVALID_CONTEXT;
    return copy_async(sim, &copy->copy, stream);
}

vr_cu_result vr_sim_memcpy_3d_peer(struct vr_sim *sim, const struct vr_cu_memcpy3d_peer *copy) {
    if (copy == NULL) return VR_CU_INVALID_VALUE;
    if (!are_contexts(sim, copy->copy.from.reserved, copy->copy.to.reserved)) return VR_CU_INVALID_CONTEXT;
    return copy_and_wait(sim, &copy->copy);
}

vr_cu_result vr_sim_memcpy_peer_async(struct vr_sim *sim, uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context,
                                      uint64_t size_bytes, uint64_t stream) {
    if (!are_contexts(sim, to_context, from_context)) return VR_CU_INVALID_CONTEXT;
    return vr_sim_memcpy_async(sim, to, from, size_bytes, stream);
}

vr_cu_result vr_sim_memcpy_peer(struct vr_sim *sim, uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context,
                                uint64_t size_bytes) {
    vr_cu_result result = vr_sim_unsafe(sim);
    if (result == VR_CU_SUCCESS) result = vr_sim_memcpy_peer_async(sim, to, to_context, from, from_context, size_bytes, 0);
    return result == VR_CU_SUCCESS ? vr_sim_stream_synchronize(sim, 0) : result;
}

// --- between arrays and lines of bytes ------------------------------------------------------------------------------

// [offset, offset + size) of an array's first row.
static vr_cu_result row_of(const struct vr_sim *sim, uint64_t array, uint64_t offset, uint64_t size_bytes, uint64_t *address) {
    const struct vr_sim_array *found = vr_sim_array_find(sim, array);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    const uint64_t width = found->shape.width * found->element_bytes;
    if (offset > width || size_bytes > width - offset) return VR_CU_INVALID_VALUE;
    *address = found->address + offset;
    return VR_CU_SUCCESS;
}

static vr_cu_result copy_line(struct vr_sim *sim, uint64_t to, uint64_t from, uint64_t size_bytes) {
    vr_cu_result result = vr_sim_unsafe(sim);
    if (result == VR_CU_SUCCESS) result = vr_sim_memcpy_async(sim, to, from, size_bytes, 0);
    return result == VR_CU_SUCCESS ? vr_sim_stream_synchronize(sim, 0) : result;
}

vr_cu_result vr_sim_memcpy_atod(struct vr_sim *sim, uint64_t to, uint64_t array, uint64_t offset, uint64_t size_bytes) {
    uint64_t address;
    const vr_cu_result result = row_of(sim, array, offset, size_bytes, &address);
    return result == VR_CU_SUCCESS ? copy_line(sim, to, address, size_bytes) : result;
}

vr_cu_result vr_sim_memcpy_dtoa(struct vr_sim *sim, uint64_t array, uint64_t offset, uint64_t from, uint64_t size_bytes) {
    uint64_t address;
    const vr_cu_result result = row_of(sim, array, offset, size_bytes, &address);
    return result == VR_CU_SUCCESS ? copy_line(sim, address, from, size_bytes) : result;
}

vr_cu_result vr_sim_memcpy_atoh(struct vr_sim *sim, void *to, uint64_t array, uint64_t offset, uint64_t size_bytes) {
    return vr_sim_memcpy_atod(sim, (uint64_t)(uintptr_t)to, array, offset, size_bytes);
}

vr_cu_result vr_sim_memcpy_htoa(struct vr_sim *sim, uint64_t array, uint64_t offset, const void *from, uint64_t size_bytes) {
    return vr_sim_memcpy_dtoa(sim, array, offset, (uint64_t)(uintptr_t)from, size_bytes);
}

vr_cu_result vr_sim_memcpy_atoa(struct vr_sim *sim, uint64_t to, uint64_t to_offset, uint64_t from, uint64_t from_offset,
                                uint64_t size_bytes) {
    uint64_t address;
    const vr_cu_result result = row_of(sim, from, from_offset, size_bytes, &address);
    return result == VR_CU_SUCCESS ? vr_sim_memcpy_dtoa(sim, to, to_offset, address, size_bytes) : result;
}

vr_cu_result vr_sim_memcpy_htoa_async(struct vr_sim *sim, uint64_t array, uint64_t offset, const void *from, uint64_t size_bytes,
                                      uint64_t stream) {
    uint64_t address;
    const vr_cu_result result = row_of(sim, array, offset, size_bytes, &address);
    return result == VR_CU_SUCCESS ? vr_sim_memcpy_async(sim, address, (uint64_t)(uintptr_t)from, size_bytes, stream) : result;
}

vr_cu_result vr_sim_memcpy_atoh_async(struct vr_sim *sim, void *to, uint64_t array, uint64_t offset, uint64_t size_bytes, uint64_t stream) {
    uint64_t address;
    const vr_cu_result result = row_of(sim, array, offset, size_bytes, &address);
    return result == VR_CU_SUCCESS ? vr_sim_memcpy_async(sim, (uint64_t)(uintptr_t)to, address, size_bytes, stream) : result;
}
