// pool.h: the operations on one pool's free memory: search, split, merge. All under the device's lock, with the front settled.
#ifndef VR_CORE_POOL_H
#define VR_CORE_POOL_H

#include "core/size_rules.h"
#include "core/state.h"

// Best fit (allocator.md §best-fit): the block that would be handed out for `rounded` bytes, still in the index; 0 if none.
// with_expandable: blocks of expandable segments may be taken (the shard's own setting, but for use_on_oom).
uint32_t vr_pool_search(const struct vr_shard *shard, unsigned kind, uint64_t rounded, bool with_expandable);
// Whether handing out `rounded` bytes of the block splits it (allocator.md §splitting).
bool vr_pool_splits(const struct vr_shard *shard, const struct vr_block *block, uint64_t rounded);

// Makes sure that the shard has `count` (at most 32) spare records. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_shard_reserve_records(struct vr_shard *shard, uint32_t count);
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
// Absorbs the next neighbour, which is in no index.
void vr_block_absorb_next(struct vr_shard *shard, uint32_t block);

// A block of a source with slots, which has no neighbours and is in no index.
VR_INLINE bool vr_is_slot(const struct vr_block *block) { return VR_UNLIKELY(block->expandable == VR_EXPANDABLE_SLOT); }

// Where in the free block a request begins (allocator.md §splitting): above its beginning only with base_addr_aligned_kb.
VR_INLINE uint64_t vr_pool_address_in(const struct vr_shard *shard, const struct vr_block *block, uint64_t rounded) {
    if (VR_LIKELY(shard->device->options.base_alignment_kib == 0) || !shard->expandable || vr_is_slot(block)) return block->address;
    return vr_aligned_address(&shard->device->options, block->address, block->size, rounded);
}

// Into and out of the index of the block's pool; starts its age.
void vr_pool_insert(struct vr_shard *shard, uint32_t block);
void vr_pool_remove(struct vr_shard *shard, uint32_t block);

// What it changes that an allocated block becomes free, and merges with its neighbours.
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

// Merges with free neighbours (next, then previous) and puts the result into the index. The block is in no index. Returns the block that
// remains.
uint32_t vr_pool_merge(struct vr_shard *shard, uint32_t block);

// Without neighbours: it spans its segment.
VR_INLINE bool vr_is_unsplit(const struct vr_block *block) { return block->previous == 0 && block->next == 0; }

// Free, mapped, and so absorbable by a neighbour of the same segment.
VR_INLINE bool vr_is_free(const struct vram_allocator *allocator, uint32_t block) {
    return block != 0 && vr_block_at(allocator, block)->state == VR_FREE;
}

#endif
