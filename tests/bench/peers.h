// peers.h: allocators behind the same two calls, for bench_peers: vram, and this machine's host memory allocators.
//
// glibc, mimalloc and jemalloc have no streams, pools, statistics or exact placement: they are lower bounds, not equivalents. The latter
// two are found at run time (Debian's libmimalloc2.0 and libjemalloc2, which `tools/setup.sh bench` installs).
#ifndef VR_BENCH_PEERS_H
#define VR_BENCH_PEERS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "vram/vram.h"

enum { PEER_VRAM, PEER_GLIBC, PEER_MIMALLOC, PEER_JEMALLOC, PEERS, PEER_STREAMS = 1024 };

struct peer {
    const char *name;
    uint64_t (*take)(uint64_t size, uint64_t stream); // NULL if not installed
    void (*give)(uint64_t address);
};

extern struct peer peers[PEERS];
extern const struct peer peer_pool;         // vram, from `private_pool`
extern struct vram_allocator *allocator;    // with 16 TiB of memory
extern struct vram_driver *simulator;       // its driver
extern struct vram_pool *private_pool;      // used by the next call of peer_pool
extern uint64_t peer_streams[PEER_STREAMS]; // the first is the default stream

// Creates the allocator, its streams and a private pool.
void peers_open(void);
// Finds mimalloc and jemalloc; reports missing ones.
void peers_find(void);

void die(const char *what);
double now_ns(void);
uint64_t next_random(uint64_t *state);

#endif
