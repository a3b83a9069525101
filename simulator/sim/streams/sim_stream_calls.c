// The calls of streams, and the attributes of streams.
#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_pools.h"
#include "sim/streams/sim_callbacks.h"

// ---- The rows of calls.def about streams, and the end of a context's streams. They know captures and pools; the queues of sim_stream.c do
// not.

void vr_sim_end_streams(struct vr_sim *sim, uint64_t context) {
    uint32_t legacy = vr_sim_context_find(sim, context)->legacy;
    for (size_t i = 0; i < sim->thread_count; i++) { // per-thread streams
        struct vr_sim_thread *thread = &sim->threads[i];
        for (size_t j = 0; j < thread->stream_count;) {
            if (thread->streams[j].context == context)
                thread->streams[j] = thread->streams[--thread->stream_count];
            else
                j++;
        }
    }
    for (uint32_t i = 0; i < sim->streams.used; i++) {
        struct vr_sim_stream *stream = vr_sim_stream_at(sim, i);
        if (!stream->slot.live || stream->context != context) continue;
        vr_sim_capture_leave(sim, stream);
        if (stream->user && stream->slot.named) sim->user_streams--;
        stream->slot.named = false;
        if (i != legacy) vr_sim_stream_collect(sim, i);
    }
    vr_sim_stream_collect(sim, legacy);
}

