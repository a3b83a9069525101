#include "host/host_fences.h"

#include "host/host_bins.h"
#include "host/host_context.h"
#include "host/host_notify.h"
#include "host/host_source.h"
#include "vram/driver.h"

// The interval of PyTorch's thread; this one sleeps while nothing waits.
enum { PAUSE_NS = 100000 };

static void look_for_passed(void *argument) {
    struct vram_host *host = argument;
    vr_host_lock(host);
    while (!host->ending) {
        const bool nothing = host->waiting == 0 || !host->options.pinned_use_background_threads;
        if (!nothing) {
            vr_host_unlock(host);
            // A failure leaves the use pending; vram_host_empty_cache() reports it.
            (void)vr_host_poll(host, VR_HOST_POLL_NOW);
            (void)vr_host_give_back(host);
            vr_host_lock(host);
        }
        if (!host->ending) vr_signal_wait(&host->work, &host->mutex, nothing ? UINT64_MAX : PAUSE_NS);
    }
    vr_host_unlock(host);
}

bool vr_host_background_serves(const struct vram_host *host) { return host->running && host->options.pinned_use_background_threads; }

void vr_host_background_wake(struct vram_host *host) {
    if (host->running) vr_signal_raise(&host->work);
}

void vr_host_background_start(struct vram_host *host) {
    vr_mutex_lock(&host->setup);
    vr_host_lock(host);
    const bool wanted = host->options.pinned_use_background_threads && !host->running;
    vr_host_unlock(host);
    const bool started = wanted && vr_thread_start(&host->thread, look_for_passed, host) == VRAM_OK;
    vr_host_lock(host);
    if (started) host->running = true;
    vr_host_unlock(host);
    vr_mutex_unlock(&host->setup);
}

void vr_host_background_end(struct vram_host *host) {
    vr_host_lock(host);
    const bool running = host->running;
    host->ending = true;
    vr_signal_raise(&host->work);
    vr_host_unlock(host);
    if (running) vr_thread_join(&host->thread);
    host->running = false;
}

// --- lanes and uses ---------------------------------------------------------------------------------------------------------------

static struct vr_host_context *context_of(struct vram_host *host, uint64_t handle) {
    struct vr_host_context *context = host->contexts;
    while (context != NULL && context->handle != handle) context = context->next;
    if (context != NULL) return context;
    context = calloc(1, sizeof *context);
    if (context == NULL) return NULL;
    context->handle = handle;
    context->next = host->contexts;
    host->contexts = context;
    return context;
}

static struct vr_host_lane *lane_of(struct vram_host *host, uint64_t handle, uint64_t stream) {
    struct vr_host_lane *lane = host->lanes;
    while (lane != NULL && (lane->stream != stream || lane->context->handle != handle)) lane = lane->next;
    if (lane != NULL) return lane;
    struct vr_host_context *context = context_of(host, handle);
    lane = context == NULL ? NULL : calloc(1, sizeof *lane);
    if (lane == NULL) return NULL;
    lane->context = context;
    lane->stream = stream;
    lane->next = host->lanes;
    if (host->lanes != NULL) host->lanes->previous = lane;
    host->lanes = lane;
    return lane;
}

static void drop_empty_lane(struct vram_host *host, struct vr_host_lane *lane) {
    if (lane->uses != 0) return;
    if (lane->previous == NULL)
        host->lanes = lane->next;
    else
        lane->previous->next = lane->next;
    if (lane->next != NULL) lane->next->previous = lane->previous;
    free(lane);
}

static struct vr_host_use *take_use(struct vram_host *host) {
    struct vr_host_use *use = host->idle_uses;
    if (use == NULL) return malloc(sizeof *use);
    host->idle_uses = use->next;
    return use;
}

static void give_event(struct vr_host_use *use) {
    struct vr_host_context *context = use->lane->context;
    if (use->event != 0) context->idle[context->idle_count++] = use->event;
    use->event = 0;
}

static void give_use(struct vram_host *host, struct vr_host_use *use) {
    give_event(use);
    use->lane->uses--;
    drop_empty_lane(host, use->lane);
    use->next = host->idle_uses;
    host->idle_uses = use;
}

enum vram_status vr_host_use_add(struct vram_host *host, struct vr_host_block *block, uint64_t context, uint64_t stream) {
    for (const struct vr_host_use *use = block->uses; use != NULL; use = use->next) {
        if (use->lane->stream == stream && use->lane->context->handle == context) return VRAM_OK;
    }
    struct vr_host_lane *lane = lane_of(host, context, stream);
    if (lane == NULL) return VRAM_NO_HOST_MEMORY;
    struct vr_host_use *use = take_use(host);
    if (use == NULL) {
        drop_empty_lane(host, lane);
        return VRAM_NO_HOST_MEMORY;
    }
    *use = (struct vr_host_use){.lane = lane, .block = block, .next = block->uses};
    lane->uses++;
    block->uses = use;
    return VRAM_OK;
}

void vr_host_uses_drop(struct vram_host *host, struct vr_host_block *block) {
    while (block->uses != NULL) {
        struct vr_host_use *use = block->uses;
        block->uses = use->next;
        give_use(host, use);
    }
}

