// fault_attack.h: an allocator whose driver refuses calls, and the operations on it.
#ifndef VR_TEST_FAULT_ATTACK_H
#define VR_TEST_FAULT_ATTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vram/pool.h"
#include "vram/vram.h"

enum { ATTACK_BLOCKS = 48, ATTACK_STREAMS = 4, ATTACK_DEVICES = 2, ATTACK_MIXES = 12 };

struct attack_block {
    uint64_t address, size;
    uint32_t device;
};

struct attack {
    struct vram_driver *sim, *driver; // the simulator, and the wrapper that refuses calls
    struct vram_allocator *allocator;
    uint64_t context[ATTACK_DEVICES], stream[ATTACK_DEVICES][ATTACK_STREAMS];
    uint64_t random, operations;
    const char *conf;
    unsigned mix; // of operations
    bool pairs;   // refuse a second call after the first
    bool often;   // refuse at random, possibly many in a row
    struct vram_pool *pool;
    struct vram_host *host;
    void *pinned;
    bool routed, sleeps, settled, captures;
    struct attack_block block[ATTACK_BLOCKS];
    size_t count;
    const char *wrong; // the violated rule; NULL: none
};

uint64_t attack_draw(struct attack *attack, uint64_t limit);
void attack_wrong(struct attack *attack, const char *what);
// attack_refuse() makes one of the next calls fail, and possibly one more after it; attack_unrefuse() ends the refusals.
void attack_refuse(struct attack *attack, uint64_t within);
void attack_unrefuse(struct attack *attack);

// Performs one operation of the mix.
void attack_step(struct attack *attack);
// Frees everything the operations have, while the driver works.
void attack_settle(struct attack *attack);
// Checks that blocks can be allocated and freed on each device, while the driver works. Before everything is settled, memory may be short.
void attack_try_all(struct attack *attack);

#endif
