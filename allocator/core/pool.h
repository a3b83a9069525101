// pool.h: the operations on one pool's free memory: search, split, merge. All under the lock of the pool's shard.
#ifndef VR_CORE_POOL_H
#define VR_CORE_POOL_H

#include "core/size_rules.h"
#include "core/state.h"

// Best fit (allocator.md §best-fit): the block that would be handed out for `rounded` bytes, still in the index; 0 if none.
// with_expandable: blocks of expandable segments may be taken (the shard's own setting, but for use_on_oom).
uint32_t vr_pool_search(const struct vr_shard *shard, unsigned kind, uint64_t rounded, bool with_expandable);
// Whether handing out `rounded` bytes of the block splits it (allocator.md §splitting).
bool vr_pool_splits(const struct vr_shard *shard, const struct vr_block *block, uint64_t rounded);

// Makes sure the shard has `count` (at most 32) spare records. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_shard_refill(struct vr_shard *shard);
VR_INLINE enum vram_status vr_shard_reserve_records(struct vr_shard *shard, uint32_t count) {
    return VR_LIKELY(shard->spare_count >= count) ? VRAM_OK : vr_shard_refill(shard);
}
// Gives a record back.
VR_NOINLINE void vr_shard_give_records(struct vr_shard *shard);
VR_INLINE void vr_shard_recycle(struct vr_shard *shard, uint32_t block) {
    vr_block_at(shard->device->allocator, block)->state = VR_UNUSED;
    if (VR_UNLIKELY(shard->spare_count == VR_COUNT_OF(shard->spare))) vr_shard_give_records(shard);
    shard->spare[shard->spare_count++] = block;
}

// Cuts `size` bytes off the low end; returns the new block of the rest, in the same state, linked but in no index. A spare record must be
// there.
uint32_t vr_block_split(struct vr_shard *shard, uint32_t block, uint64_t size);
// The same where the rest is a new block to PyTorch, too; and what comes before a split of which the low end is the new one (numbers of
// struct vr_index_arena, which must be there for the latter).
uint32_t vr_block_split_numbered(struct vr_shard *shard, uint32_t block, uint64_t size);
void vr_number_split(struct vr_shard *shard, uint32_t block);
// Absorbs the next neighbour, which is in no index. Returns `block`.
void vr_block_absorb_next(struct vr_shard *shard, uint32_t block);

// A slot (source/paged.h) of exactly this size that is free, which no index knows, and where that is noted.
struct vr_paged_found {
    uint32_t block;
    uint32_t slot;
    uint64_t *ready, bit;
};
// Whether there is one. It is handed out; it is free again.
bool vr_paged_find(const struct vr_shard *shard, uint64_t rounded, struct vr_paged_found *found);
void vr_paged_take_found(struct vr_shard *shard, const struct vr_paged_found *found);
// The same by its block; 0: none.
VR_INLINE uint32_t vr_paged_ready(const struct vr_shard *shard, uint64_t rounded) {
    struct vr_paged_found found;
    return vr_paged_find(shard, rounded, &found) ? found.block : 0;
}
void vr_paged_take(struct vr_shard *shard, uint32_t block);
void vr_paged_give(struct vr_shard *shard, uint32_t block);
VR_INLINE bool vr_is_slot(const struct vr_block *block) { return VR_UNLIKELY(block->expandable == VR_EXPANDABLE_SLOT); }

// Where in the free block a request begins (allocator.md §splitting): above its beginning only with base_addr_aligned_kb.
VR_INLINE uint64_t vr_pool_address_in(const struct vr_shard *shard, const struct vr_block *block, uint64_t rounded) {
    if (VR_LIKELY(shard->device->options.base_alignment_kib == 0) || !shard->expandable || vr_is_slot(block)) return block->address;
    return vr_aligned_address(&shard->device->options, block->address, block->size, rounded);
}

// Into and out of the index of the block's pool; starts its age.
void vr_pool_insert(struct vr_shard *shard, uint32_t block);
void vr_pool_remove(struct vr_shard *shard, uint32_t block);