// --- events -------------------------------------------------------------------------------------------------------------------------

static bool take_idle_event(struct vram_host *host, struct vr_host_context *context, uint64_t *event) {
    vr_host_lock(host);
    const bool found = context->idle_count != 0;
    if (found) *event = context->idle[--context->idle_count];
    vr_host_unlock(host);
    return found;
}

static enum vram_status make_event(struct vram_host *host, struct vr_host_context *context, uint64_t *event) {
    vr_host_lock(host);
    const enum vram_status grown = VR_GROW(context, idle, context->made + 1);
    if (grown == VRAM_OK) context->made++;
    vr_host_unlock(host);
    VR_TRY(grown);
    const enum vram_status status = vr_host_status(vr_cu(host->driver, event_create, event, VR_CU_EVENT_DISABLE_TIMING));
    if (status == VRAM_OK) return VRAM_OK;
    vr_host_lock(host);
    context->made--;
    vr_host_unlock(host);
    return status;
}

// Sets use->event; leaves it 0 while the stream captures, or while a capture makes the default stream silent. The use's context must be
// current.
static enum vram_status fence_here(struct vram_host *host, struct vr_host_use *use) {
    struct vr_host_context *context = use->lane->context;
    bool capturing = false, silent = false;
    VR_TRY(vr_host_is_capturing(host, use->lane->stream, &capturing, &silent));
    if (capturing || silent) return VRAM_OK;
    uint64_t event = 0;
    if (!take_idle_event(host, context, &event)) VR_TRY(make_event(host, context, &event));
    const enum vram_status status = vr_host_status(vr_cu(host->driver, event_record, event, use->lane->stream));
    vr_host_lock(host);
    use->event = event;
    if (status != VRAM_OK) give_event(use);
    vr_host_unlock(host);
    return status;
}

static enum vram_status fence_use(struct vram_host *host, struct vr_host_use *use) {
    struct vr_host_guard guard;
    VR_TRY(vr_host_enter(host, use->lane->context->handle, &guard));
    const enum vram_status status = fence_here(host, use);
    vr_host_leave(&guard);
    return status;
}

enum vram_status vr_host_uses_fence(struct vram_host *host, const struct vr_host_block *block) {
    enum vram_status first = VRAM_OK;
    for (struct vr_host_use *use = block->uses; use != NULL; use = use->next) {
        const enum vram_status status = fence_use(host, use);
        if (first == VRAM_OK) first = status;
    }
    return first;
}

void vr_host_uses_unfence(struct vr_host_block *block) {
    for (struct vr_host_use *use = block->uses; use != NULL; use = use->next) give_event(use);
}

static void queue_use(struct vram_host *host, struct vr_host_use *use) {
    if (use->event == 0) {
        use->next = host->deferred;
        host->deferred = use;
        return;
    }
    use->next = NULL;
    if (use->lane->first == NULL)
        use->lane->first = use;
    else
        use->lane->last->next = use;
    use->lane->last = use;
}

void vr_host_uses_queue(struct vram_host *host, struct vr_host_block *block) {
    block->state = VR_HOST_PENDING;
    host->stats.pending_bytes += block->size;
    while (block->uses != NULL) {
        struct vr_host_use *use = block->uses;
        block->uses = use->next;
        block->fences++;
        host->waiting++;
        queue_use(host, use);
    }
}

// --- completion ---------------------------------------------------------------------------------------------------------------------

void vr_host_finish(struct vram_host *host, struct vr_host_block *block) {
    vr_host_notify(host, VR_HOST_ACTION_FREE_COMPLETED, block);
    vr_stat_add(&host->stats.active_requests, -1);
    vr_stat_add(&host->stats.active_bytes, -(int64_t)block->size);
    vr_stat_add(&host->stats.requested_bytes, -(int64_t)block->requested);
    block->requested = 0;
    block->captured = false;
    if (block->size > host->options.pinned_max_cached_bytes && block->origin != VRAM_HOST_RESERVED)
        vr_host_send_out(host, block);
    else
        vr_host_bins_insert(block);
}

// Ends a use that has passed and is in no list any more.
static void pass_use(struct vram_host *host, struct vr_host_use *use) {
    struct vr_host_block *block = use->block;
    give_use(host, use);
    host->waiting--;
    if (--block->fences != 0) return;
    host->stats.pending_bytes -= block->size;
    vr_host_finish(host, block);
}

// Tries to give a deferred use its event. *passed: waiting for the whole context has completed the use instead.
static enum vram_status settle_use(struct vram_host *host, struct vr_host_use *use, enum vr_host_poll how, bool *passed) {
    const enum vram_status status = fence_use(host, use);
    if (status == VRAM_OK || how != VR_HOST_POLL_WAIT) return status;
    struct vr_host_guard guard;
    VR_TRY(vr_host_enter(host, use->lane->context->handle, &guard));
    *passed = vr_cu(host->driver, ctx_synchronize, 0) == VR_CU_SUCCESS;
    vr_host_leave(&guard);
    return *passed ? VRAM_OK : status;
}

