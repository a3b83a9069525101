// Events of streams and of whole contexts.
#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_pools.h"
#include "sim/streams/sim_callbacks.h"
#include "sim/streams/sim_checking.h"

// If kernels take time, two events are never at the same time: a GPU also needs time for an event, and programs divide by the times that
// they measure (Inductor's benchmarks). The value is NVIDIA's resolution of cuEventElapsedTime().
#define EVENT_RESOLUTION_NS 500

// ---- Events of whole contexts and green contexts.

static bool is_one(const struct vr_sim_stream *stream, uint64_t context, uint64_t green) {
    return stream->slot.live && stream->context == context && (green == 0 || stream->green == green);
}

// Refuses if a stream of the context captures. STREAM_CAPTURE_UNSUPPORTED invalidates the captures.
static vr_cu_result check_context_event(struct vr_sim *sim, uint64_t context, const struct vr_sim_event *event) {
    if (event == NULL) return VR_CU_INVALID_HANDLE;
    if (event->capture != 0) return VR_CU_CAPTURED_EVENT;
    return vr_sim_context_for_waiting(sim, context);
}

// Returns the stream whose work ends last, because waiting for the others does not delay it. Returns the legacy stream if there is no
// other.
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
        struct vr_sim_event end = {.recorded = true,
                                   .stream = i,
                                   .work = stream->work,
                                   .complete_ns = stream->tail_ns,
                                   .serial = stream->serial,
                                   .callback = stream->callback,
                                   .hold = stream->hold};
        if (VR_UNLIKELY(sim->checking != NULL)) vr_check_mark(sim->checking->check, stream->serial, &end.point);
        result = vr_sim_enqueue_wait(sim, last, &end);
        vr_check_point_drop(end.point);
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

// ---- Events. An event stores when the work before its record ends and, for manual completion, the number of that work.

static struct vr_sim_event *event_of(struct vr_sim *sim, uint64_t event) {
    struct vr_sim_event *found = vr_sim_slots_find(&sim->events, event);
    if (VR_UNLIKELY(sim->checking != NULL) && found == NULL)
        vr_check_used_handle(sim->checking->check, event, vr_sim_checking_place(sim, "a call with a destroyed event"));
    return found;
}

static bool is_complete(const struct vr_sim *sim, const struct vr_sim_event *event) {
    if (!event->recorded) return true;
    if (event->callback > sim->callbacks.done || (event->hold.width != 0 && !vr_sim_hold_is_over(sim, &event->hold))) return false;
    if (sim->options.manual_completion) return vr_sim_work_complete(sim, event->stream, event->work);
    return event->complete_ns <= sim->clock_ns;
}

static void end_event(struct vr_sim *sim, struct vr_sim_event *event) {
    vr_sim_event_forget(sim, event);
    vr_sim_nodes_free(&event->frontier);
    if (event->ticket != 0) vr_sim_ticket_end(sim, event->ticket, 0, 0);
    vr_sim_slots_give(&sim->events, vr_sim_slots_index(&sim->events, event));
}

void vr_sim_end_events(struct vr_sim *sim, uint64_t context) {
    for (uint32_t i = 0; i < sim->events.used; i++) {
        struct vr_sim_event *event = (struct vr_sim_event *)(void *)vr_sim_slots_item(&sim->events, i);
        if (event->slot.live && event->context == context) end_event(sim, event);
    }
}

