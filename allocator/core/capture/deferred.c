// Defers frees during captures and completes them later.
#include "core/alloc.h"
#include "core/capture/captures.h"

// Appends to the markers the frontier of a stream's captured work: the nodes on which its next node would depend. Returns false if the
// stream takes part in no capture, the query fails, or memory runs out.
static bool add_frontier(const struct vr_device *device, uint64_t stream, struct vr_deferred *deferred, size_t *capacity) {
    int status = 0;
    uint64_t id = 0, graph = 0, count = 0;
    const uint64_t *frontier = NULL;
    if (vr_cu(device->allocator->driver, stream_get_capture_info, stream, &status, &id, &graph, &frontier, &count) != VR_CU_SUCCESS)
        return false;
    if (status != VR_CU_STREAM_CAPTURE_STATUS_ACTIVE) return false;
    void *markers = deferred->markers;
    const enum vram_status grown = vr_grow(&markers, capacity, deferred->marker_count + (size_t)count + 1, sizeof *deferred->markers);
    deferred->markers = markers;
    if (grown != VRAM_OK) return false;
    for (uint64_t i = 0; i < count; i++) deferred->markers[deferred->marker_count++] = frontier[i];
    return true;
}

// --- the list of deferred frees ----------------------------------------------------------------------------------------------------------

static void append_deferred(struct vr_captures *captures, struct vr_deferred *deferred) {
    deferred->serial = ++captures->serial;
    deferred->previous = captures->last_deferred;
    if (deferred->previous != NULL) deferred->previous->next = deferred;
    if (captures->first_deferred == NULL) captures->first_deferred = deferred;
    captures->last_deferred = deferred;
    if (captures->unlooked == NULL) captures->unlooked = deferred;
    captures->deferred_count++;
}

static void take_out(struct vr_captures *captures, const struct vr_deferred *deferred) {
    if (deferred->previous != NULL) deferred->previous->next = deferred->next;
    if (deferred->next != NULL) deferred->next->previous = deferred->previous;
    if (captures->first_deferred == deferred) captures->first_deferred = deferred->next;
    if (captures->last_deferred == deferred) captures->last_deferred = deferred->previous;
    if (captures->unlooked == deferred) captures->unlooked = deferred->next;
    if (--captures->deferred_count == 0) captures->mark_ended = false;
}

// --- chains: the nodes that deferred frees wait for (past.h) -----------------------------------------------------------------------------

static void push_onto_chain(struct vr_deferred *deferred, enum vr_chain chain, struct vr_deferred *first) {
    deferred->chain = chain;
    deferred->before = NULL;
    deferred->after = first;
    if (first != NULL) first->before = deferred;
}

static void push_fresh(struct vr_past *past, struct vr_deferred *deferred) {
    push_onto_chain(deferred, VR_CHAIN_FRESH, past->fresh);
    past->fresh = deferred;
}

// Puts the free into the chain of its first marker that is not reached. Without memory for that, the next request examines it again.
static void wait_for_marker(struct vr_past *past, struct vr_deferred *deferred) {
    const uint64_t node = deferred->markers[deferred->passed];
    struct vr_deferred *first = (struct vr_deferred *)(uintptr_t)vr_map_get(&past->nodes, node);
    if (vr_map_set(&past->nodes, node, (uintptr_t)deferred) == VRAM_OK) {
        push_onto_chain(deferred, VR_CHAIN_NODE, first);
    } else {
        push_fresh(past, deferred);
    }
}

static void unchain_deferred(struct vr_past *past, struct vr_deferred *deferred) {
    if (deferred->after != NULL) deferred->after->before = deferred->before;
    if (deferred->before != NULL) {
        deferred->before->after = deferred->after;
    } else if (deferred->chain == VR_CHAIN_FRESH) {
        past->fresh = deferred->after;
    } else if (deferred->after == NULL) {
        (void)vr_map_take(&past->nodes, deferred->markers[deferred->passed]);
    } else {
        (void)vr_map_set(&past->nodes, deferred->markers[deferred->passed], (uintptr_t)deferred->after); // the key exists: needs no memory
    }
    deferred->chain = VR_CHAIN_NONE;
}

