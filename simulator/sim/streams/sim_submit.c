// sim_submit.c: work on its way into a stream, and the rows of the tables that give a stream host functions.
#include "sim/graphs/sim_graphs.h"
#include "sim/streams/sim_callbacks.h"

// Room for what vr_sim_work_run() may leave to the thread of host functions.
static vr_cu_result make_queue_room(struct vr_sim *sim, const struct vr_sim_stream *stream, const struct vr_sim_callback *callback) {
    const bool calls = callback->stream_function != NULL || callback->work.function != NULL;
    return calls || !vr_sim_callback_done(sim, stream->callback) ? vr_sim_callbacks_reserve(sim, 1) : VR_CU_SUCCESS;
}

static vr_cu_result give_callback(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_callback *callback) {
    vr_cu_result result = make_queue_room(sim, stream, callback);
    if (result == VR_CU_SUCCESS) result = vr_sim_enqueue(sim, stream, vr_sim_work_cost_ns(sim, &callback->work), NULL);
    return result == VR_CU_SUCCESS ? vr_sim_work_run(sim, stream, callback) : result;
}

vr_cu_result vr_sim_submit(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_work *work) {
    if (stream->capture != 0) return vr_sim_capture_add(sim, stream, work);
    const struct vr_sim_callback callback = {.work = *work};
    return give_callback(sim, stream, &callback);
}

vr_cu_result vr_sim_launch_host_func(struct vr_sim *sim, uint64_t stream, vr_cu_host_function *function, void *argument) {
    if (function == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *queue;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    const struct vr_sim_work work = {.type = VR_CU_GRAPH_NODE_TYPE_HOST, .function = function, .argument = argument};
    return result == VR_CU_SUCCESS ? vr_sim_submit(sim, queue, &work) : result;
}

// Whether the thread spins or blocks before the function is the driver's business.
vr_cu_result vr_sim_launch_host_func_v2(struct vr_sim *sim, uint64_t stream, vr_cu_host_function *function, void *argument, unsigned mode) {
    return mode > 1 ? VR_CU_INVALID_VALUE : vr_sim_launch_host_func(sim, stream, function, argument);
}

// Captures know no such functions.
vr_cu_result vr_sim_stream_add_callback(struct vr_sim *sim, uint64_t stream, vr_cu_stream_callback *function, void *argument,
                                        unsigned flags) {
    if (function == NULL || flags != 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *queue;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS) return result;
    if (queue->capture != 0) {
        vr_sim_capture_find(sim, queue->capture)->invalidated = true;
        return VR_CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    const struct vr_sim_callback callback = {
        .work = {.type = VR_CU_GRAPH_NODE_TYPE_HOST, .argument = argument}, .stream_function = function, .stream = stream};
    return give_callback(sim, queue, &callback);
}
