// peers_scaling.h: how a call's cost grows with the number of objects, for bench_peers.
#ifndef VR_BENCH_PEERS_SCALING_H
#define VR_BENCH_PEERS_SCALING_H

#include "workloads.h"

void print_scaling(void);

// Creates private pools up to this number (at most 4,000), each with a live block; the workload makes pairs in each in turn.
void pools_make(size_t count);
MEASURED workload measured_pools;

// Makes a block wait for each of this many other, busy streams (at most one less than exist).
void fences_make(uint64_t count);

#endif