// Rebuilds the chains: all deferred frees of the stream with markers are to be examined.
static void chain_anew(const struct vr_captures *captures, struct vr_past *past) {
    past->waiting = 0;
    for (struct vr_deferred *deferred = captures->first_deferred; deferred != NULL; deferred = deferred->next) {
        if (deferred->markers == NULL || deferred->stream != past->stream) continue;
        deferred->passed = 0;
        push_fresh(past, deferred);
        past->waiting++;
    }
    past->unchained = false;
}

// Returns the past whose chains contain the deferred free, or NULL.
static struct vr_past *past_that_chains(const struct vr_captures *captures, const struct vr_deferred *deferred) {
    struct vr_past *past = deferred->markers != NULL ? vr_past_of(&captures->pasts, deferred->stream) : NULL;
    return past != NULL && !past->unchained ? past : NULL;
}

// --- deferring ---------------------------------------------------------------------------------------------------------------------------

// Adds the markers of a block. Adds none if one of its streams is outside the capture, or used the block before it: the free then waits for
// the end of all captures.
static void mark_deferred(const struct vr_device *device, struct vr_deferred *deferred) {
    const struct vram_allocator *allocator = device->allocator;
    const struct vr_block *block = vr_block_at(allocator, deferred->block);
    size_t capacity = 0;
    bool all = add_frontier(device, vr_shard_of(allocator, block)->stream, deferred, &capacity);
    for (uint32_t use = block->held.uses; use != 0 && all; use = vr_use_at(allocator, use)->next) {
        all = vr_use_at(allocator, use)->captured && add_frontier(device, vr_use_at(allocator, use)->stream, deferred, &capacity);
    }
    if (all) return;
    free(deferred->markers);
    deferred->markers = NULL;
    deferred->marker_count = 0;
}

enum vram_status vr_defer(struct vr_device *device, uint32_t block) {
    VR_ASSERT_LOCKED(device);
    struct vr_captures *captures = &device->captures;
    assert(vr_block_at(device->allocator, block)->state == VR_ALLOCATED);
    VR_TRY(VR_GROW(captures, ready, captures->deferred_count + 1));
    struct vr_deferred *deferred = calloc(1, sizeof *deferred);
    if (deferred == NULL) return VRAM_NO_HOST_MEMORY;
    deferred->block = block;
    deferred->stream = vr_shard_of(device->allocator, vr_block_at(device->allocator, block))->stream;
    if (device->options.graph_capture_record_stream_reuse) mark_deferred(device, deferred);
    append_deferred(captures, deferred);
    struct vr_past *past = past_that_chains(captures, deferred);
    if (past != NULL) {
        push_fresh(past, deferred);
        past->waiting++;
    }
    vr_device_gate(device, VR_GATE_CAPTURE, true);
    return VRAM_OK;
}

// --- blockers ----------------------------------------------------------------------------------------------------------------------------

static void unblock_deferred(struct vr_captures *captures, struct vr_deferred *deferred) {
    if (deferred->blocker != 0) captures->blockers[deferred->blocker - 1].count--;
    deferred->blocker = 0;
    while (captures->blocker_count != 0 && captures->blockers[captures->blocker_count - 1].count == 0) captures->blocker_count--;
}

// Notes that the capturing stream blocks this free. Without memory for that, the next request examines it again.
static void block_by(struct vr_captures *captures, struct vr_deferred *deferred, uint64_t stream) {
    size_t at = 0, vacant = captures->blocker_count;
    for (; at < captures->blocker_count; at++) {
        if (captures->blockers[at].count == 0) {
            vacant = at;
        } else if (captures->blockers[at].stream == stream) {
            break;
        }
    }
    if (at == captures->blocker_count) {
        if (vacant == at && VR_GROW(captures, blockers, at + 1) != VRAM_OK) return;
        captures->blocker_count += vacant == at;
        at = vacant;
        captures->blockers[at] = (struct vr_blocker){.stream = stream};
    }
    captures->blockers[at].count++;
    captures->blockers[at].captures = true;
    deferred->blocker = (uint32_t)at + 1;
}

