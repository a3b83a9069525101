// workloads.h: what bench_peers measures: each workload does `rounds` rounds and says how many calls that were.
#ifndef VR_BENCH_WORKLOADS_H
#define VR_BENCH_WORKLOADS_H

#include "peers.h"

enum { WORKLOAD_LIVE = 4096, WORKLOAD_SIZES = 4096, TRACE_STEPS = 2000 };

// One thing a training step does: takes `size` bytes into a slot, or (0) gives the slot's back.
struct trace_step {
    uint32_t slot;
    uint64_t size;
};

struct workload_run {
    const struct peer *peer;
    uint64_t size;         // pairs
    uint64_t stream_count; // in turn
    uint64_t random;
    uint64_t *live;
    uint64_t live_count;
    const uint64_t *sizes; // mixed: WORKLOAD_SIZES of them
    const struct trace_step *steps;
};

typedef uint64_t workload(struct workload_run *run, uint64_t rounds);

// Out of line, and with nothing known of what they are called with: instructions are counted while one of them is on the stack.
#ifdef __clang__ // has no noipa; what is measured by instructions is GCC's
#define MEASURED __attribute__((noinline))
#else
#define MEASURED __attribute__((noinline, noipa))
#endif
MEASURED workload measured_pairs;   // a block and its free, the streams in turn
MEASURED workload measured_unlike;  // the same of one, two and three times `size`
MEASURED workload measured_mixed;   // a random one of the live blocks goes, another of a random size comes
MEASURED workload measured_trace;   // a training step after the other
MEASURED workload measured_frees;   // the live blocks go, in any order: once
MEASURED workload measured_release; // their segments go back: once
MEASURED workload measured_uses;    // used on a second stream and freed; passed when the next is asked for

// Sizes spread over powers of two from `low` on, and up to as much again.
uint64_t *workload_sizes(uint64_t low, unsigned powers);
const struct trace_step *workload_trace(void);
// Makes the live blocks of a mixed run, or only their places.
void workload_fill(struct workload_run *run, uint64_t count);
void workload_empty(struct workload_run *run);
void workload_shuffle(uint64_t *items, uint64_t count);
double workload_ns_per_call(struct workload_run *run, workload *work, uint64_t rounds);

#endif
