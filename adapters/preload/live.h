// live.h: what of the program's memory is alive, by kind and key. The session's lock orders everything here.
#ifndef PL_LIVE_H
#define PL_LIVE_H

#include <stdatomic.h>

#include "preload.h"

struct pl_piece {
    uint64_t key;     // tells it apart within its space
    uint64_t address; // as the recording says
    uint64_t size_bytes;
    uint64_t context; // whose end is its end; 0: of none
    uint64_t stream;
    uint64_t pool;
    uint64_t serial;     // order of birth
    uint32_t device;     // VRAM_LOG_HOST: host memory
    uint16_t kind;       // enum pl_kind
    uint16_t space;      // enum pl_space; PL_SPACE_NONE: a free piece
    uint32_t references; // of a physical allocation: handles
    uint32_t mappings;   // of a physical allocation
    uint32_t next;       // in its chain, or in the list of free pieces; index + 1
    bool counted;        // towards the limit
    bool unwritten;      // its birth was not written down: neither is its end
};

// Kinds whose keys may be equal lie in different spaces. Physical memory goes by the address that the recording gives it: its handle
// may be used again while it is still mapped. A handle and a mapped range name it in their `address`.
enum pl_space {
    PL_SPACE_NONE,
    PL_SPACE_DEVICE,
    PL_SPACE_HOST,
    PL_SPACE_ARRAYS,
    PL_SPACE_PHYSICAL,
    PL_SPACE_HANDLES,
    PL_SPACE_RANGES,
    PL_SPACE_POOLS,
};

struct pl_live {
    struct pl_piece *pieces;
    uint32_t *chains; // index + 1; one more than `mask` of them, a power of two
    size_t used;      // pieces ever used
    size_t capacity;
    size_t mask;
    size_t count;
    uint32_t free_list;
};

// How many allocations were born so far, and the number of one that is born now. Any thread, without the lock. The child of a fork counts
// on: only their order matters.
extern atomic_uint_fast64_t pl_live_births __attribute__((visibility("hidden")));
PL_INLINE uint64_t pl_births(void) { return atomic_load_explicit(&pl_live_births, memory_order_acquire); }
PL_INLINE uint64_t pl_birth(void) { return atomic_fetch_add(&pl_live_births, 1); }

// Where the chain of this space and key begins, until the next pl_live_add(). NULL: there is no table yet.
PL_INLINE uint32_t *pl_live_chain(const struct pl_live *live, enum pl_space space, uint64_t key) {
    const uint64_t hash = (key ^ ((uint64_t)space << 60)) * 0x9e3779b97f4a7c15u;
    return live->chains == NULL ? NULL : &live->chains[(size_t)(hash >> 32) & live->mask];
}
// The piece in the chain of its space and key; borrowed until the next pl_live_add(). NULL: not there.
PL_INLINE struct pl_piece *pl_live_in(const struct pl_live *live, const uint32_t *chain, enum pl_space space, uint64_t key) {
    for (uint32_t at = chain == NULL ? 0 : *chain; at != 0; at = live->pieces[at - 1].next) {
        struct pl_piece *piece = &live->pieces[at - 1];
        if (piece->key == key && piece->space == space) return piece;
    }
    return NULL;
}
struct pl_piece *pl_live_find(const struct pl_live *live, enum pl_space space, uint64_t key);
// A new piece with this space and key, all else zero. NULL: no memory.
struct pl_piece *pl_live_add(struct pl_live *live, enum pl_space space, uint64_t key);
PL_INLINE void pl_live_remove(struct pl_live *live, struct pl_piece *piece) {
    uint32_t *at = pl_live_chain(live, (enum pl_space)piece->space, piece->key);
    while (&live->pieces[*at - 1] != piece) at = &live->pieces[*at - 1].next;
    const uint32_t number = *at;
    *at = piece->next;
    piece->space = PL_SPACE_NONE;
    piece->next = live->free_list;
    live->free_list = number;
    live->count--;
}
// Walks over all: the next one after `at` (NULL: the first); NULL at the end. Removing the one at hand is allowed.
struct pl_piece *pl_live_next(struct pl_live *live, struct pl_piece *at);
// Forgets everything and gives its memory back.
void pl_live_clear(struct pl_live *live);

#endif