// Queries the driver about each blocker. Returns whether one has stopped capturing.
static bool ask_blockers(struct vr_device *device) {
    struct vr_captures *captures = &device->captures;
    bool any_ended = false;
    for (size_t i = 0; i < captures->blocker_count; i++) {
        struct vr_blocker *blocker = &captures->blockers[i];
        if (blocker->count == 0) continue;
        blocker->captures = vr_stream_is_capturing(device, blocker->stream);
        any_ended |= !blocker->captures;
    }
    return any_ended;
}

static void remove_deferred(struct vr_device *device, struct vr_deferred *deferred) {
    struct vr_captures *captures = &device->captures;
    struct vr_past *past = past_that_chains(captures, deferred);
    unblock_deferred(captures, deferred);
    if (past != NULL) {
        if (deferred->chain != VR_CHAIN_NONE) unchain_deferred(past, deferred);
        past->waiting--;
    }
    take_out(captures, deferred);
    free(deferred->markers);
    free(deferred);
}

// Advances `unlooked` from `first` past the frees that now have a blocker.
static void note_looked_at(struct vr_captures *captures, struct vr_deferred *first) {
    captures->unlooked = first;
    while (captures->unlooked != NULL && captures->unlooked->blocker != 0) captures->unlooked = captures->unlooked->next;
}

// Removes the uses recorded during a capture. They have completed, because captured streams must join before the capture can end.
static void drop_captured_uses(struct vram_allocator *allocator, struct vr_block *block) {
    for (uint32_t *link = &block->held.uses; *link != 0;) {
        struct vr_use *use = vr_use_at(allocator, *link);
        if (!use->captured) {
            link = &use->next;
            continue;
        }
        const uint32_t over = *link;
        *link = use->next;
        vr_slab_give(&allocator->uses, over);
    }
}

// Records fences for the block's uses. If that fails because a stream was destroyed since the free, waits once for all work of the devices
// and completes the free, so that no later request fails for it.
static enum vram_status fence_block(struct vr_device *device, uint32_t block) {
    const enum vram_status status = vr_fences_record(device, block, NULL);
    if (status != VRAM_DRIVER) return status;
    VR_TRY(vr_uses_wait(device->allocator, vr_block_at(device->allocator, block)));
    vr_complete_free(device, block, true);
    return VRAM_OK;
}

// Returns whether one of the block's uses is on a stream that is capturing.
static bool is_blocked(struct vr_device *device, struct vr_deferred *deferred) {
    struct vr_captures *captures = &device->captures;
    uint64_t stream = 0;
    if (deferred->blocker != 0 && captures->blockers[deferred->blocker - 1].captures) return true;
    unblock_deferred(captures, deferred);
    if (!vr_use_captures(device, vr_block_at(device->allocator, deferred->block), &stream)) return false;
    block_by(captures, deferred, stream);
    return true;
}

// Completes or fences deferred frees of pool `only` (NULL: of all pools). While every blocking stream is still capturing, examines only the
// frees added since, so that a request during a capture costs one query per capturing stream.
static enum vram_status convert_deferred(struct vr_device *device, const struct vram_pool *only) {
    struct vram_allocator *allocator = device->allocator;
    struct vr_captures *captures = &device->captures;
    struct vr_deferred *first = ask_blockers(device) ? captures->first_deferred : captures->unlooked;
    struct vr_deferred *before = first != NULL ? first->previous : captures->last_deferred;
    enum vram_status status = VRAM_OK;
    for (struct vr_deferred *deferred = first, *next; deferred != NULL && status == VRAM_OK; deferred = next) {
        const uint32_t block = deferred->block;
        struct vr_block *item = vr_block_at(allocator, block);
        next = deferred->next;
        if (only != NULL && vr_shard_of(allocator, item)->owner != only) continue;
        if (is_blocked(device, deferred)) continue;
        drop_captured_uses(allocator, item);
        if (item->held.uses != 0) {
            status = fence_block(device, block);
        } else {
            vr_complete_free(device, block, true);
        }
        if (status == VRAM_OK) remove_deferred(device, deferred);
    }
    note_looked_at(captures, before != NULL ? before->next : captures->first_deferred);
    if (status == VRAM_OK) vr_capture_gate(device);
    return status;
}

