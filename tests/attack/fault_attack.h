// fault_attack.h: an allocator whose driver refuses calls, and what is done with it.
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
    struct vram_driver *sim, *driver; // the simulator, and the one around it that refuses
    struct vram_allocator *allocator;
    uint64_t context[ATTACK_DEVICES], stream[ATTACK_DEVICES][ATTACK_STREAMS];
    uint64_t random, operations;
    const char *conf;
    unsigned mix; // of operations
    bool pairs;   // a second refusal after the first
    bool often;   // refusals at random: many in a row may come
    struct vram_pool *pool;
    struct vram_host *host;
    void *pinned;
    bool routed, sleeps, settled, captures;
    struct attack_block block[ATTACK_BLOCKS];
    size_t count;
    const char *wrong; // what did not hold; NULL: all does
};

uint64_t attack_draw(struct attack *attack, uint64_t limit);
void attack_wrong(struct attack *attack, const char *what);
// Lets one of the next calls fail, and perhaps one more after it. attack_unrefuse(): none.
void attack_refuse(struct attack *attack, uint64_t within);
void attack_unrefuse(struct attack *attack);

// One operation of the mix.
void attack_step(struct attack *attack);
// Gives everything back that the operations have, with a driver that serves.
void attack_settle(struct attack *attack);
// Blocks can be asked for and given back on each device, while the driver serves. Before all is settled there may be a lack of memory.
void attack_try_all(struct attack *attack);

#endif