// What handing out `block_size` bytes of a free block changes (allocator.md §counters). was_split: it has neighbours. requested: the
// client's size.
VR_INLINE void vr_delta_of_hand_out(bool was_split, uint64_t size, uint64_t block_size, uint64_t requested, struct vr_delta *delta) {
    *delta = (struct vr_delta){{[VR_F_COUNT] = 1, [VR_F_BYTES] = (int64_t)block_size, [VR_F_REQUESTED] = (int64_t)requested}};
    if (block_size != size) {
        delta->of[VR_F_SPLITS] = was_split ? 0 : 1;
        delta->of[VR_F_SPLIT_BYTES] = was_split ? -(int64_t)block_size : (int64_t)(size - block_size);
    } else if (was_split) {
        delta->of[VR_F_SPLITS] = -1;
        delta->of[VR_F_SPLIT_BYTES] = -(int64_t)block_size;
    }
}
// The same of a block that is whole, in an expandable segment or not.
VR_INLINE void vr_delta_of_malloc(const struct vr_block *block, uint64_t block_size, uint64_t requested, struct vr_delta *delta) {
    if (VR_UNLIKELY(block->expandable)) {
        *delta = (struct vr_delta){{[VR_F_COUNT] = 1, [VR_F_BYTES] = (int64_t)block_size, [VR_F_REQUESTED] = (int64_t)requested}};
    } else {
        vr_delta_of_hand_out((block->previous | block->next) != 0, block->size, block_size, requested, delta);
    }
}
// What making a block reusable changes in the inactive_split families, which *delta says nothing of yet.
void vr_delta_of_merge(const struct vram_allocator *allocator, const struct vr_block *block, struct vr_delta *delta);

// Merges with free neighbours (previous, then next) and puts the result into the index. The block is in no index.
// Returns the block that stands now.
uint32_t vr_pool_merge(struct vr_shard *shard, uint32_t block);
// The free of the pool's last block, whose books are open: what it would merge is left undone.
VR_INLINE void vr_pool_leave_undone(struct vr_pool *pool, struct vr_block *item, uint32_t block) {
    assert(pool->pair.block == block);
    item->state = VR_LAZY;
    pool->lazy = pool->ready = block;
}
// The same of a free that is booked, and whose books were closed.
VR_INLINE void vr_pool_leave_booked(struct vr_pool *pool, struct vr_block *item, uint32_t block) {
    assert(pool->last == block && pool->pair.block == 0);
    item->state = VR_LAZY;
    pool->lazy = block;
    pool->pair.size = item->size;
    pool->pair.requested = item->requested;
}
// Closes the books of the pool's pair where they are open.
VR_INLINE void vr_pool_close_pair(struct vr_shard *shard, unsigned kind) {
    struct vr_pool *pool = &shard->pool[kind];
    pool->ready = 0;
    if (pool->pair.block == 0) return;
    if (VR_LIKELY(pool->pair.rounds == 0)) {
        pool->lazy != 0 ? vr_hot_pair_close_first(&shard->counters, kind, &pool->pair)
                        : vr_hot_pair_close_out(&shard->counters, kind, &pool->pair);
    } else {
        vr_hot_pair_close(&shard->counters, kind, &pool->pair, pool->lazy != 0);
    }
}
// Does what a LAZY block's free left undone, closes the books of the pair, and forgets `last`.
VR_NOINLINE void vr_pool_settle_now(struct vr_shard *shard, unsigned kind);
VR_INLINE void vr_pool_settle(struct vr_shard *shard, unsigned kind) {
    struct vr_pool *pool = &shard->pool[kind];
    if (pool->lazy != 0 || VR_UNLIKELY(pool->pair.block != 0 && pool->pair.rounds != 0)) {
        vr_pool_settle_now(shard, kind);
    } else if (pool->pair.block != 0) {
        vr_hot_pair_close_out(&shard->counters, kind, &pool->pair);
    }
    pool->last = 0;
    pool->beside_from = VR_NOT_SEARCHED;
}
// The block was handed out for a request of so many bytes, rounded, and vr_rises() of what that changes are booked: opens the books of the
// pair that this may be the beginning of. The pool is settled.
VR_INLINE void vr_pool_begin_pair(struct vr_pool *pool, uint32_t block, uint64_t rounded, const struct vr_delta *delta) {
    vr_hot_pair_open(&pool->pair, block, delta);
    pool->last = block;
    pool->last_rounded = rounded;
}

// The same as vr_round_request(), with a shortcut for the usual case of no divisors.
VR_INLINE uint64_t vr_round_for(const struct vr_device *device, uint64_t size_bytes) {
    return VR_UNLIKELY(device->divisions) ? vr_round_request(&device->options, size_bytes) : vr_round_plain(size_bytes);
}

VR_INLINE unsigned vr_pool_kind(uint64_t rounded) { return vr_is_small(rounded) ? VR_SMALL : VR_LARGE; }

// Without neighbours: it spans its segment.
VR_INLINE bool vr_is_unsplit(const struct vr_block *block) { return block->previous == 0 && block->next == 0; }

// Free, mapped, and so absorbable by a neighbour of the same segment.
VR_INLINE bool vr_is_free(const struct vram_allocator *allocator, uint32_t block) {
    return block != 0 && vr_block_at(allocator, block)->state == VR_FREE;
}

#endif
