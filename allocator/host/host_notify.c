#include "host/host_notify.h"

// The stack of the current call of this thread, and the numbering it belongs to.
static _Thread_local struct {
    uint64_t stacks;
    uint32_t number;
} current;

static uint32_t current_stack(const struct vr_host_listener *listener) { return current.stacks == listener->stacks ? current.number : 0; }

static void forget_stacks_locked(struct vram_host *host) {
    size_t at = 0;
    for (struct vr_host_block *block; (block = vr_host_table_next(&host->table, &at)) != NULL;) block->stack = 0;
}

// --- a program's listener -----------------------------------------------------------------------------------------------------------

static void record_nothing(enum vr_host_action what, const struct vr_host_block *block, uint32_t stack, void *user) {
    (void)what, (void)block, (void)stack, (void)user;
}

static uint32_t gather_nothing(bool frees, uint32_t skip, void *user) {
    (void)frees, (void)skip, (void)user;
    return 0;
}

// The listener while only a program listens.
static const struct vr_host_listener no_listener = {record_nothing, gather_nothing, 0, NULL};

static void notify_client(const struct vram_host *host, enum vr_host_action what, const struct vr_host_block *block) {
    static const enum vram_event_action actions[] = {
        [VR_HOST_ACTION_ALLOC] = VRAM_EVENT_ALLOC,
        [VR_HOST_ACTION_FREE_REQUESTED] = VRAM_EVENT_FREE_REQUESTED,
        [VR_HOST_ACTION_FREE_COMPLETED] = VRAM_EVENT_FREE_COMPLETED,
        [VR_HOST_ACTION_SEGMENT_ALLOC] = VRAM_EVENT_SEGMENT_ALLOC,
        [VR_HOST_ACTION_SEGMENT_FREE] = VRAM_EVENT_SEGMENT_FREE,
        [VR_HOST_ACTION_OOM] = VRAM_EVENT_OOM,
    };
    assert((size_t)what < VR_COUNT_OF(actions));
    const struct vram_event event = {
        .action = actions[what],
        .address = block->address,
        .size_bytes = block->size,
        .stream = block->stream,
        .pool = block->pool->id,
        .time_ns = vr_os_epoch_ns(),
    };
    host->event(&event, host->event_user);
}

static void listen_locked(struct vram_host *host, const struct vr_host_listener *listener) {
    if (listener == NULL && host->event != NULL) listener = &no_listener;
    atomic_store_explicit(&host->listener, listener, memory_order_release);
}

void vram_host_set_event_listener(struct vram_host *host, vram_host_event_function event, void *user) {
    if (host == NULL) return;
    vr_host_lock(host);
    const struct vr_host_listener *listener = atomic_load_explicit(&host->listener, memory_order_relaxed);
    host->event = event;
    host->event_user = user;
    listen_locked(host, listener == &no_listener ? NULL : listener);
    vr_host_unlock(host);
}

// --- the history ----------------------------------------------------------------------------------------------------------------------

void vr_host_set_listener(struct vram_host *host, const struct vr_host_listener *listener) {
    vr_host_lock(host);
    if (listener != NULL && listener->stacks != host->stacks) {
        forget_stacks_locked(host);
        host->stacks = listener->stacks;
    }
    listen_locked(host, listener);
    vr_host_unlock(host);
}

void vr_host_gather_now(struct vram_host *host, bool frees) {
    const struct vr_host_listener *listener = atomic_load_explicit(&host->listener, memory_order_acquire);
    if (listener == NULL) return;
    current.stacks = listener->stacks;
    current.number = listener->gather(frees, 2, listener->user);
}

void vr_host_notify_now(struct vram_host *host, enum vr_host_action what, const struct vr_host_block *block) {
    const struct vr_host_listener *listener = atomic_load_explicit(&host->listener, memory_order_relaxed);
    const uint32_t stack = current_stack(listener);
    listener->record(what, block, stack != 0 ? stack : block->stack, listener->user);
    if (host->event != NULL) notify_client(host, what, block);
}

void vr_host_notify_hand_out_now(struct vram_host *host, struct vr_host_block *block) {
    block->stack = current_stack(atomic_load_explicit(&host->listener, memory_order_relaxed));
    vr_host_notify_now(host, VR_HOST_ACTION_ALLOC, block);
}

static int by_address(const void *left, const void *right) {
    const uint64_t a = ((const struct vr_host_facts *)left)->address, b = ((const struct vr_host_facts *)right)->address;
    return VR_ORDER(a, b);
}

static struct vr_host_facts facts_of(const struct vr_host_block *block) {
    const bool free = block->state == VR_HOST_FREE;
    return (struct vr_host_facts){
        .address = block->address,
        .size = block->size,
        .requested = free ? 0 : block->requested,
        .stream = block->stream,
        .pool = block->pool->id,
        .stack = free ? 0 : block->stack,
        .state = block->state,
    };
}

enum vram_status vr_host_copy(struct vram_host *host, struct vr_host_facts **blocks, size_t *count, void (*at)(void *user), void *user) {
    vr_host_lock(host);
    struct vr_host_facts *copy = malloc((host->table.blocks.count + 1) * sizeof *copy);
    size_t copied = 0, next = 0;
    for (const struct vr_host_block *block; copy != NULL && (block = vr_host_table_next(&host->table, &next)) != NULL;)
        copy[copied++] = facts_of(block);
    if (copy != NULL && at != NULL) at(user);
    vr_host_unlock(host);
    if (copy == NULL) return VRAM_NO_HOST_MEMORY;
    qsort(copy, copied, sizeof *copy, by_address);
    *blocks = copy;
    *count = copied;
    return VRAM_OK;
}

enum vram_status vram_host_walk(struct vram_host *host, vram_host_visitor visit, void *user) {
    VR_REQUIRE(host && visit);
    struct vr_host_facts *facts = NULL;
    size_t count = 0;
    VR_TRY(vr_host_copy(host, &facts, &count, NULL, NULL));
    bool more = true;
    for (size_t i = 0; i < count && more; i++) {
        const bool is_live = facts[i].state == VR_HOST_LIVE, is_free = facts[i].state == VR_HOST_FREE;
        const struct vram_host_block_view view = {
            .pointer = (void *)(uintptr_t)facts[i].address,
            .size_bytes = facts[i].size,
            .requested_bytes = facts[i].requested,
            .state = is_live   ? VRAM_BLOCK_ALLOCATED
                     : is_free ? VRAM_BLOCK_FREE
                               : VRAM_BLOCK_PENDING,
            .pool = facts[i].pool,
        };
        more = visit(&view, user);
    }
    free(facts);
    return VRAM_OK;
}
