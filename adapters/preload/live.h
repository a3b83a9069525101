// live.h: the program's live memory, by kind and key. Call everything here with the session's lock held.
#ifndef PL_LIVE_H
#define PL_LIVE_H

#include <stdatomic.h>

#include "preload.h"

struct pl_piece {
    uint64_t key;     // unique within its space
    uint64_t address; // in the recording
    uint64_t size_bytes;
    uint64_t context; // the piece ends with this context; 0: with none
    uint64_t stream;
    uint64_t pool;
    uint64_t serial;     // order of creation
    uint32_t device;     // or VRAM_LOG_HOST for host memory
    uint16_t kind;       // enum pl_kind
    uint16_t space;      // enum pl_space; PL_SPACE_NONE: a free piece
    uint32_t references; // to a physical allocation: its handles
    uint32_t mappings;   // of a physical allocation
    uint32_t next;       // in its chain or in the free list; index + 1
    bool counted;        // against the limit
    bool unwritten;      // its allocation was not recorded, so its end is not recorded either
};

// Kinds whose keys may be equal are in different spaces. The key of physical memory is its address in the recording, because its handle may
// be reused while it is still mapped. Handles and mapped ranges refer to it in `address`.
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
    uint32_t *chains; // index + 1 of each chain's head; `mask` + 1 of them, a power of two
    size_t used;      // pieces used at least once
    size_t capacity;
    size_t mask;
    size_t count;
    uint32_t free_list;
};

// Return the number of allocations so far, and the number of a new one. Any thread may call them, without the lock. The child of a fork
// continues counting: only the order matters.
extern atomic_uint_fast64_t pl_live_births __attribute__((visibility("hidden")));
PL_INLINE uint64_t pl_births(void) { return atomic_load_explicit(&pl_live_births, memory_order_acquire); }
PL_INLINE uint64_t pl_birth(void) { return atomic_fetch_add(&pl_live_births, 1); }

// Returns the head of the chain for this space and key, valid until the next pl_live_add(); NULL if there is no table yet.
PL_INLINE uint32_t *pl_live_chain(const struct pl_live *live, enum pl_space space, uint64_t key) {
    const uint64_t hash = (key ^ ((uint64_t)space << 60)) * 0x9e3779b97f4a7c15u;
    return live->chains == NULL ? NULL : &live->chains[(size_t)(hash >> 32) & live->mask];
}
// Finds the piece in the chain of its space and key, borrowed until the next pl_live_add(). Returns NULL if absent.
PL_INLINE struct pl_piece *pl_live_in(const struct pl_live *live, const uint32_t *chain, enum pl_space space, uint64_t key) {
    for (uint32_t at = chain == NULL ? 0 : *chain; at != 0; at = live->pieces[at - 1].next) {
        struct pl_piece *piece = &live->pieces[at - 1];
        if (piece->key == key && piece->space == space) return piece;
    }
    return NULL;
}
struct pl_piece *pl_live_find(const struct pl_live *live, enum pl_space space, uint64_t key);
// Adds a piece with this space and key; all else is zero. Returns NULL if memory runs out.
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
// Iterates over all pieces. Returns the one after `at` (NULL: the first), or NULL at the end. The current one may be removed.
struct pl_piece *pl_live_next(struct pl_live *live, struct pl_piece *at);
// Removes everything and frees its memory.
void pl_live_clear(struct pl_live *live);

#endif
