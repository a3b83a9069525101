// vram_free(): the fast way under one shard's lock, that of a block with uses under the device's mutex besides, the slow way under all of a
// device's locks; and vram_record_stream().
#include "core/capture/captures.h"
#include "core/pair_hints.h"
#include "core/plain.h"
#include "core/raw.h"
#include "core/serve.h"
#include "core/source/backend.h"

static void delta_of_free(const struct vr_block *item, struct vr_delta *delta) {
    *delta = (struct vr_delta){{[VR_F_COUNT] = -1, [VR_F_BYTES] = -(int64_t)item->size, [VR_F_REQUESTED] = -(int64_t)item->requested}};
}

// The block is the last one handed out and nothing has happened since: leave the merge for later. False when its inactive_split would be a
// new peak beyond the allowance, because somebody else needed the room that the pair's books kept.
VR_INLINE bool put_back_lazily(struct vr_shard *shard, struct vr_pool *pool, uint32_t block, bool notified) {
    struct vr_block *item = vr_block_at(shard->device->allocator, block);
    const unsigned kind = item->small ? VR_SMALL : VR_LARGE;
    if (pool->pair.block != block) {
        if (VR_UNLIKELY(!vr_hot_pair_open_again(&shard->counters, kind, &pool->pair, block, item->size, item->requested))) return false;
    } else if (!notified) {
        vr_pair_hint_leave(shard->device->allocator, &pool->pair, item);
    }
    if (notified) vr_notify_freed(shard, item);
    vr_pool_leave_undone(pool, item, block);
    return true;
}

// The pair that repeats: see vr_take_ready() of cached.h.
VR_INLINE bool put_back_ready(struct vr_shard *shard, struct vr_block *item, uint32_t block) {
    struct vr_pool *pool = &shard->pool[item->small ? VR_SMALL : VR_LARGE];
    if (pool->pair.block != block || item->held.uses != 0) return false;
    vr_pool_leave_undone(pool, item, block);
    return true;
}

// notified: somebody listens, a constant to the compiler.
VR_INLINE bool put_back(struct vr_shard *shard, uint32_t block, bool notified) {
    struct vr_device *device = shard->device;
    struct vr_block *item = vr_block_at(device->allocator, block);
    if (VR_UNLIKELY(item->held.uses != 0 || item->marks)) return false;
    const unsigned kind = item->small ? VR_SMALL : VR_LARGE;
    struct vr_pool *pool = &shard->pool[kind];
    if (pool->last == block && put_back_lazily(shard, pool, block, notified)) return true;
    vr_pool_settle(shard, kind);
    struct vr_delta delta;
    delta_of_free(item, &delta);
    if (VR_LIKELY(shard->plain && !item->expandable)) {
        const struct vr_free_beside beside = vr_plain_beside(&device->allocator->arena, item);
        vr_plain_delta(&device->allocator->arena, item, beside, &delta);
        if (VR_UNLIKELY(!vr_shard_book(shard, kind, &delta, VR_F_SPLITS))) return false;
        if (notified) vr_notify_freed(shard, item);
        (void)vr_plain_merge(shard, kind, block, beside);
        return true;
    }
    if (!item->expandable) vr_delta_of_merge(device->allocator, item, &delta);
    if (VR_UNLIKELY(!vr_shard_book(shard, kind, &delta, VR_F_SPLITS))) return false;
    if (notified) vr_notify_freed(shard, item);
    if (item->expandable == VR_EXPANDABLE_SLOT) {
        vr_paged_give(shard, block);
    } else {
        (void)vr_pool_merge(shard, block);
    }
    return true;
}

// A block with uses waits for them: by fences, or in a capture until it shows that they are over. Where one of the streams was destroyed
// there is no fence for it: the host waits, once captures allow it. *held: the block still waits afterwards.
static enum vram_status hold(struct vr_device *device, uint32_t block, bool *held) {
    struct vr_block *item = vr_block_at(device->allocator, block);
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    bool put_off = vr_must_defer(device, item), gone = false;
    enum vram_status status = put_off ? VRAM_OK : vr_fences_record(device, block, &gone);
    put_off |= gone && vr_any_captures(device);
    if (put_off) status = vr_defer(device, block);
    *held = put_off || !gone;
    if (!*held) status = vr_uses_wait(device->allocator, item);
    vr_context_leave(&guard);
    return status;
}

void vr_request_free(struct vr_device *device, uint32_t block, bool held) {
    struct vr_block *item = vr_block_at(device->allocator, block);
    struct vr_shard *shard = vr_shard_of(device->allocator, item);
    const int64_t size = (int64_t)item->size;
    const struct vr_delta delta = {{[VR_F_COUNT] = -1, [VR_F_BYTES] = -size}};
    assert(item->state == VR_ALLOCATED);
    vr_notify_block(shard, VR_RECORD_FREE_REQUESTED, item);
    item->state = VR_PENDING;
    vr_device_book(shard, item->small ? VR_SMALL : VR_LARGE, &delta, held ? 1 : 0, held ? size : 0);
    vr_stat_add(&device->stats.oversize_allocations, -(int64_t)item->oversize);
    item->marks = 0;
}

