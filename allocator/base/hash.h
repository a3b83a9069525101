// hash.h: hashing with a secret per table, and two hash tables: an index of rows, and a map from numbers to numbers.
#ifndef VR_BASE_HASH_H
#define VR_BASE_HASH_H

#include "base/base.h"

// Every hash table mixes its keys with a secret of its own, so that a crafted file cannot choose the slots of its entries. vr_mix64() alone
// does not prevent that: it can be inverted. Use struct vr_map for numbers and struct vr_hash_index for anything else; a third kind of
// table explains why it is needed.

// Mixes `seed` into the secret of the process, for systems without address randomization: the viewer's engine gets its seed from the
// browser. Call it before the first table is made. Any thread.
void vr_hash_seed(uint64_t seed);
// Returns a secret for the table at `where`. It differs per table, and per process if addresses are randomized or a seed was given. Output
// must not depend on it.
uint64_t vr_hash_secret(const void *where);

// Finds rows of the owner's array by content: strings, frames, stacks.
//
// A slot is 8 bytes: 32 bits of the row's hash and the row's number. The owner holds the rows and compares them. Hashes must start from the
// index's secret (vr_hash_bytes(index->secret, ...)), so that a crafted file cannot cause collisions.
//
// Open addressing with linear probing, at most five of eight slots in use. Rows are never removed. One thread at a time.
struct vr_hash_index {
    uint64_t *slots; // upper half of the hash | row + 1; 0: free
    size_t mask;     // capacity - 1, or 0 without slots
    size_t count;
    uint64_t secret; // set by vr_hash_index_init(); constant afterwards
};

// Makes the index empty.
void vr_hash_index_init(struct vr_hash_index *index);
// Accepts a zeroed index. Reinitialize before reuse.
void vr_hash_index_release(struct vr_hash_index *index);
// Makes room for one more row. Returns NO_HOST_MEMORY, leaving the index unchanged, if it cannot.
enum vram_status vr_hash_index_reserve(struct vr_hash_index *index);
// Returns the number of bytes by which vr_hash_index_reserve() would grow the table; callers with a memory budget ask first.
size_t vr_hash_index_growth_bytes(const struct vr_hash_index *index);
// Returns whether every row is reachable from its hash, `count` is right, and at least three of eight slots are free.
bool vr_hash_index_check(const struct vr_hash_index *index);

#define VR_HASH_INDEX_HOME(index, hash) ((size_t)((hash) >> 32) & (index)->mask)

// Returns whether there is room for one more row.
VR_INLINE bool vr_hash_index_has_room(const struct vr_hash_index *index) { return index->count + 1 <= (index->mask + 1) / 8 * 5; }

// Adds `row` (below UINT32_MAX), which must not be in the index. The caller has made room.
VR_INLINE void vr_hash_index_add(struct vr_hash_index *index, uint64_t hash, uint32_t row) {
    assert(row != UINT32_MAX && vr_hash_index_has_room(index));
    size_t at = VR_HASH_INDEX_HOME(index, hash);
    while (index->slots[at] != 0) at = (at + 1) & index->mask;
    index->slots[at] = (hash >> 32 << 32) | (row + 1);
    index->count++;
}

// Searches the rows of this hash for one that satisfies `equal`, an expression of `row`. Sets `found`, and `row` (a uint32_t variable) to
// the row's number. `row` is unspecified if none is found.
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

// Maps numbers to numbers, for tables that may grow as long as a history: addresses, nodes, identities.
//
// Open addressing with linear probing and backward-shift deletion: the table's size follows its live entries, not the entries that passed
// through it. Keys are hashed with the table's secret.

struct vr_map_slot {
    uint64_t key;
    uint64_t value; // 0: the slot is free
};

// All-zero is an empty map. One thread at a time.
struct vr_map {
    struct vr_map_slot *slots;
    size_t mask; // capacity - 1, or 0 without slots
    size_t count;
    uint64_t secret;
};

void vr_map_release(struct vr_map *map);
// Forgets every entry; keeps the table.
void vr_map_clear(struct vr_map *map);
// Makes room for `more` further keys, so that setting them cannot fail. Returns NO_HOST_MEMORY, leaving the map unchanged, if it cannot.
enum vram_status vr_map_reserve(struct vr_map *map, size_t more);
// Returns the number of bytes by which vr_map_reserve(map, 1) would grow the table; callers with a memory budget ask first.
size_t vr_map_growth_bytes(const struct vr_map *map);
// Sets the value of `key` (not 0). Returns NO_HOST_MEMORY, leaving the map unchanged, if it cannot.
enum vram_status vr_map_set(struct vr_map *map, uint64_t key, uint64_t value);
// Removes the entry of `key` and returns its value, or 0 if there was no entry.
uint64_t vr_map_take(struct vr_map *map, uint64_t key);
// Visits every entry, in unspecified order that must not reach any output. Start with *at = 0; returns false after the last entry. The map
// must not change meanwhile.
bool vr_map_next(const struct vr_map *map, size_t *at, struct vr_map_slot *entry);
// Returns whether every entry is found by its key, `count` is right, and a quarter of the slots is free.
bool vr_map_check(const struct vr_map *map);

// Returns the slot of `key`, or the free slot where it would go. The map must have slots; it is never full.
VR_INLINE struct vr_map_slot *vr_map_slot_of(const struct vr_map *map, uint64_t key) {
    size_t at = (size_t)vr_mix64(key ^ map->secret) & map->mask;
    while (map->slots[at].value != 0 && map->slots[at].key != key) at = (at + 1) & map->mask;
    return &map->slots[at];
}
// Returns the value of `key`, or 0 if it has no value.
VR_INLINE uint64_t vr_map_get(const struct vr_map *map, uint64_t key) { return map->slots == NULL ? 0 : vr_map_slot_of(map, key)->value; }

#endif
