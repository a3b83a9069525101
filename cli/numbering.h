// numbering.h: pairs of numbers -> a small number: a device and an address, or what a recording calls a group.
//
// The one hash table of the commands, which see public headers only. Pairs fall by a secret of the table, so that nobody who writes a
// recording can choose where.
#ifndef CLI_NUMBERING_H
#define CLI_NUMBERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMBERING_NONE UINT32_MAX

struct numbering_slot {
    uint64_t first, second;
    uint32_t after; // the number, plus one; 0: the slot is free
};

// All-zero is empty. At most half of the slots, a power of two, are used.
struct numbering {
    struct numbering_slot *slots;
    size_t capacity, count;
    uint64_t secret;
};

void numbering_release(struct numbering *numbering);
// Room for one pair more. False without memory.
bool numbering_reserve(struct numbering *numbering);
// The number of the pair, or NUMBERING_NONE.
uint32_t numbering_get(const struct numbering *numbering, uint64_t first, uint64_t second);
// Gives the pair a number (not NUMBERING_NONE). There must be room.
void numbering_set(struct numbering *numbering, uint64_t first, uint64_t second, uint32_t number);
// Removes the pair and returns its number, or NUMBERING_NONE.
uint32_t numbering_take(struct numbering *numbering, uint64_t first, uint64_t second);

#endif
