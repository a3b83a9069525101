// Frees that captures put off.
#include "core/capture/captures.h"
#include "core/device.h"

// Appends the frontier of a stream's captured work (what its next node would depend on). False when it takes part in no capture.
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

// Markers for a block: none of them where a stream concerned is outside the capture, or used the block before: then only its end will do.
static void mark(const struct vr_device *device, struct vr_deferred *deferred) {
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
    assert(vr_block_at(device->allocator, block)->state == VR_ALLOCATED);
    VR_TRY(VR_GROW(&device->captures, deferred, device->captures.deferred_count + 1));
    struct vr_deferred deferred = {.block = block};
    if (device->options.graph_capture_record_stream_reuse) mark(device, &deferred);
    device->captures.deferred[device->captures.deferred_count++] = deferred;
    vr_device_gate(device, VR_GATE_CAPTURE, true);
    return VRAM_OK;
}

// --- who keeps them waiting -------------------------------------------------------------------------------------------------------------

static void unblock(struct vr_captures *captures, struct vr_deferred *deferred) {
    if (deferred->blocker != 0) captures->blockers[deferred->blocker - 1].count--;
    deferred->blocker = 0;
    while (captures->blocker_count != 0 && captures->blockers[captures->blocker_count - 1].count == 0) captures->blocker_count--;
}

// The stream captures, and keeps this one waiting. Without memory to note it it is looked at again the next time.
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

// Asks each of them. Whether one captures no more.
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

// Leaves an empty place, which pack_deferred() takes out with all others.
static void remove_deferred(struct vr_device *device, size_t at) {
    struct vr_deferred *deferred = &device->captures.deferred[at];
    unblock(&device->captures, deferred);
    free(deferred->markers);
    *deferred = (struct vr_deferred){0};
}

// From `first` on, before which all have a blocker.
static void pack_deferred(struct vr_captures *captures, size_t first) {
    size_t kept = first;
    for (size_t at = first; at < captures->deferred_count; at++) {
        if (captures->deferred[at].block != 0) captures->deferred[kept++] = captures->deferred[at];
    }
    captures->deferred_count = kept;
    captures->looked_at = first;
    while (captures->looked_at < kept && captures->deferred[captures->looked_at].blocker != 0) captures->looked_at++;
    if (kept == 0) captures->mark_ended = false;
}

// Uses recorded in a capture are over: captured streams must have joined before it could end.
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

// A stream that was destroyed since the free takes no fence: its work is waited for with all of the devices', once, so that no later
// request fails of it.
static enum vram_status fence(struct vr_device *device, uint32_t block) {
    const enum vram_status status = vr_fences_record(device, block, NULL);
    if (status != VRAM_DRIVER) return status;
    VR_TRY(vr_uses_wait(device->allocator, vr_block_at(device->allocator, block)));
    vr_complete_free(device, block, true);
    return VRAM_OK;
}

// Whether it waits on, for a stream of its uses that captures.
static bool is_blocked(struct vr_device *device, struct vr_deferred *deferred) {
    struct vr_captures *captures = &device->captures;
    uint64_t stream = 0;
    if (deferred->blocker != 0 && captures->blockers[deferred->blocker - 1].captures) return true;
    unblock(captures, deferred);
    if (!vr_use_captures(device, vr_block_at(device->allocator, deferred->block), &stream)) return false;
    block_by(captures, deferred, stream);
    return true;
}

// `only`: blocks of this pool; NULL: all. While all streams that kept blocks waiting capture on, these wait on: only those that came since
// are looked at, so that a request beside a capture takes as many questions as streams capture.
static enum vram_status convert(struct vr_device *device, const struct vram_pool *only) {
    struct vram_allocator *allocator = device->allocator;
    struct vr_captures *captures = &device->captures;
    const size_t first = ask_blockers(device) ? 0 : captures->looked_at;
    enum vram_status status = VRAM_OK;
    for (size_t at = first; at < captures->deferred_count && status == VRAM_OK; at++) {
        const uint32_t block = captures->deferred[at].block;
        struct vr_block *item = vr_block_at(allocator, block);
        if (only != NULL && vr_shard_of(allocator, item)->owner != only) continue;
        if (is_blocked(device, &captures->deferred[at])) continue;
        drop_captured_uses(allocator, item);
        if (item->held.uses != 0) {
            status = fence(device, block);
        } else {
            vr_complete_free(device, block, true);
        }
        if (status == VRAM_OK) remove_deferred(device, at);
    }
    pack_deferred(captures, first);
    if (status == VRAM_OK) vr_capture_gate(device);
    return status;
}

enum vram_status vr_deferred_convert(struct vr_device *device) { return convert(device, NULL); }

enum vram_status vr_deferred_convert_pool(struct vr_device *device, const struct vram_pool *pool) { return convert(device, pool); }

// --- reuse inside a capture ------------------------------------------------------------------------------------------------------------

static bool all_past(const struct vr_past *past, const struct vr_deferred *deferred) {
    for (size_t i = 0; i < deferred->marker_count; i++) {
        if (!vr_is_past(past, deferred->markers[i])) return false;
    }
    return deferred->markers != NULL;
}

static bool any_candidate(const struct vr_device *device, uint64_t stream) {
    for (size_t i = 0; i < device->captures.deferred_count; i++) {
        const struct vr_block *block = vr_block_at(device->allocator, device->captures.deferred[i].block);
        if (device->captures.deferred[i].markers != NULL && vr_shard_of(device->allocator, block)->stream == stream) return true;
    }
    return false;
}

enum vram_status vr_deferred_reuse(struct vr_device *device, uint64_t stream) {
    struct vram_allocator *allocator = device->allocator;
    if (!any_candidate(device, stream)) return VRAM_OK;
    const struct vr_past *past = NULL;
    VR_TRY(vr_past_of(device, &device->captures.pasts, stream, &past));
    for (size_t i = 0; i < device->captures.deferred_count; i++) {
        const uint32_t block = device->captures.deferred[i].block;
        struct vr_block *item = vr_block_at(allocator, block);
        if (vr_shard_of(allocator, item)->stream != stream || !all_past(past, &device->captures.deferred[i])) continue;
        vr_uses_clear(allocator, item);
        vr_complete_free(device, block, true);
        remove_deferred(device, i);
    }
    pack_deferred(&device->captures, 0);
    return VRAM_OK;
}

bool vr_is_deferred(const struct vr_device *device, uint32_t block) {
    for (size_t i = 0; i < device->captures.deferred_count; i++) {
        if (device->captures.deferred[i].block == block) return true;
    }
    return false;
}
