// numbering.h: maps a pair of numbers to a small number: a device and an address, or a recording's ids of a group.
//
// The one hash table of the commands, which use only public headers. The hash has a secret per table, so that a recording cannot force
// collisions.
#ifndef CLI_NUMBERING_H
#define CLI_NUMBERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMBERING_NONE UINT32_MAX

struct numbering_slot {
    uint64_t first, second;
    uint32_t after; // the number plus one; 0: a free slot
};

// A zeroed struct is empty. The capacity is a power of two; at most half of it is used.
struct numbering {
    struct numbering_slot *slots;
    size_t capacity, count;
    uint64_t secret;
};

void numbering_release(struct numbering *numbering);
// Makes room for one more pair. Returns false if memory runs out.
bool numbering_reserve(struct numbering *numbering);
// Returns the pair's number, or NUMBERING_NONE.
uint32_t numbering_get(const struct numbering *numbering, uint64_t first, uint64_t second);
// Sets the pair's number, which must not be NUMBERING_NONE. Call numbering_reserve() first.
void numbering_set(struct numbering *numbering, uint64_t first, uint64_t second, uint32_t number);
// Removes the pair and returns its number, or NUMBERING_NONE.
uint32_t numbering_take(struct numbering *numbering, uint64_t first, uint64_t second);

#endif
