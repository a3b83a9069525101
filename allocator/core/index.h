// index.h: the free blocks of one pool, ordered by (size, tie, address). Finds the best fit in a few steps.
//
// Sizes up to 2 MiB have a bin each (they are multiples of 512); above, there are 64 bins per power of two. A bitmap with a summary finds
// the next non-empty bin in two bit scans. A bin with few blocks is a sorted list, whose first block is taken without a search. A bin that
// had more blocks is a treap by (size, tie, address) until one block is left. Its priorities are hashes of the blocks' numbers, so every
// operation takes O(log n) steps whatever the order of frees. Both forms give the next block in order, which the search of expandable
// segments needs.
#ifndef VR_CORE_INDEX_H
#define VR_CORE_INDEX_H

#include "core/block.h"

enum {
    VR_EXACT_BINS = 4097, // sizes / 512; bin 0 stays empty
    VR_LOG_FIRST = 21,    // above 2 MiB
    VR_LOG_LAST = 44,     // larger sizes share the last bin
    VR_BINS = VR_EXACT_BINS + (VR_LOG_LAST - VR_LOG_FIRST + 1) * 64,
    VR_BIN_WORDS = (VR_BINS + 63) / 64,
    VR_SUMMARY_WORDS = (VR_BIN_WORDS + 63) / 64,
};

// How free blocks of equal size compare: by address, by the age of their segment first, or by number.
enum vr_order { VR_BY_SIZE_ADDRESS, VR_BY_SIZE_AGE_ADDRESS, VR_BY_SIZE_NUMBER };

// The data that comparisons read. Shared by all indices of an allocator.
struct vr_index_arena {
    struct vr_block *blocks;
    uint64_t *ages; // VR_BY_SIZE_AGE_ADDRESS: each segment's counter, else 0; packed, so that many share a cache line
    // VR_BY_SIZE_NUMBER only, else NULL: a number for each block, in the order in which PyTorch 2.12 would have made its own block records.
    // Guarded like the blocks.
    uint64_t *numbers;
    _Atomic uint64_t numbered;
};

VR_INLINE uint64_t vr_new_number(struct vr_index_arena *arena) {
    return 1 + atomic_fetch_add_explicit(&arena->numbered, 1, memory_order_relaxed);
}

enum { VR_BLOCK_BITS = 25, VR_MOST_LISTED = 24, VR_BIN_TREE = 127 };

// Zeroed: empty.
struct vr_bin {
    uint32_t head : VR_BLOCK_BITS;        // the first block of the list, or the root of the tree
    uint32_t length : 32 - VR_BLOCK_BITS; // of the list; VR_BIN_TREE: the bin is a tree
};

struct vr_index {
    uint64_t summary[VR_SUMMARY_WORDS];
    uint64_t bitmap[VR_BIN_WORDS];
    struct vr_bin bins[VR_BINS];
};

VR_INLINE bool vr_index_is_empty(const struct vr_index *index) {
    uint64_t any = 0;
    for (unsigned i = 0; i < VR_SUMMARY_WORDS; i++) any |= index->summary[i];
    return any == 0;
}
void vr_index_insert(struct vr_index *index, const struct vr_index_arena *arena, uint32_t block);
void vr_index_remove(struct vr_index *index, const struct vr_index_arena *arena, uint32_t block);
// Returns false if there is certainly no block of at least `size` bytes. Cheaper than the search.
bool vr_index_may_have(const struct vr_index *index, uint64_t size);
// Returns the first block, in order, of at least `size` bytes, or 0.
uint32_t vr_index_first_at_least(const struct vr_index *index, const struct vr_index_arena *arena, uint64_t size);
// Returns the block after `block` in order, or 0 at the end.
uint32_t vr_index_next(const struct vr_index *index, const struct vr_index_arena *arena, uint32_t block);
// Returns the block before `block` in order, or 0 at the beginning. block == 0: returns the last block.
uint32_t vr_index_previous(const struct vr_index *index, const struct vr_index_arena *arena, uint32_t block);

// Zeroes the index without touching its blocks. Touches only memory that is not zero.
void vr_index_clear(struct vr_index *index);

// Returns whether bitmap, summary and trees agree, and every indexed block is free and in the bin of its size. *count: number of blocks.
bool vr_index_check(const struct vr_index *index, const struct vr_index_arena *arena, size_t *count);

// The treap, ordered by address only: for the holes, and for the records that represent segments (segments.h).
void vr_tree_insert(uint32_t *root, const struct vr_index_arena *arena, uint32_t hole);
void vr_tree_remove(uint32_t *root, const struct vr_index_arena *arena, uint32_t hole);
uint32_t vr_tree_first(uint32_t root, const struct vr_index_arena *arena);
// Returns the last record at or below the address, or 0.
uint32_t vr_tree_at_or_before(uint32_t root, const struct vr_index_arena *arena, uint64_t address);
// Returns the next record of the tree, or 0 at the end. Visiting all of them takes two steps per record.
uint32_t vr_tree_next(const struct vr_index_arena *arena, uint32_t record);

#endif