vr_cu_result vr_sim_stream_create(struct vr_sim *sim, uint64_t *stream, unsigned flags) {
    if (stream == NULL || (flags & ~(unsigned)VR_CU_STREAM_NON_BLOCKING) != 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    enum vr_sim_stream_kind kind = flags == 0 ? VR_SIM_STREAM_BLOCKING : VR_SIM_STREAM_NON_BLOCKING;
    return vr_sim_stream_create_in(sim, vr_sim_context_handle(sim, context), kind, stream);
}

vr_cu_result vr_sim_stream_create_in(struct vr_sim *sim, uint64_t context, enum vr_sim_stream_kind kind, uint64_t *stream) {
    uint32_t index;
    const vr_cu_result result = vr_sim_stream_make(sim, context, kind, &index);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_stream_at(sim, index)->user = true;
    sim->user_streams++;
    *stream = vr_sim_slots_handle(&sim->streams, index);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_create_with_priority(struct vr_sim *sim, uint64_t *stream, unsigned flags, int priority) {
    const vr_cu_result result = vr_sim_stream_create(sim, stream, flags);
    if (result != VR_CU_SUCCESS) return result;
    if (priority > 0) priority = 0;
    if (priority < VR_SIM_GREATEST_PRIORITY) priority = VR_SIM_GREATEST_PRIORITY;
    struct vr_sim_stream *made = vr_sim_slots_find(&sim->streams, *stream);
    made->priority = priority;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_get_priority(struct vr_sim *sim, uint64_t stream, int *priority) {
    if (priority == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *found;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *priority = found->priority;
    return result;
}

vr_cu_result vr_sim_stream_destroy(struct vr_sim *sim, uint64_t stream) {
    struct vr_sim_stream *found = vr_sim_slots_find(&sim->streams, stream);
    if (found == NULL || !found->user) return VR_CU_INVALID_HANDLE;
    vr_sim_capture_leave(sim, found);
    found->slot.named = false;
    sim->user_streams--;
    vr_sim_stream_collect(sim, vr_sim_slots_index(&sim->streams, found));
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_get_ctx(struct vr_sim *sim, uint64_t stream, uint64_t *context) {
    if (context == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *found;
    vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *context = found->context;
    return result;
}

// The last host function that the end of the stream's work waits for.
static uint64_t last_callback(const struct vr_sim *sim, const struct vr_sim_stream *stream) {
    const uint64_t others = vr_sim_context_find(sim, stream->context)->blocking_callback;
    return stream->kind == VR_SIM_STREAM_LEGACY && others > stream->callback ? others : stream->callback;
}

vr_cu_result vr_sim_stream_query(struct vr_sim *sim, uint64_t stream) {
    struct vr_sim_stream *found;
    vr_cu_result result = vr_sim_stream_for_waiting(sim, stream, &found);
    if (result == VR_CU_SUCCESS && !vr_sim_callback_done(sim, last_callback(sim, found))) {
        vr_sim_callback_grace(sim, last_callback(sim, found));
        result = vr_sim_stream_for_waiting(sim, stream, &found);
    }
    if (result != VR_CU_SUCCESS) return result;
    return vr_sim_stream_is_idle(sim, found) ? VR_CU_SUCCESS : VR_CU_NOT_READY;
}

vr_cu_result vr_sim_stream_synchronize(struct vr_sim *sim, uint64_t stream) {
    struct vr_sim_stream *found;
    vr_cu_result result = vr_sim_stream_for_waiting(sim, stream, &found);
    if (result == VR_CU_SUCCESS && (found->hold.width != 0 || !vr_sim_callback_done(sim, last_callback(sim, found)))) {
        const uint64_t callback = last_callback(sim, found);
        vr_sim_hold_wait(sim, &found->hold);
        vr_sim_callback_wait(sim, callback);
        result = vr_sim_stream_for_waiting(sim, stream, &found);
    }
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_wait_stream(sim, found);
    vr_sim_pools_synchronized(sim);
    return VR_CU_SUCCESS;
}

// ---- What programs ask and set of streams that orders nothing here.

enum { ACCESS_POLICY_WINDOW = 1, SYNCHRONIZATION_POLICY = 3, MEMORY_DOMAIN_MAP = 9, MEMORY_DOMAIN = 10 };

// The place of an attribute of VR_SIM_STREAM_ATTRIBUTES, or -1.
static int attribute_place(int attribute) {
    static const int kept[VR_SIM_STREAM_ATTRIBUTES] = {ACCESS_POLICY_WINDOW, SYNCHRONIZATION_POLICY, MEMORY_DOMAIN_MAP, MEMORY_DOMAIN};
    for (int i = 0; i < VR_SIM_STREAM_ATTRIBUTES; i++)
        if (kept[i] == attribute) return i;
    return -1;
}

vr_cu_result vr_sim_stream_get_attribute(struct vr_sim *sim, uint64_t stream, int attribute, void *value) {
    struct vr_sim_stream *found;
    const int place = attribute_place(attribute);
    if (value == NULL || (place < 0 && attribute != VR_CU_LAUNCH_ATTRIBUTE_PRIORITY)) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result != VR_CU_SUCCESS) return result;
    if (place < 0)
        memcpy(value, &found->priority, sizeof found->priority);
    else
        memcpy(value, found->attributes[place], sizeof found->attributes[place]);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_set_attribute(struct vr_sim *sim, uint64_t stream, int attribute, const void *value) {
    struct vr_sim_stream *found;
    const int place = attribute_place(attribute);
    if (value == NULL || (place < 0 && attribute != VR_CU_LAUNCH_ATTRIBUTE_PRIORITY)) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result != VR_CU_SUCCESS) return result;
    if (place < 0)
        memcpy(&found->priority, value, sizeof found->priority);
    else
        memcpy(found->attributes[place], value, sizeof found->attributes[place]);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_copy_attributes(struct vr_sim *sim, uint64_t to, uint64_t from) {
    struct vr_sim_stream *source, *target;
    vr_cu_result result = vr_sim_stream_find(sim, from, &source);
    if (result == VR_CU_SUCCESS) result = vr_sim_stream_find(sim, to, &target);
    if (result == VR_CU_SUCCESS) result = vr_sim_stream_find(sim, from, &source); // the search may have moved it
    if (result == VR_CU_SUCCESS && target != source) memcpy(target->attributes, source->attributes, sizeof target->attributes);
    return result;
}

vr_cu_result vr_sim_stream_get_flags(struct vr_sim *sim, uint64_t stream, unsigned *flags) {
    struct vr_sim_stream *found;
    if (flags == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *flags = found->kind == VR_SIM_STREAM_NON_BLOCKING ? VR_CU_STREAM_NON_BLOCKING : 0;
    return result;
}

vr_cu_result vr_sim_stream_get_id(struct vr_sim *sim, uint64_t stream, uint64_t *id) {
    struct vr_sim_stream *found;
    if (id == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *id = found->serial;
    return result;
}

vr_cu_result vr_sim_stream_get_device(struct vr_sim *sim, uint64_t stream, int *device) {
    struct vr_sim_stream *found;
    if (device == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result == VR_CU_SUCCESS) *device = (int)vr_sim_context_find(sim, found->context)->device;
    return result;
}

// There are no green contexts.
vr_cu_result vr_sim_stream_get_ctx_v2(struct vr_sim *sim, uint64_t stream, uint64_t *context, uint64_t *green) {
    if (context == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_stream_get_ctx(sim, stream, context);
    if (result == VR_CU_SUCCESS && green != NULL) *green = 0;
    return result;
}
