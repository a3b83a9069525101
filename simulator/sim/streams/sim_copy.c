// sim_copy.c: copies and sets. The stream gets a piece of work that takes no time.
#include "sim/graphs/sim_graphs.h"
#include "sim/streams/sim_callbacks.h"

static vr_cu_result submit_on(struct vr_sim *sim, struct vr_sim_stream *queue, struct vr_sim_work *work) {
    work->device = vr_sim_context_find(sim, queue->context)->device;
    if (!vr_sim_work_is_valid(sim, work)) return VR_CU_INVALID_VALUE;
    // A copy finds its way from any device to any other; a set is work of one device, which must reach the memory.
    const struct vr_sim_range *space = vr_sim_ranges_holding(&sim->spaces, work->to);
    const bool set =
        work->type == VR_CU_GRAPH_NODE_TYPE_MEMSET && space != NULL && (space->kind == VR_SIM_ALLOCATION || space->kind == VR_SIM_IMPORT);
    if (set && !vr_sim_reaches(sim, work->device, space)) return VR_CU_INVALID_VALUE;
    return vr_sim_submit(sim, queue, work);
}

// Which sides of a copy are addresses of devices by the function's name, so that no memory is meant that only the host reaches.
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
    return result == VR_CU_SUCCESS ? vr_sim_stream_synchronize(sim, 0) : result;
}

// A copy that is over when the call is; write: the device's side is `to`. The other is host memory, wherever it lies.
static vr_cu_result copy_and_wait(struct vr_sim *sim, struct vr_sim_work *work, bool write) {
    struct vr_sim_stream *queue;
    vr_cu_result result = vr_sim_stream_for_work(sim, 0, &queue);
    if (result == VR_CU_SUCCESS) result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS || work->width_bytes == 0) return result;
    work->device = vr_sim_context_find(sim, queue->context)->device;
    work->to_device = write;
    work->from_device = !write;
    if (!vr_sim_work_is_valid(sim, work)) return VR_CU_INVALID_VALUE;
    result = vr_sim_submit(sim, queue, work);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_wait_stream(sim, queue);
    vr_sim_callback_wait(sim, queue->callback); // which may have been left the copy
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
    return vr_sim_memset_d8_async(sim, address, value, size_bytes, 0);
}