static enum vram_status settle_deferred(struct vram_host *host, enum vr_host_poll how) {
    vr_host_lock(host);
    struct vr_host_use *list = host->deferred;
    host->deferred = NULL;
    vr_host_unlock(host);
    enum vram_status first = VRAM_OK;
    while (list != NULL) {
        struct vr_host_use *use = list;
        list = use->next;
        bool passed = false;
        const enum vram_status status = settle_use(host, use, how, &passed);
        if (first == VRAM_OK) first = status;
        vr_host_lock(host);
        if (passed)
            pass_use(host, use);
        else
            queue_use(host, use);
        vr_host_unlock(host);
    }
    return first;
}

enum answer { PASSED, DIED, NOT_YET, FAILED };

static enum answer ask_event(struct vram_host *host, uint64_t event, enum vr_host_poll how) {
    const vr_cu_result result =
        how == VR_HOST_POLL_WAIT ? vr_cu(host->driver, event_synchronize, event) : vr_cu(host->driver, event_query, event);
    switch (result) {
    case VR_CU_SUCCESS: return PASSED;
    case VR_CU_NOT_READY: return NOT_YET;
    // The event and its work ended with their context.
    case VR_CU_INVALID_HANDLE:
    case VR_CU_CONTEXT_IS_DESTROYED: return DIED;
    default: return FAILED;
    }
}

// Ends the passed uses at the head of one lane. A lane cannot go while it has a first use, and only this thread, under the poll lock,
// removes that. Returns the next lane. Called with the state lock held, which is released for driver calls.
static struct vr_host_lane *drain_lane(struct vram_host *host, struct vr_host_lane *lane, enum vr_host_poll how, enum vram_status *status) {
    while (lane->first != NULL) {
        struct vr_host_use *use = lane->first;
        const uint64_t event = use->event;
        vr_host_unlock(host);
        const enum answer answer = ask_event(host, event, how);
        vr_host_lock(host);
        if (answer == FAILED) *status = VRAM_DRIVER;
        if (answer == FAILED || answer == NOT_YET) break;
        if (answer == DIED) {
            use->event = 0;
            lane->context->made--;
        }
        struct vr_host_lane *next = lane->next;
        const bool last = lane->uses == 1;
        lane->first = use->next;
        pass_use(host, use);
        if (last) return next;
    }
    return lane->next;
}

static enum vram_status drain_lanes(struct vram_host *host, enum vr_host_poll how) {
    enum vram_status status = VRAM_OK;
    vr_host_lock(host);
    for (struct vr_host_lane *lane = host->lanes; lane != NULL;) lane = drain_lane(host, lane, how, &status);
    vr_host_unlock(host);
    return status;
}

enum vram_status vr_host_poll(struct vram_host *host, enum vr_host_poll how) {
    vr_host_lock(host);
    const bool idle = host->waiting == 0 || (how == VR_HOST_POLL_IF_FREE && host->pollers != 0);
    if (!idle) host->pollers++;
    vr_host_unlock(host);
    if (idle) return VRAM_OK;
    vr_mutex_lock(&host->poll);
    struct vr_host_guard guard;
    uint64_t home = 0;
    enum vram_status status = vr_host_home(host, &home);
    if (status == VRAM_OK) status = vr_host_enter(host, home, &guard);
    if (status == VRAM_OK) {
        status = settle_deferred(host, how);
        const enum vram_status drained = drain_lanes(host, how);
        if (status == VRAM_OK) status = drained;
        vr_host_leave(&guard);
    }
    vr_mutex_unlock(&host->poll);
    vr_host_lock(host);
    host->pollers--;
    vr_host_unlock(host);
    return status;
}

// --- the end ------------------------------------------------------------------------------------------------------------------------

static void destroy_events(struct vram_host *host, struct vr_host_context *context) {
    struct vr_host_guard guard;
    const bool entered = vr_host_enter(host, context->handle, &guard) == VRAM_OK;
    for (size_t i = 0; i < context->idle_count; i++) VR_CU_INSIST(host->driver, event_destroy, context->idle[i]);
    if (entered) vr_host_leave(&guard);
    free(context->idle);
    free(context);
}

// Drops uses that never pass, because a capture never ended or the driver fails.
static void abandon_uses(struct vram_host *host) {
    for (struct vr_host_lane *lane = host->lanes, *next = NULL; lane != NULL; lane = next) {
        next = lane->next;
        while (lane->first != NULL) {
            struct vr_host_use *use = lane->first;
            lane->first = use->next;
            const bool last = lane->uses == 1;
            give_use(host, use);
            if (last) break;
        }
    }
    while (host->deferred != NULL) {
        struct vr_host_use *use = host->deferred;
        host->deferred = use->next;
        give_use(host, use);
    }
}

void vr_host_fences_release(struct vram_host *host) {
    abandon_uses(host);
    assert(host->lanes == NULL);
    while (host->idle_uses != NULL) {
        struct vr_host_use *use = host->idle_uses;
        host->idle_uses = use->next;
        free(use);
    }
    while (host->contexts != NULL) {
        struct vr_host_context *next = host->contexts->next;
        destroy_events(host, host->contexts);
        host->contexts = next;
    }
}
