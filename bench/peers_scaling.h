// peers_scaling.h: how a call grows with what there is of everything, for bench_peers.
#ifndef VR_BENCH_PEERS_SCALING_H
#define VR_BENCH_PEERS_SCALING_H

void print_scaling(void);

#endif
