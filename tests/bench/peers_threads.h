// peers_threads.h: two threads on one allocator, for bench_peers.
#ifndef VR_BENCH_PEERS_THREADS_H
#define VR_BENCH_PEERS_THREADS_H

#include "peers.h"

// ALONE: the second thread rests, to compare with.
enum team_work { TEAM_OWN_STREAMS, TEAM_ONE_STREAM, TEAM_HAND_OVER, TEAM_MIXED, TEAM_MIXED_ALONE };

struct team_figure {
    double least;
    double median;
};

// ns per call of one thread while the other calls too (but for ALONE), per peer. Those that are not installed stay at 0.
void teams_measure(enum team_work work, struct team_figure figures[PEERS]);

#endif
