// workloads.h: the workloads of bench_peers: each does `rounds` rounds and returns the number of calls.
#ifndef VR_BENCH_WORKLOADS_H
#define VR_BENCH_WORKLOADS_H

#include "peers.h"

enum { WORKLOAD_LIVE = 4096, WORKLOAD_SIZES = 4096, TRACE_STEPS = 2000 };

// One action of a training step: allocates `size` bytes into a slot, or (0) frees the slot's block.
struct trace_step {
    uint32_t slot;
    uint64_t size;
};

struct workload_run {
    const struct peer *peer;
    uint64_t size;         // of a block, for workloads of pairs
    uint64_t stream_count; // used in turn
    uint64_t random;
    uint64_t *live;
    uint64_t live_count;
    const uint64_t *sizes; // mixed: WORKLOAD_SIZES of them
    const struct trace_step *steps;
};

typedef uint64_t workload(struct workload_run *run, uint64_t rounds);

// Not inlined, and without knowledge of the arguments, because instructions are counted while one is on the stack.
#ifdef __clang__ // Clang lacks noipa; instructions are counted with GCC
#define MEASURED __attribute__((noinline))
#else
#define MEASURED __attribute__((noinline, noipa))
#endif
MEASURED workload measured_pairs;   // a block and its free, on each stream in turn
MEASURED workload measured_unlike;  // likewise with one, two and three times `size`
MEASURED workload measured_mixed;   // replaces a random live block by one of random size
MEASURED workload measured_trace;   // one training step after another
MEASURED workload measured_frees;   // frees the live blocks in random order; once
MEASURED workload measured_again;   // frees them so, and takes as many again; once
MEASURED workload measured_release; // releases their segments; once
MEASURED workload measured_uses;    // used on a second stream and freed; passed before the next request

// Returns sizes spread over powers of two from `low`, each up to double.
uint64_t *workload_sizes(uint64_t low, unsigned powers);
const struct trace_step *workload_trace(void);
// Allocates the live blocks of a mixed run, or only their slots.
void workload_fill(struct workload_run *run, uint64_t count);
void workload_empty(struct workload_run *run);
void workload_shuffle(uint64_t *items, uint64_t count);
double workload_ns_per_call(struct workload_run *run, workload *work, uint64_t rounds);

#endif