// The same under the device's mutex and the lock of the block's shard, where nobody listens. The books of the pair are closed: the block is
// out, but not back.
static void request_free_beside(struct vr_shard *shard, struct vr_block *item, uint32_t block) {
    const unsigned kind = item->small ? VR_SMALL : VR_LARGE;
    assert(item->state == VR_ALLOCATED && !item->marks && !vr_has_listener(shard->device));
    if (shard->pool[kind].pair.block == block) vr_pool_close_pair(shard, kind);
    item->state = VR_PENDING;
    vr_totals_start_waiting(&shard->device->stats.totals, &shard->counters, kind, (int64_t)item->size);
}

// *done: false, and nothing has changed, where only all locks will do.
static enum vram_status fence_beside(struct vr_shard *shard, uint32_t block, bool *done) {
    struct vr_device *device = shard->device;
    struct vr_block *item = vr_block_at(device->allocator, block);
    struct vr_context_guard guard;
    bool gone = false;
    *done = true;
    VR_TRY(vr_context_enter(device, &guard));
    *done = !vr_must_defer(device, item);
    enum vram_status status = VRAM_OK;
    if (VR_LIKELY(*done)) status = vr_fences_record(device, block, &gone);
    vr_context_leave(&guard);
    if (VR_UNLIKELY(gone)) *done = false;
    if (VR_LIKELY(*done && status == VRAM_OK)) request_free_beside(shard, item, block);
    return status;
}

// The free of a block with uses, where nothing but fences is in anybody's way. The shard is locked before and afterwards.
VR_NOINLINE static enum vram_status free_beside(struct vr_shard *shard, uint32_t block, uint64_t address, bool *done) {
    struct vr_device *device = shard->device;
    const struct vr_block *item = vr_block_at(device->allocator, block);
    enum vram_status status = VRAM_OK;
    *done = vr_device_lock_beside(shard) || (vr_is_allocated_at(item, address, shard) && item->held.uses != 0);
    if ((atomic_load_explicit(&device->gate, memory_order_relaxed) & ~(uint32_t)VR_GATE_FENCES) != 0 || item->marks) *done = false;
    if (VR_LIKELY(*done)) status = fence_beside(shard, block, done);
    vr_mutex_unlock(&device->mutex);
    return status;
}

void vr_free_now(struct vr_device *device, uint32_t block) {
    vr_request_free(device, block, false);
    vr_complete_free(device, block, false);
}

static enum vram_status free_locked(struct vr_device *device, uint32_t block) {
    if (vr_block_at(device->allocator, block)->held.uses == 0) {
        vr_free_now(device, block);
        return VRAM_OK;
    }
    bool held = true;
    VR_TRY(hold(device, block, &held));
    vr_request_free(device, block, held);
    if (!held) vr_complete_free(device, block, false);
    return VRAM_OK;
}

enum vram_status vr_free_slow(struct vram_allocator *allocator, uint64_t address) {
    struct vr_device *device = NULL;
    const uint32_t block = vr_find_and_lock_device(allocator, address, &device);
    if (block == 0) return VRAM_INVALID_POINTER;
    const enum vram_status status = free_locked(device, block);
    vr_device_unlock(device);
    return status;
}

// With a listener. The shard is locked, and is not any more afterwards. Called by the public function itself: see the depth given to
// vr_gather().
VR_NOINLINE static enum vram_status take_back_notified(struct vram_allocator *allocator, struct vr_shard *shard, uint32_t block,
                                                       uint64_t address) {
    vr_current_stack_set(0);
    if (vr_takes_stack(shard->device, VR_LEVEL_ALL)) {
        vr_shard_unlock(shard);
        vr_gather(shard->device, VR_LEVEL_ALL, 2);
        block = vr_find_and_lock(allocator, address, &shard);
        if (block == 0) return vr_raw_free(allocator, address);
    }
    const bool done = vr_has_listener(shard->device) && put_back(shard, block, true);
    vr_shard_unlock(shard);
    return done ? VRAM_OK : vr_free_slow(allocator, address);
}

// The shard is locked, and is not any more afterwards.
VR_INLINE enum vram_status take_back_locked(struct vram_allocator *allocator, struct vr_shard *shard, uint32_t block, uint64_t address) {
    if (VR_UNLIKELY(vr_has_listener(shard->device))) return take_back_notified(allocator, shard, block, address);
    bool done = put_back(shard, block, false);
    enum vram_status status = VRAM_OK;
    if (VR_UNLIKELY(!done && vr_block_at(allocator, block)->held.uses != 0)) status = free_beside(shard, block, address, &done);
    vr_shard_unlock(shard);
    return VR_LIKELY(done) ? status : vr_free_slow(allocator, address);
}

