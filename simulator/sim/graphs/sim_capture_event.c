// sim_capture_event.c: events that carry captures from stream to stream.
#include "sim/graphs/sim_graphs.h"

static struct vr_sim_event *event_of(const struct vr_sim *sim, uint64_t event) { return vr_sim_slots_find(&sim->events, event); }

static void invalidate(struct vr_sim_capture *capture) {
    if (capture != NULL) capture->invalidated = true;
}

static vr_cu_result add_event_node(struct vr_sim *sim, struct vr_sim_stream *stream, int type, uint64_t event) {
    const struct vr_sim_work work = {.type = type, .event = event};
    return vr_sim_capture_add(sim, stream, &work);
}

vr_cu_result vr_sim_capture_record(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t event, unsigned flags) {
    if (flags == VR_CU_EVENT_RECORD_EXTERNAL) return add_event_node(sim, stream, VR_CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
    struct vr_sim_event *found = event_of(sim, event);
    struct vr_sim_nodes frontier = {0};
    if (!vr_sim_nodes_copy(&frontier, &stream->frontier)) return VR_CU_OUT_OF_MEMORY;
    vr_sim_event_forget(sim, found);
    vr_sim_nodes_free(&found->frontier);
    found->frontier = frontier;
    found->capture = stream->capture;
    return VR_CU_SUCCESS;
}

// A stream that captures nothing takes part from now on in the capture that the event was recorded in.
static vr_cu_result join_capture(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_event *event) {
    struct vr_sim_capture *capture = vr_sim_capture_find(sim, event->capture);
    if (capture == NULL) return VR_CU_CAPTURED_EVENT; // it is over
    if (capture->invalidated) return VR_CU_INVALID_VALUE;
    if (stream->kind == VR_SIM_STREAM_LEGACY) {
        invalidate(capture);
        return VR_CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (!vr_sim_nodes_copy(&stream->frontier, &event->frontier)) return VR_CU_OUT_OF_MEMORY;
    stream->capture = event->capture;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_capture_wait(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t event, unsigned flags) {
    const struct vr_sim_event *found = event_of(sim, event);
    if (flags == VR_CU_EVENT_WAIT_EXTERNAL) return add_event_node(sim, stream, VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
    if (stream->capture == 0) return join_capture(sim, stream, found);
    if (found->capture == 0 && !found->recorded) return VR_CU_SUCCESS;
    struct vr_sim_capture *own = vr_sim_capture_find(sim, stream->capture);
    if (found->capture != stream->capture) {
        struct vr_sim_capture *other = vr_sim_capture_find(sim, found->capture);
        invalidate(own);
        invalidate(other);
        return other != NULL ? VR_CU_STREAM_CAPTURE_MERGE : VR_CU_STREAM_CAPTURE_ISOLATION;
    }
    const bool merged = vr_sim_nodes_merge(sim, &stream->frontier, found->frontier.items, found->frontier.count);
    return merged ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}

vr_cu_result vr_sim_event_for_waiting(struct vr_sim *sim, const struct vr_sim_event *event) {
    if (event->capture == 0) return vr_sim_unsafe(sim);
    invalidate(vr_sim_capture_find(sim, event->capture));
    return VR_CU_CAPTURED_EVENT;
}
