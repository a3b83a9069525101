// bench_history: compares a recorded malloc and free with the same pair without a listener.
//
// They are measured in turn, chunk by chunk; each figure is the lowest of its chunks. A pair is three events (alloc, free_requested,
// free_completed) in the ring. `bench_history MODE N` runs N pairs of one mode, to count instructions:
// valgrind --tool=callgrind --toggle-collect=measured_pairs ...
#define _GNU_SOURCE // syscall()
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "vram/sim.h"
#include "vram/snapshot.h"
#include "vram/vram.h"

enum { CHUNKS = 60, PAIRS_PER_CHUNK = 20000, DEPTH = 20, MODES = 6 };

// Makes time advance evenly while instructions are counted: the encoded size of times must not depend on the load. Replaces the C library's
// function, even for linked code.
static bool counts;
int clock_gettime(clockid_t clock, struct timespec *now) {
    static uint64_t even_ns = UINT64_C(1700000000000000000);
    if (!counts) return (int)syscall(SYS_clock_gettime, clock, now);
    even_ns += 777;
    *now = (struct timespec){.tv_sec = (time_t)(even_ns / 1000000000u), .tv_nsec = (long)(even_ns % 1000000000u)};
    return 0;
}

static double now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void need(enum vram_status status, const char *what) {
    if (status == VRAM_OK) return;
    fprintf(stderr, "bench_history: %s: %s\n", what, vram_status_text(status));
    exit(4);
}

struct mode {
    const char *name;
    const char *title;
    bool on;
    struct vram_history_options options;
};

static const struct mode modes[MODES] = {
    {"bare", "nobody listens", false, {0}},
    {"events", "events without stacks", true, {.context = VRAM_HISTORY_NONE, .max_entries = 100000}},
    {"stopped", "after vram_history_stop()", false, {0}},
    {"state", "C stacks of live blocks", true, {.context = VRAM_HISTORY_STATE, .stacks = VRAM_HISTORY_STACKS_C, .max_entries = 100000}},
    {"all",
     "C stacks of allocations and frees",
     true,
     {.context = VRAM_HISTORY_ALL, .stacks = VRAM_HISTORY_STACKS_C, .max_entries = 100000}},
    {"file", "events without stacks, into a file", true, {.context = VRAM_HISTORY_NONE, .file = "/dev/shm/bench_history.vram"}},
};

VR_NOINLINE static void measured_pairs(struct vram_allocator *allocator, uint64_t pairs) {
    for (uint64_t i = 0; i < pairs; i++) {
        uint64_t address = 0;
        need(vram_malloc(allocator, 0, 1024, 0, &address), "vram_malloc");
        need(vram_free(allocator, address), "vram_free");
    }
}

// Allocates under a stack of DEPTH frames.
VR_NOINLINE static void deeper(struct vram_allocator *allocator, uint64_t pairs, int depth) {
    if (depth == 0) {
        measured_pairs(allocator, pairs);
    } else {
        deeper(allocator, pairs, depth - 1);
    }
    VR_NO_TAIL_CALL();
}

static struct vram_allocator *make(struct vram_driver **driver, const struct mode *mode) {
    const struct vram_sim_options options = {.profile = VRAM_SIM_FREE, .memory_bytes = (uint64_t)1 << 40};
    const struct vram_create_info info = {.ignore_environment = true};
    struct vram_create_info with = info;
    struct vram_allocator *allocator = NULL;
    need(vram_sim_create(&options, driver), "simulator");
    with.driver = *driver;
    need(vram_create(&with, &allocator, NULL), "allocator");
    measured_pairs(allocator, 10);
    if (strcmp(mode->name, "stopped") == 0) {
        need(vram_history_start(allocator, NULL, NULL), "start");
        measured_pairs(allocator, 10);
        need(vram_history_stop(allocator), "stop");
    }
    if (mode->on) need(vram_history_start(allocator, &mode->options, NULL), "start");
    return allocator;
}

int main(int argc, char **argv) {
    counts = argc == 3;
    struct vram_driver *drivers[MODES];
    struct vram_allocator *allocators[MODES];
    double least[MODES];
    for (int m = 0; m < MODES; m++) {
        least[m] = 1e18;
        drivers[m] = NULL;
        allocators[m] = NULL;
        if (argc == 3 && strcmp(argv[1], modes[m].name) != 0) continue;
        allocators[m] = make(&drivers[m], &modes[m]);
        if (argc == 3) deeper(allocators[m], strtoull(argv[2], NULL, 10), DEPTH);
    }
    for (int chunk = 0; chunk < CHUNKS && argc != 3; chunk++) {
        for (int m = 0; m < MODES; m++) {
            const double begin = now_ns();
            deeper(allocators[m], PAIRS_PER_CHUNK, DEPTH);
            const double pair = (now_ns() - begin) / PAIRS_PER_CHUNK;
            if (pair < least[m]) least[m] = pair;
        }
    }
    if (argc != 3) printf("%-40s %12s %12s %8s\n", "pairs of 1 KiB, least of chunks", "ns per pair", "over bare", "ratio");
    for (int m = 0; m < MODES; m++) {
        if (argc != 3) printf("%-40s %12.1f %12.1f %8.2f\n", modes[m].title, least[m], least[m] - least[0], least[m] / least[0]);
        vram_destroy(allocators[m]);
        vram_driver_destroy(drivers[m]);
    }
    (void)remove(modes[MODES - 1].options.file);
    return 0;
}