vr_cu_result vr_sim_event_create(struct vr_sim *sim, uint64_t *event, unsigned flags) {
    const unsigned known = VR_CU_EVENT_BLOCKING_SYNC | VR_CU_EVENT_DISABLE_TIMING | VR_CU_EVENT_INTERPROCESS;
    if (event == NULL || (flags & ~known) != 0) return VR_CU_INVALID_VALUE;
    bool timed = (flags & VR_CU_EVENT_DISABLE_TIMING) == 0;
    if ((flags & VR_CU_EVENT_INTERPROCESS) != 0 && timed) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    uint32_t index;
    if (vr_sim_slots_take(&sim->events, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_event *made = (struct vr_sim_event *)(void *)vr_sim_slots_item(&sim->events, index);
    made->context = vr_sim_context_handle(sim, context);
    made->flags = flags;
    *event = vr_sim_slots_handle(&sim->events, index);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_event_destroy(struct vr_sim *sim, uint64_t event) {
    struct vr_sim_event *found = event_of(sim, event);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    if (VR_UNLIKELY(sim->checking != NULL))
        vr_check_destroyed(sim->checking->check, event, vr_sim_checking_place(sim, "the destruction of the event"));
    end_event(sim, found);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_event_record(struct vr_sim *sim, uint64_t event, uint64_t stream) {
    return vr_sim_event_record_with_flags(sim, event, stream, 0);
}

vr_cu_result vr_sim_event_record_with_flags(struct vr_sim *sim, uint64_t event, uint64_t stream, unsigned flags) {
    struct vr_sim_event *found = event_of(sim, event);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    struct vr_sim_stream *queue;
    vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS) return result;
    if (queue->context != found->context) return VR_CU_INVALID_HANDLE;
    const bool external = flags == VR_CU_EVENT_RECORD_EXTERNAL;
    if (flags != 0 && !(external && queue->capture != 0)) return VR_CU_INVALID_VALUE;
    vr_sim_charge_record(sim, found->flags);
    if (queue->capture != 0) return vr_sim_capture_record(sim, queue, event, flags);
    uint64_t end_ns;
    result = vr_sim_enqueue(sim, queue, 0, &end_ns);
    if (result == VR_CU_SUCCESS) vr_sim_event_set(sim, found, queue, end_ns);
    return result;
}

vr_cu_result vr_sim_event_query(struct vr_sim *sim, uint64_t event) {
    const struct vr_sim_event *found = event_of(sim, event);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    const vr_cu_result result = vr_sim_event_for_waiting(sim, found);
    if (result != VR_CU_SUCCESS) return result;
    if (found->recorded && found->callback > sim->callbacks.done) {
        vr_sim_callback_grace(sim, found->callback);
        found = event_of(sim, event);
        if (found == NULL) return VR_CU_INVALID_HANDLE;
    }
    if (!is_complete(sim, found)) return VR_CU_NOT_READY;
    if (VR_UNLIKELY(sim->checking != NULL)) vr_sim_checking_host_wait(sim, found);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_event_synchronize(struct vr_sim *sim, uint64_t event) {
    const struct vr_sim_event *found = event_of(sim, event);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    const vr_cu_result result = vr_sim_event_for_waiting(sim, found);
    if (result != VR_CU_SUCCESS) return result;
    if (found->recorded && (found->callback > sim->callbacks.done || found->hold.width != 0)) {
        const uint64_t callback = found->callback;
        vr_sim_hold_wait(sim, &found->hold);
        vr_sim_callback_wait(sim, callback);
        found = event_of(sim, event);
        if (found == NULL) return VR_CU_INVALID_HANDLE;
    }
    if (!is_complete(sim, found)) vr_sim_wait_work(sim, found->stream, found->work, found->complete_ns);
    vr_sim_pools_synchronized(sim);
    if (VR_UNLIKELY(sim->checking != NULL)) vr_sim_checking_host_wait(sim, found);
    return VR_CU_SUCCESS;
}

// Waiting for an event that was never recorded has no effect.
vr_cu_result vr_sim_stream_wait_event(struct vr_sim *sim, uint64_t stream, uint64_t event, unsigned flags) {
    const struct vr_sim_event *found = event_of(sim, event);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    struct vr_sim_stream *queue;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS) return result;
    const bool external = flags == VR_CU_EVENT_WAIT_EXTERNAL;
    if (flags != 0 && !(external && queue->capture != 0)) return VR_CU_INVALID_VALUE;
    if (queue->capture != 0 || found->capture != 0) return vr_sim_capture_wait(sim, queue, event, flags);
    if (VR_UNLIKELY(sim->checking != NULL) && found->key != 0) vr_check_wait_shared(sim->checking->check, queue->serial, found->key);
    return found->recorded ? vr_sim_enqueue_wait(sim, queue, found) : VR_CU_SUCCESS;
}

vr_cu_result vr_sim_event_elapsed_ms(struct vr_sim *sim, float *elapsed_ms, uint64_t start, uint64_t end) {
    const struct vr_sim_event *from = event_of(sim, start), *to = event_of(sim, end);
    if (elapsed_ms == NULL) return VR_CU_INVALID_VALUE;
    if (from == NULL || to == NULL) return VR_CU_INVALID_HANDLE;
    if (from->capture != 0 || to->capture != 0) return VR_CU_CAPTURED_EVENT;
    if (!from->recorded || !to->recorded) return VR_CU_INVALID_HANDLE;
    if (vr_sim_context_find(sim, from->context)->device != vr_sim_context_find(sim, to->context)->device) return VR_CU_INVALID_HANDLE;
    if (((from->flags | to->flags) & VR_CU_EVENT_DISABLE_TIMING) != 0) return VR_CU_INVALID_HANDLE;
    if (!is_complete(sim, from) || !is_complete(sim, to)) return VR_CU_NOT_READY;
    double elapsed_ns = (double)to->complete_ns - (double)from->complete_ns;
    if (elapsed_ns == 0 && start != end && sim->options.kernel_ns != 0) elapsed_ns = EVENT_RESOLUTION_NS;
    *elapsed_ms = (float)(elapsed_ns / 1e6);
    return VR_CU_SUCCESS;
}

// The second version returns the time if it is known, and NOT_READY like the first.
vr_cu_result vr_sim_event_elapsed_ms_v2(struct vr_sim *sim, float *elapsed_ms, uint64_t start, uint64_t end) {
    return vr_sim_event_elapsed_ms(sim, elapsed_ms, start, end);
}
