// live.h: what of the program's memory is alive, by kind and key. The session's lock orders everything here.
#ifndef PL_LIVE_H
#define PL_LIVE_H

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
    uint32_t *chains; // index + 1; `bucket_count` of them, a power of two
    size_t used;      // pieces ever used
    size_t capacity;
    size_t bucket_count;
    size_t count;
    uint32_t free_list;
};

// How many allocations were born so far, and the number of one that is born now. Any thread, without the lock.
uint64_t pl_births(void);
uint64_t pl_birth(void);

// Borrowed until the next pl_live_add(). NULL: not there.
struct pl_piece *pl_live_find(struct pl_live *live, enum pl_space space, uint64_t key);
// A new piece with this space and key, all else zero. NULL: no memory.
struct pl_piece *pl_live_add(struct pl_live *live, enum pl_space space, uint64_t key);
void pl_live_remove(struct pl_live *live, struct pl_piece *piece);
// Walks over all: the next one after `at` (NULL: the first); NULL at the end. Removing the one at hand is allowed.
struct pl_piece *pl_live_next(struct pl_live *live, struct pl_piece *at);
// Forgets everything and gives its memory back.
void pl_live_clear(struct pl_live *live);

#endif
