// sim_context_event.c: events of whole contexts, plain and green.
#include "sim/graphs/sim_graphs.h"

static bool is_one(const struct vr_sim_stream *stream, uint64_t context, uint64_t green) {
    return stream->slot.live && stream->context == context && (green == 0 || stream->green == green);
}

// No stream of theirs may capture; STREAM_CAPTURE_UNSUPPORTED invalidates the captures.
static vr_cu_result check_context_event(struct vr_sim *sim, uint64_t context, const struct vr_sim_event *event) {
    if (event == NULL) return VR_CU_INVALID_HANDLE;
    if (event->capture != 0) return VR_CU_CAPTURED_EVENT;
    return vr_sim_context_for_waiting(sim, context);
}

// The one whose work ends last: nothing of it is put off by waiting for the others. The legacy stream where there is none.
static struct vr_sim_stream *last_of(const struct vr_sim *sim, uint64_t context, uint64_t green) {
    struct vr_sim_stream *last = NULL;
    for (uint32_t i = 0; i < sim->streams.used; i++) {
        struct vr_sim_stream *stream = vr_sim_stream_at(sim, i);
        if (is_one(stream, context, green) && (last == NULL || stream->tail_ns > last->tail_ns)) last = stream;
    }
    return last != NULL ? last : vr_sim_stream_at(sim, vr_sim_context_find(sim, context)->legacy);
}

vr_cu_result vr_sim_context_record(struct vr_sim *sim, uint64_t context, uint64_t green, uint64_t event) {
    struct vr_sim_event *found = vr_sim_slots_find(&sim->events, event);
    vr_cu_result result = check_context_event(sim, context, found);
    if (result == VR_CU_SUCCESS && found->context != context) result = VR_CU_INVALID_HANDLE;
    if (result != VR_CU_SUCCESS) return result;
    struct vr_sim_stream *last = last_of(sim, context, green);
    for (uint32_t i = 0; i < sim->streams.used && result == VR_CU_SUCCESS; i++) {
        const struct vr_sim_stream *stream = vr_sim_stream_at(sim, i);
        if (!is_one(stream, context, green) || stream == last || stream->work == 0) continue;
        const struct vr_sim_event end = {.recorded = true,
                                         .stream = i,
                                         .work = stream->work,
                                         .complete_ns = stream->tail_ns,
                                         .serial = stream->serial,
                                         .callback = stream->callback,
                                         .hold = stream->hold};
        result = vr_sim_enqueue_wait(sim, last, &end);
    }
    uint64_t end_ns;
    if (result == VR_CU_SUCCESS) result = vr_sim_enqueue(sim, last, 0, &end_ns);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_charge_record(sim, found->flags);
    vr_sim_event_set(sim, found, last, end_ns);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_context_wait(struct vr_sim *sim, uint64_t context, uint64_t green, uint64_t event) {
    const struct vr_sim_event *found = vr_sim_slots_find(&sim->events, event);
    vr_cu_result result = check_context_event(sim, context, found);
    for (uint32_t i = 0; i < sim->streams.used && result == VR_CU_SUCCESS && found->recorded; i++)
        if (is_one(vr_sim_stream_at(sim, i), context, green)) result = vr_sim_enqueue_wait(sim, vr_sim_stream_at(sim, i), found);
    return result;
}

static bool is_active(const struct vr_sim *sim, uint64_t context) {
    const struct vr_sim_context *found = vr_sim_context_find(sim, context);
    return found != NULL && !found->inactive;
}

vr_cu_result vr_sim_ctx_record_event(struct vr_sim *sim, uint64_t context, uint64_t event) {
    return is_active(sim, context) ? vr_sim_context_record(sim, context, 0, event) : VR_CU_INVALID_CONTEXT;
}

vr_cu_result vr_sim_ctx_wait_event(struct vr_sim *sim, uint64_t context, uint64_t event) {
    return is_active(sim, context) ? vr_sim_context_wait(sim, context, 0, event) : VR_CU_INVALID_CONTEXT;
}
