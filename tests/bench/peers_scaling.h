// peers_scaling.h: how a call grows with what there is of everything, for bench_peers.
#ifndef VR_BENCH_PEERS_SCALING_H
#define VR_BENCH_PEERS_SCALING_H

#include "workloads.h"

void print_scaling(void);

// Private pools with a live block each, up to so many (4,000 at most); pairs in each of them in turn.
void pools_make(size_t count);
MEASURED workload measured_pools;

// A block waits for each of so many other streams (one less than there are, at most), which are busy.
void fences_make(uint64_t count);

#endif