// What the leaf hands on with the shard locked.
VR_NOINLINE static enum vram_status take_back(struct vram_allocator *allocator, struct vr_shard *shard, uint32_t block, uint64_t address) {
    const enum vram_status status = take_back_locked(allocator, shard, block, address);
    VR_NO_TAIL_CALL();
    return status;
}

// The same where somebody listens. Who takes no stack of the call is told of a pair that repeats here.
VR_NOINLINE static enum vram_status take_back_without_stack(struct vram_allocator *allocator, struct vr_shard *shard, uint32_t block,
                                                            uint64_t address) {
    struct vr_block *item = vr_block_at(allocator, block);
    enum vram_status status = VRAM_OK;
    if (VR_LIKELY(!vr_takes_stack(shard->device, VR_LEVEL_ALL)) && put_back_ready(shard, item, block)) {
        vr_current_stack_set(0);
        vr_notify_freed(shard, item);
        vr_shard_unlock(shard);
    } else {
        status = take_back_notified(allocator, shard, block, address);
    }
    VR_NO_TAIL_CALL();
    return status;
}

// Nothing of ours starts there, or somebody has the lock of its shard.
VR_NOINLINE static enum vram_status find_and_take_back(struct vram_allocator *allocator, uint64_t address) {
    struct vr_shard *shard = NULL;
    const uint32_t block = vr_find_and_lock(allocator, address, &shard);
    // No block starts at 0: the address map says so, and the hot path need not ask.
    const enum vram_status status = block != 0     ? take_back_locked(allocator, shard, block, address)
                                    : address != 0 ? vr_raw_free(allocator, address)
                                                   : VRAM_OK;
    VR_NO_TAIL_CALL();
    return status;
}

void vr_pair_hint_now(struct vram_allocator *allocator, const struct vr_block *item) {
    vr_pair_hint_set(allocator, vr_shard_of(allocator, item), item);
}

// A leaf, as vram_malloc() is.
enum vram_status vram_free(struct vram_allocator *allocator, uint64_t address) {
    if (vr_put_back_hinted(allocator, address)) return vr_checked(allocator, VRAM_OK);
    const uint32_t block = vr_address_map_find(&allocator->addresses, address);
    struct vr_block *item = vr_block_at(allocator, block);
    struct vr_shard *shard = vr_shard_of(allocator, item);
    enum vram_status status = VRAM_OK;
    if (VR_UNLIKELY(block == 0) || !vr_shard_try_lock(shard)) {
        status = find_and_take_back(allocator, address);
    } else if (!vr_is_allocated_at(item, address, shard)) {
        vr_shard_unlock(shard);
        status = find_and_take_back(allocator, address);
    } else if (VR_UNLIKELY(vr_has_listener(shard->device))) {
        status = take_back_without_stack(allocator, shard, block, address);
    } else {
        status = take_back(allocator, shard, block, address);
    }
    VR_NO_TAIL_CALL();
    return vr_checked(allocator, status);
}

// While captures are under way it matters whether the use is a captured one: its stream takes part now. A use of which that is not known is
// fenced once the stream captures no more.
static enum vram_status record_in_capture(struct vram_allocator *allocator, uint64_t address, uint64_t stream) {
    struct vr_device *device = NULL;
    const uint32_t block = vr_find_and_lock_device(allocator, address, &device);
    if (block == 0) return VRAM_INVALID_POINTER;
    struct vr_block *item = vr_block_at(allocator, block);
    enum vram_status status = VRAM_OK;
    if (vr_shard_of(allocator, item)->stream != stream) {
        status = vr_uses_add(allocator, item, stream, vr_surely_captures(device, stream));
    }
    vr_device_unlock(device);
    return status;
}

enum vram_status vram_record_stream(struct vram_allocator *allocator, uint64_t address, uint64_t stream) {
    VR_REQUIRE(allocator);
    if (address == 0) return VRAM_OK;
    VR_TRY(vr_know_stream(allocator, stream));
    struct vr_shard *shard = NULL;
    struct vr_raw_block raw;
    const uint32_t block = vr_find_and_lock(allocator, address, &shard);
    // Raw blocks need no fence: the driver's free waits for the device.
    if (block == 0 && allocator->backend->record_stream != NULL) return allocator->backend->record_stream(allocator, address, stream);
    if (block == 0) return vr_raw_find(allocator, address, &raw) ? VRAM_OK : VRAM_INVALID_POINTER;
    enum vram_status status = VRAM_OK;
    const bool capturing = (atomic_load_explicit(&shard->device->gate, memory_order_relaxed) & VR_GATE_CAPTURE) != 0;
    if (!capturing && shard->stream != stream) status = vr_uses_add(allocator, vr_block_at(allocator, block), stream, false);
    vr_shard_unlock(shard);
    return capturing ? record_in_capture(allocator, address, stream) : status;
}
