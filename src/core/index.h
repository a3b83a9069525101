// index.h: the free blocks of one pool, ordered by (size, tie, address); best fit in a few steps.
//
// Sizes up to 2 MiB have a bin each (they are multiples of 512); above, 64 bins per power of two. A bitmap with a summary
// finds the next non-empty bin in two bit scans. A bin is a treap keyed by (size, tie, address) whose priorities are a hash
// of the block's number: every operation is O(log n) expected whatever the order of frees, and "next in order" exists, which
// the search of expandable segments needs.
#ifndef VR_CORE_INDEX_H
#define VR_CORE_INDEX_H

#include "core/block.h"

enum {
    VR_EXACT_BINS = 4097, // sizes / 512; bin 0 stays empty
    VR_LOG_FIRST = 21,    // above 2 MiB
    VR_LOG_LAST = 44,     // larger ones share the last bin
    VR_BINS = VR_EXACT_BINS + (VR_LOG_LAST - VR_LOG_FIRST + 1) * 64,
    VR_BIN_WORDS = (VR_BINS + 63) / 64,
    VR_SUMMARY_WORDS = (VR_BIN_WORDS + 63) / 64,
};

// How free blocks of equal size compare.
enum vr_order { VR_BY_SIZE_ADDRESS, VR_BY_SIZE_AGE_ADDRESS, VR_BY_SIZE_NUMBER };

// What a comparison needs to look at. Borrowed by every index of an allocator.
struct vr_index_arena {
    struct vr_block *blocks;
    const struct vr_segment *segments;
    enum vr_order order;
    // VR_BY_SIZE_NUMBER only, else NULL: a number of each block, in the order in which PyTorch 2.12 would have made its own records of
    // them. Guarded as the blocks are. Requests take the slow way then (VR_GATE_NUMBERS).
    uint64_t *numbers;
    _Atomic uint64_t numbered;
};

VR_INLINE uint64_t vr_new_number(struct vr_index_arena *arena) {
    return 1 + atomic_fetch_add_explicit(&arena->numbered, 1, memory_order_relaxed);
}

struct vr_index {
    uint64_t summary[VR_SUMMARY_WORDS];
    uint64_t bitmap[VR_BIN_WORDS];
    uint32_t root[VR_BINS];
};

void vr_index_insert(struct vr_index *index, const struct vr_index_arena *arena, uint32_t block);
void vr_index_remove(struct vr_index *index, const struct vr_index_arena *arena, uint32_t block);
// The first block, in order, of at least `size` bytes; 0 if there is none.
uint32_t vr_index_first_at_least(const struct vr_index *index, const struct vr_index_arena *arena, uint64_t size);
// The block after `block` in order; 0 at the end.
uint32_t vr_index_next(const struct vr_index *index, const struct vr_index_arena *arena, uint32_t block);
// Moves a block of the index to another address and size.
void vr_index_move(struct vr_index *index, const struct vr_index_arena *arena, uint32_t block, uint64_t address, uint64_t size);
// Whether a block of this size, segment and address would come before `block`, by the order of the free blocks.
bool vr_index_is_before(const struct vr_index_arena *arena, const struct vr_block *candidate, uint64_t size, uint32_t block);
// The block before `block` in order; 0 at the beginning. block == 0: the last.
uint32_t vr_index_previous(const struct vr_index *index, const struct vr_index_arena *arena, uint32_t block);

// Makes the index all zero again, whatever becomes of its blocks: touches only what is not.
void vr_index_clear(struct vr_index *index);

// Whether bitmap, summary and trees agree, and every block in them is free and where its size belongs; *count of them.
bool vr_index_check(const struct vr_index *index, const struct vr_index_arena *arena, size_t *count);

// The treap alone, of the holes: by address.
void vr_tree_insert(uint32_t *root, const struct vr_index_arena *arena, uint32_t hole);
void vr_tree_remove(uint32_t *root, const struct vr_index_arena *arena, uint32_t hole);
uint32_t vr_tree_first(uint32_t root, const struct vr_index_arena *arena);
// The first hole above `hole` (which need not be in the tree).
uint32_t vr_tree_after(uint32_t root, const struct vr_index_arena *arena, uint32_t hole);

#endif
