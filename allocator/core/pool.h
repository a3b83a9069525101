// pool.h: the operations on one pool's free memory: search, split, merge. Call all of it under the device's lock, with the front settled.
#ifndef VR_CORE_POOL_H
#define VR_CORE_POOL_H

#include "config/size_rules.h"
#include "core/state.h"

// Best fit (allocator.md §best-fit): returns the block that a request of `rounded` bytes would get, still in the index, or 0.
// with_expandable: blocks of expandable segments are allowed (the shard's own setting, except for use_on_oom).
uint32_t vr_pool_search(const struct vr_shard *shard, unsigned kind, uint64_t rounded, bool with_expandable);

// Ensures that the shard has `count` (at most 32) spare records. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_shard_reserve_records(struct vr_shard *shard, uint32_t count);
// vr_shard_recycle() adds a record to the spare ones. If these are full, vr_shard_give_records() first returns half of them to the slab.
VR_NOINLINE void vr_shard_give_records(struct vr_shard *shard);
VR_INLINE void vr_shard_recycle(struct vr_shard *shard, uint32_t block) {
    vr_block_at(shard->device->allocator, block)->state = VR_UNUSED;
    if (VR_UNLIKELY(shard->spare_count == VR_COUNT_OF(shard->spare))) vr_shard_give_records(shard);
    shard->spare[shard->spare_count++] = block;
}

// Cuts `size` bytes off the low end. Returns the new block for the rest, in the same state, linked but in no index. Needs a spare record.
uint32_t vr_block_split(struct vr_shard *shard, uint32_t block, uint64_t size);
// These keep the numbers of struct vr_index_arena as PyTorch would. vr_block_split_numbered() is for splits whose rest is a new block in
// PyTorch too. vr_number_split() precedes a split whose low end is the new one; the numbers must exist.
uint32_t vr_block_split_numbered(struct vr_shard *shard, uint32_t block, uint64_t size);
void vr_number_split(struct vr_shard *shard, uint32_t block);
// Absorbs the next neighbour, which is in no index.
void vr_block_absorb_next(struct vr_shard *shard, uint32_t block);

// Returns whether the block belongs to a source with slots. It then has no neighbours and is in no index.
VR_INLINE bool vr_is_slot(const struct vr_block *block) { return VR_UNLIKELY(block->expandable == VR_EXPANDABLE_SLOT); }

// Returns where in the free block a request begins (allocator.md §splitting): above its start only with base_addr_aligned_kb.
VR_INLINE uint64_t vr_pool_address_in(const struct vr_shard *shard, const struct vr_block *block, uint64_t rounded) {
    if (VR_LIKELY(shard->device->options.base_alignment_kib == 0) || !shard->expandable || vr_is_slot(block)) return block->address;
    return vr_aligned_address(&shard->device->options, block->address, block->size, rounded);
}

// Insert a block into its pool's index, which starts its age, or remove it.
void vr_pool_insert(struct vr_shard *shard, uint32_t block);
void vr_pool_remove(struct vr_shard *shard, uint32_t block);

// Returns how the counters change when an allocated block becomes free and merges with its neighbours.
VR_INLINE struct vr_delta vr_delta_of_free(const struct vram_allocator *allocator, const struct vr_block *block) {
    const int64_t bytes = (int64_t)block->size;
    struct vr_delta delta = {{
        [VR_F_COUNT] = -1,
        [VR_F_BYTES] = -bytes,
        [VR_F_REQUESTED] = -(int64_t)block->requested,
    }};
    if (VR_UNLIKELY(block->expandable)) return delta;
    const struct vr_block *previous = vr_block_at(allocator, block->previous), *next = vr_block_at(allocator, block->next);
    const bool merges_previous = previous->state == VR_FREE, merges_next = next->state == VR_FREE; // block 0 is never free
    const uint32_t outer = (merges_previous ? previous->previous : block->previous) | (merges_next ? next->next : block->next);
    const uint64_t absorbed = (merges_previous ? previous->size : 0) + (merges_next ? next->size : 0);
    delta.of[VR_F_SPLITS] = (int64_t)(outer != 0) - (int64_t)merges_previous - (int64_t)merges_next;
    delta.of[VR_F_SPLIT_BYTES] = outer != 0 ? (int64_t)block->size : -(int64_t)absorbed;
    return delta;
}

// Merges the block, which is in no index, with its free neighbours (next, then previous) and inserts the result into the index. Returns the
// block that remains.
uint32_t vr_pool_merge(struct vr_shard *shard, uint32_t block);

// Returns whether the block has no neighbours: it spans its segment.
VR_INLINE bool vr_is_unsplit(const struct vr_block *block) { return block->previous == 0 && block->next == 0; }

// Returns whether a neighbour of the same segment may absorb the block: it is free and mapped.
VR_INLINE bool vr_is_free(const struct vram_allocator *allocator, uint32_t block) {
    return block != 0 && vr_block_at(allocator, block)->state == VR_FREE;
}

#endif
