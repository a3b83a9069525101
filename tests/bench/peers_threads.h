// peers_threads.h: two threads on one allocator, for bench_peers.
#ifndef VR_BENCH_PEERS_THREADS_H
#define VR_BENCH_PEERS_THREADS_H

#include "peers.h"

// TEAM_MIXED_ALONE: the second thread is idle, for comparison.
enum team_work { TEAM_OWN_STREAMS, TEAM_ONE_STREAM, TEAM_HAND_OVER, TEAM_MIXED, TEAM_MIXED_ALONE };

struct team_figure {
    double least;
    double median;
};

// Measures ns per call of one thread while the other also calls (except ALONE), per peer. Missing peers keep 0.
void teams_measure(enum team_work work, struct team_figure figures[PEERS]);

#endif