enum vram_status vr_deferred_convert(struct vr_device *device) {
    VR_ASSERT_ALL_LOCKED(device);
    return convert_deferred(device, NULL);
}

enum vram_status vr_deferred_convert_pool(struct vr_device *device, const struct vram_pool *pool) {
    VR_ASSERT_ALL_LOCKED(device);
    return convert_deferred(device, pool);
}

// --- reuse inside a capture ------------------------------------------------------------------------------------------------------------

// Advances past the reached markers, in order. Returns whether all are reached.
static bool is_over(const struct vr_past *past, struct vr_deferred *deferred) {
    while (deferred->passed < deferred->marker_count && vr_is_past(past, deferred->markers[deferred->passed])) deferred->passed++;
    return deferred->passed == deferred->marker_count;
}

// Appends the finished frees of a chain to captures->ready; the others wait for their next marker.
static void look_at_chain(struct vr_captures *captures, struct vr_past *past, struct vr_deferred *first, size_t *ready) {
    for (struct vr_deferred *deferred = first, *next; deferred != NULL; deferred = next) {
        next = deferred->after;
        deferred->chain = VR_CHAIN_NONE;
        if (is_over(past, deferred)) {
            captures->ready[(*ready)++] = deferred;
        } else {
            wait_for_marker(past, deferred);
        }
    }
}

static size_t find_ready(struct vr_captures *captures, struct vr_past *past) {
    struct vr_deferred *fresh = past->fresh, *due = past->due;
    size_t ready = 0;
    past->fresh = past->due = NULL;
    look_at_chain(captures, past, fresh, &ready);
    for (struct vr_deferred *next; due != NULL; due = next) {
        next = due->chains;
        look_at_chain(captures, past, due, &ready);
    }
    return ready;
}

static int by_serial(const void *a, const void *b) {
    const struct vr_deferred *const *x = a, *const *y = b;
    return VR_ORDER((*x)->serial, (*y)->serial);
}

// Returns whether no finished free was missed. For assertions.
VR_INLINE bool all_wait(const struct vr_captures *captures, const struct vr_past *past) {
    for (const struct vr_deferred *deferred = captures->first_deferred; deferred != NULL; deferred = deferred->next) {
        struct vr_deferred anew = *deferred;
        anew.passed = 0;
        if (deferred->markers != NULL && deferred->stream == past->stream && is_over(past, &anew)) return false;
    }
    return true;
}

enum vram_status vr_deferred_reuse(struct vr_device *device, uint64_t stream) {
    VR_ASSERT_ALL_LOCKED(device);
    struct vr_captures *captures = &device->captures;
    struct vr_past *past = NULL;
    if (captures->deferred_count == 0) return VRAM_OK;
    VR_TRY(vr_past_make(&captures->pasts, stream, &past));
    if (past->unchained) chain_anew(captures, past);
    if (past->waiting == 0) return VRAM_OK;
    VR_TRY(vr_past_go_on(device, past));
    if (past->unchained) chain_anew(captures, past);
    const size_t ready = find_ready(captures, past);
    if (ready > 1) qsort(captures->ready, ready, sizeof *captures->ready, by_serial);
    for (size_t i = 0; i < ready; i++) {
        struct vr_deferred *deferred = captures->ready[i];
        vr_uses_clear(device->allocator, vr_block_at(device->allocator, deferred->block));
        vr_complete_free(device, deferred->block, true);
        remove_deferred(device, deferred);
    }
    assert(VRAM_CHECK < 2 || all_wait(captures, past));
    return VRAM_OK;
}

bool vr_is_deferred(const struct vr_device *device, uint32_t block) {
    for (const struct vr_deferred *deferred = device->captures.first_deferred; deferred != NULL; deferred = deferred->next) {
        if (deferred->block == block) return true;
    }
    return false;
}
