// bench_stack: compares taking a stack with glibc's backtrace() over the same frames in the same process.
//
// They are measured in turn, chunk by chunk; each figure is the lowest of its chunks, so that a busy moment of the machine does not count.
// The stacks are already known, as they nearly always are. The frames are compiled without frame pointers, as distributions compile them.
// `bench_stack FRAMES N` takes N stacks of FRAMES frames only, to count instructions:
// valgrind --tool=callgrind --toggle-collect=measured ... For Python's frames see bench_stack.py.
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "vram/stack.h"

enum { CHUNKS = 200, TAKES_PER_CHUNK = 2000, FRAMES_MAX = 128 };

static struct vram_stacks *stacks;

static double now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static uint32_t take_ours(void) { return vram_stack_take(stacks, VRAM_STACK_C, 0); }
static uint32_t take_glibc(void) {
    void *frames[FRAMES_MAX];
    return (uint32_t)backtrace(frames, FRAMES_MAX);
}

// Not inlined, because instructions are counted while it is on the stack.
VR_NOINLINE static uint64_t measured(uint32_t (*take)(void), uint64_t count) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += take();
    return sum;
}

struct job {
    uint64_t count; // number of stacks; 0: measure
    double ours_ns;
    double glibc_ns;
    uint32_t frames;
    uint64_t sum;
};

VR_NOINLINE static void at_bottom(struct job *job) {
    if (job->count != 0) {
        job->sum += measured(take_ours, 1);
        job->sum += measured(take_ours, job->count);
        return;
    }
    job->ours_ns = job->glibc_ns = 1e18;
    job->frames = take_glibc();
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        const double start = now_ns();
        job->sum += measured(take_ours, TAKES_PER_CHUNK);
        const double middle = now_ns();
        job->sum += measured(take_glibc, TAKES_PER_CHUNK / 20);
        const double end = now_ns();
        if ((middle - start) / TAKES_PER_CHUNK < job->ours_ns) job->ours_ns = (middle - start) / TAKES_PER_CHUNK;
        if ((end - middle) / (TAKES_PER_CHUNK / 20) < job->glibc_ns) job->glibc_ns = (end - middle) / (TAKES_PER_CHUNK / 20);
    }
}

// Two functions that call each other, each with something on its stack.
static void odd(struct job *job, unsigned depth, volatile uint64_t *above);
VR_NOINLINE static void even(struct job *job, unsigned depth, volatile uint64_t *above) {
    volatile uint64_t here[4] = {depth};
    if (depth == 0) {
        at_bottom(job);
    } else {
        odd(job, depth - 1, here);
    }
    above[0] += here[0];
}
VR_NOINLINE static void odd(struct job *job, unsigned depth, volatile uint64_t *above) {
    volatile uint64_t here[9] = {depth};
    if (depth == 0) {
        at_bottom(job);
    } else {
        even(job, depth - 1, here);
    }
    above[0] += here[0];
}

int main(int argc, char **argv) {
    // Frames of a run of depth 0, as glibc counts them: take, measured, bottom, even, main and the C library's own.
    enum { FRAMES_AT_0 = 8 };
    volatile uint64_t top[1] = {0};
    if (vram_stacks_create(NULL, &stacks) != VRAM_OK) return 4;
    if (argc == 3) {
        const unsigned frames = (unsigned)strtoul(argv[1], NULL, 10);
        struct job job = {.count = strtoull(argv[2], NULL, 10)};
        even(&job, frames < FRAMES_AT_0 ? 0 : frames - FRAMES_AT_0, top);
        vram_stacks_destroy(stacks);
        return job.count == 0;
    }
    static const unsigned depths[] = {2, 12, 22, 42, 92};
    printf("frames    vram ns   per frame    glibc backtrace() ns   ratio\n");
    for (size_t i = 0; i < VR_COUNT_OF(depths); i++) {
        struct job job = {.count = 0};
        even(&job, depths[i], top);
        printf("%6u %10.1f %11.2f %23.0f %7.1f\n", job.frames, job.ours_ns, job.ours_ns / job.frames, job.glibc_ns,
               job.glibc_ns / job.ours_ns);
    }
    vram_stacks_destroy(stacks);
    return 0;
}
