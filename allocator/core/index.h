// index.h: the free blocks of one pool, ordered by (size, tie, address); best fit in a few steps.
//
// Sizes up to 2 MiB have a bin each (they are multiples of 512); above, 64 bins per power of two. A bitmap with a summary
// finds the next non-empty bin in two bit scans. A bin with few blocks is a list in their order, from which a block is taken without a
// search. A bin that had more is a treap by (size, tie, address), until one block is left. The priorities are a hash of the block's
// number, so that every operation takes O(log n) steps, whatever the order of frees. The search of expandable segments needs the next
// block in order, which both give.
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
    uint64_t *ages; // of each segment its counter, once more: many lie in one line
    enum vr_order order;
    // VR_BY_SIZE_NUMBER only, else NULL: a number of each block, in the order in which PyTorch 2.12 would have made its own records of
    // them. Guarded as the blocks are.
    uint64_t *numbers;
    _Atomic uint64_t numbered;
};

VR_INLINE uint64_t vr_new_number(struct vr_index_arena *arena) {
    return 1 + atomic_fetch_add_explicit(&arena->numbered, 1, memory_order_relaxed);
}

enum { VR_BLOCK_BITS = 25, VR_MOST_LISTED = 24, VR_BIN_TREE = 127 };

// All zero: empty.
struct vr_bin {
    uint32_t head : VR_BLOCK_BITS;        // the first block of the list, or the root of the tree
    uint32_t length : 32 - VR_BLOCK_BITS; // of the list; VR_BIN_TREE: it is a tree
};

struct vr_index {
    uint64_t summary[VR_SUMMARY_WORDS];
    uint64_t bitmap[VR_BIN_WORDS];
    struct vr_bin bins[VR_BINS];
};

VR_INLINE unsigned vr_bin_of(uint64_t size) {
    const uint64_t units = size >> 9;
    if (VR_LIKELY(units < VR_EXACT_BINS)) return (unsigned)units;
    const unsigned log = vr_log2_floor(size);
    if (log > VR_LOG_LAST) return VR_BINS - 1;
    return VR_EXACT_BINS + (log - VR_LOG_FIRST) * 64 + (unsigned)((size >> (log - 6)) & 63);
}

VR_INLINE bool vr_index_is_empty(const struct vr_index *index) {
    uint64_t any = 0;
    for (unsigned i = 0; i < VR_SUMMARY_WORDS; i++) any |= index->summary[i];
    return any == 0;
}
void vr_index_insert(struct vr_index *index, const struct vr_index_arena *arena, uint32_t block);
void vr_index_remove(struct vr_index *index, const struct vr_index_arena *arena, uint32_t block);
// Whether there may be a block of at least `size` bytes: false tells for sure, and costs less than the search.
VR_INLINE bool vr_index_may_have(const struct vr_index *index, uint64_t size) {
    const unsigned word = vr_bin_of(size) / 64;
    uint64_t any = index->summary[word / 64] >> word % 64;
    for (unsigned i = word / 64 + 1; i < VR_SUMMARY_WORDS; i++) any |= index->summary[i];
    return any != 0;
}
// The first block, in order, of at least `size` bytes; 0 if there is none.
uint32_t vr_index_first_at_least(const struct vr_index *index, const struct vr_index_arena *arena, uint64_t size);
// The block after `block` in order; 0 at the end.
uint32_t vr_index_next(const struct vr_index *index, const struct vr_index_arena *arena, uint32_t block);
// The block before `block` in order; 0 at the beginning. block == 0: the last.
uint32_t vr_index_previous(const struct vr_index *index, const struct vr_index_arena *arena, uint32_t block);

// Makes the index all zero again, whatever becomes of its blocks: touches only what is not.
void vr_index_clear(struct vr_index *index);

// Whether bitmap, summary and trees agree, and every block in them is free and where its size belongs; *count of them.
bool vr_index_check(const struct vr_index *index, const struct vr_index_arena *arena, size_t *count);

// The treap alone, by address: of the holes, and of the records that stand for segments (segments.h).
void vr_tree_insert(uint32_t *root, const struct vr_index_arena *arena, uint32_t hole);
void vr_tree_remove(uint32_t *root, const struct vr_index_arena *arena, uint32_t hole);
uint32_t vr_tree_first(uint32_t root, const struct vr_index_arena *arena);
// The last one at or below the address; 0: there is none.
uint32_t vr_tree_at_or_before(uint32_t root, const struct vr_index_arena *arena, uint64_t address);
// The one after a record of the tree; 0 at the end. All of them one after the other take two steps each.
uint32_t vr_tree_next(const struct vr_index_arena *arena, uint32_t record);

#endif
