// pair_hints.h: from an address to the pool whose pair repeats (pool.h), without the address map: one look that does not wait for what the
// hand-out before it wrote. A hint says what was true once; only under the lock of the shard it names can be told whether it still is.
#ifndef VR_CORE_PAIR_HINTS_H
#define VR_CORE_PAIR_HINTS_H

#include "core/device.h"

// 47 bits of the address, a multiple of 512, from bit 9 on; whether the pool is the small one; the shard's number.
VR_INLINE uint64_t vr_pair_hint(uint64_t address, uint8_t small, uint32_t shard) { return address << 8 | (uint64_t)small << 16 | shard; }
VR_INLINE bool vr_pair_hints_at(uint64_t hint, uint64_t address) { return (hint ^ address << 8) >> 17 == 0; }

// A pool has one pair at a time, and those of two pools lie in two segments, mostly of 2 MiB at least: few share a place.
VR_INLINE _Atomic uint64_t *vr_pair_hint_place(struct vram_allocator *allocator, uint64_t address) {
    return &allocator->pair_hints[address >> 21 & (VR_PAIR_HINTS - 1)];
}

// Two pairs at one place would write it in turn for ever: each does so once in a while.
enum { VR_PAIR_ROUNDS_PER_HINT = 1024 };
VR_NOINLINE void vr_pair_hint_now(struct vram_allocator *allocator, const struct vr_block *item);
// The same at once, where it is not there already.
VR_INLINE void vr_pair_hint_set(struct vram_allocator *allocator, const struct vr_shard *shard, const struct vr_block *item) {
    const uint64_t hint = vr_pair_hint(item->address, item->small, shard->number);
    _Atomic uint64_t *place = vr_pair_hint_place(allocator, item->address);
    if (atomic_load_explicit(place, memory_order_relaxed) != hint) atomic_store_explicit(place, hint, memory_order_release);
}
// The block of the pair was put back. Under the shard's lock.
VR_INLINE void vr_pair_hint_leave(struct vram_allocator *allocator, const struct vr_hot_pair *pair, const struct vr_block *item) {
    if (VR_UNLIKELY(pair->rounds % VR_PAIR_ROUNDS_PER_HINT == 1)) vr_pair_hint_now(allocator, item);
}

// Puts the block at `address` back, the free left undone, if a hint leads to it and nobody listens.
VR_INLINE bool vr_put_back_hinted(struct vram_allocator *allocator, uint64_t address) {
    const uint64_t hint = atomic_load_explicit(vr_pair_hint_place(allocator, address), memory_order_acquire);
    if (!vr_pair_hints_at(hint, address) || VR_UNLIKELY(hint == 0)) return false; // 0: none, which address 0 would match
    struct vr_shard *shard = allocator->shards[hint & 0xffff];
    if (!vr_shard_try_lock(shard)) return false;
    struct vr_pool *pool = &shard->pool[(hint >> 16 & 1) != 0 ? VR_SMALL : VR_LARGE];
    const uint32_t block = pool->pair.block;
    struct vr_block *item = vr_block_at(allocator, block);
    const bool found = vr_is_allocated_at(item, address, shard) && item->held.uses == 0 && !vr_has_listener(shard->device);
    if (VR_LIKELY(found)) {
        assert(VRAM_CHECK < 2 || vr_address_map_find(&allocator->addresses, address) == block);
        vr_pool_leave_undone(pool, item, block);
    } else {
        atomic_store_explicit(vr_pair_hint_place(allocator, address), 0, memory_order_relaxed);
    }
    vr_shard_unlock(shard);
    return found;
}

#endif
