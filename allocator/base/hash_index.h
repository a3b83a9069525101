// hash_index.h: rows of an array of its owner's, found by what they hold: strings, frames, stacks.
//
// The table keeps 32 bits of each row's hash and the row's number, 8 bytes in all; the rows and what makes two of them equal are the
// owner's. The hash must begin with the index's secret (vr_hash_bytes(index->secret, ...)), so that a file cannot be made to collide.
#ifndef VR_BASE_HASH_INDEX_H
#define VR_BASE_HASH_INDEX_H

#include "base/hash.h"

// Open addressing with linear probing; at most five of eight slots are used. Rows never leave. One thread at a time.
struct vr_hash_index {
    uint64_t *slots; // upper half of the hash | row + 1; 0: free
    size_t mask;     // capacity - 1, or 0 without slots
    size_t count;
    uint64_t secret; // set by vr_hash_index_init(), and as long as the index lives
};

// An empty index.
void vr_hash_index_init(struct vr_hash_index *index);
// Also for one that is all-zero. To be used again it must be begun again.
void vr_hash_index_release(struct vr_hash_index *index);
// Room for one row more. NO_HOST_MEMORY, all untouched.
enum vram_status vr_hash_index_reserve(struct vr_hash_index *index);
// The bytes by which vr_hash_index_reserve() would make the table grow: for those who keep a budget.
size_t vr_hash_index_growth_bytes(const struct vr_hash_index *index);
// Every row is reached from its hash, `count` are there, and at least three of eight slots are free.
bool vr_hash_index_check(const struct vr_hash_index *index);

#define VR_HASH_INDEX_HOME(index, hash) ((size_t)((hash) >> 32) & (index)->mask)

// Whether vr_hash_index_reserve() would have nothing to do.
VR_INLINE bool vr_hash_index_has_room(const struct vr_hash_index *index) { return index->count + 1 <= (index->mask + 1) / 8 * 5; }

// Adds `row` (below UINT32_MAX), for which room was made and which is not there.
VR_INLINE void vr_hash_index_add(struct vr_hash_index *index, uint64_t hash, uint32_t row) {
    assert(row != UINT32_MAX && vr_hash_index_has_room(index));
    size_t at = VR_HASH_INDEX_HOME(index, hash);
    while (index->slots[at] != 0) at = (at + 1) & index->mask;
    index->slots[at] = (hash >> 32 << 32) | (row + 1);
    index->count++;
}

// Finds the row for which `equal`, an expression of `row`, holds, among those of this hash: true into `found`, and the row's number into
// `row` (a uint32_t variable); false where there is none.
#define VR_HASH_INDEX_FIND(index, hash, row, equal, found)                                                                                 \
    do {                                                                                                                                   \
        (found) = false;                                                                                                                   \
        if ((index)->slots == NULL) break;                                                                                                 \
        for (size_t vr_at_ = VR_HASH_INDEX_HOME(index, hash); (index)->slots[vr_at_] != 0; vr_at_ = (vr_at_ + 1) & (index)->mask) {        \
            const uint64_t vr_slot_ = (index)->slots[vr_at_];                                                                              \
            if (vr_slot_ >> 32 != (hash) >> 32) continue;                                                                                  \
            (row) = (uint32_t)vr_slot_ - 1;                                                                                                \
            if (equal) {                                                                                                                   \
                (found) = true;                                                                                                            \
                break;                                                                                                                     \
            }                                                                                                                              \
        }                                                                                                                                  \
    } while (0)

#endif
