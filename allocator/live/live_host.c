#include "live/live_host.h"

#include "host/host_notify.h"

static void listen_to_host(enum vr_host_action what, const struct vr_host_block *block, uint32_t stack, void *user) {
    static const enum vr_record_action actions[] = {
        [VR_HOST_ACTION_ALLOC] = VR_RECORD_ALLOC,
        [VR_HOST_ACTION_FREE_REQUESTED] = VR_RECORD_FREE_REQUESTED,
        [VR_HOST_ACTION_FREE_COMPLETED] = VR_RECORD_FREE_COMPLETED,
        [VR_HOST_ACTION_SEGMENT_ALLOC] = VR_RECORD_SEGMENT_ALLOC,
        [VR_HOST_ACTION_SEGMENT_FREE] = VR_RECORD_SEGMENT_FREE,
        [VR_HOST_ACTION_OOM] = VR_RECORD_OOM,
    };
    assert((size_t)what < VR_COUNT_OF(actions));
    const bool segment = what == VR_HOST_ACTION_SEGMENT_ALLOC || what == VR_HOST_ACTION_SEGMENT_FREE;
    const struct vr_record record = {
        .address = block->address,
        .size_bytes = segment ? block->size : block->requested,
        .stream = block->stream,
        .pool = block->pool->id,
        .action = actions[what],
        .stack = stack,
    };
    vr_tracer_notify(user, VR_TRACER_HOST, &record);
}

static uint32_t gather(bool frees, uint32_t skip, void *user) {
    struct vr_tracer *tracer = user;
    const uint32_t level = atomic_load_explicit(&tracer->listener.level, memory_order_relaxed);
    if (level < (uint32_t)(frees ? VR_LEVEL_ALL : VR_LEVEL_STATE)) return 0;
    const enum vram_stack_kind kind = (enum vram_stack_kind)atomic_load_explicit(&tracer->kind, memory_order_relaxed);
    const uint32_t stack = vram_stack_take(tracer->stacks, kind, skip + 1);
    VR_NO_TAIL_CALL();
    return stack;
}

static _Atomic uint64_t listeners; // created so far

void vr_tracer_record_host(struct vr_tracer *tracer, struct vram_host *host) {
    if (tracer->host != NULL && tracer->host != host) vr_host_set_listener(tracer->host, NULL);
    // Set once, before any other thread can see it.
    if (tracer->host_listener.user == NULL) {
        const uint64_t number = 1 + atomic_fetch_add_explicit(&listeners, 1, memory_order_relaxed);
        tracer->host_listener = (struct vr_host_listener){listen_to_host, gather, number, tracer};
    }
    if (host != NULL && tracer->host != host) vr_host_set_listener(host, &tracer->host_listener);
    tracer->host = host;
}

// --- snapshots -----------------------------------------------------------------------------------------------------------------------

struct host_moment {
    struct vr_tracer *tracer;
    uint64_t mark;
};

static void note_moment(void *user) {
    struct host_moment *moment = user;
    moment->mark = vr_ring_mark(&moment->tracer->rings[VR_TRACER_HOST]);
}

static uint8_t core_state(enum vr_host_state state) {
    switch (state) {
    case VR_HOST_FREE: return VR_FREE;
    case VR_HOST_PENDING:
    case VR_HOST_KEPT: return VR_PENDING;
    default: return VR_ALLOCATED;
    }
}

static enum vram_status fill_picture(const struct vr_host_facts *facts, size_t count, struct vr_picture *picture) {
    picture->segments = calloc(count + 1, sizeof *picture->segments);
    picture->blocks = calloc(count + 1, sizeof *picture->blocks);
    if (picture->segments == NULL || picture->blocks == NULL) return VRAM_NO_HOST_MEMORY;
    picture->segment_count = picture->block_count = count;
    for (size_t i = 0; i < count; i++) {
        const struct vr_host_facts *from = &facts[i];
        picture->segments[i] = (struct vr_picture_segment){.address = from->address,
                                                           .size = from->size,
                                                           .stream = from->stream,
                                                           .pool = from->pool,
                                                           .stack = from->stack,
                                                           .first_block = i};
        picture->blocks[i] = (struct vr_picture_block){.address = from->address,
                                                       .size = from->size,
                                                       .requested = from->requested,
                                                       .stack = from->stack,
                                                       .state = core_state(from->state)};
    }
    return VRAM_OK;
}

enum vram_status vr_copy_host_state(struct vr_copied *copied, void (*at)(void *user), void *user) {
    struct vr_host_facts *facts = NULL;
    size_t count = 0;
    VR_TRY(vr_host_copy(copied->tracer->host, &facts, &count, at, user));
    assert(copied->device_count < VR_COUNT_OF(copied->devices) && !copied->has_host); // pinned memory is the last device
    struct vr_copied_device *made = &copied->devices[copied->device_count++];
    made->ordinal = (uint32_t)copied->history_count++;
    copied->has_host = true;
    const enum vram_status status = fill_picture(facts, count, &made->picture);
    free(facts);
    return status;
}

enum vram_status vr_copy_host(struct vr_copied *copied) {
    struct vr_tracer *tracer = copied->tracer;
    struct host_moment moment = {.tracer = tracer};
    VR_TRY(vr_copy_host_state(copied, note_moment, &moment));
    if (!copied->has_history) return VRAM_OK;
    struct vr_copied_device *made = &copied->devices[copied->device_count - 1];
    VR_TRY(vr_ring_copy(&tracer->rings[VR_TRACER_HOST], moment.mark, &made->events, &made->event_count));
    made->overflowed = made->event_count < moment.mark;
    return VRAM_OK;
}
