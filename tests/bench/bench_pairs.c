// bench_pairs: measures a malloc and a free, against glibc's malloc in the same process.
//
// The two are measured alternately, chunk by chunk; each figure is the minimum of its chunks, so that a busy moment of the machine does not
// count. A pair is one malloc and one free. Statistics are on, there is no listener. `bench_pairs ONE-WORKLOAD N` runs only N pairs of one
// workload, for instruction counts: valgrind --tool=callgrind --toggle-collect=measured ...
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "vram/sim.h"
#include "vram/vram.h"

enum { CHUNKS = 60, PAIRS_PER_CHUNK = 20000, SIZES = 300, LIVE = 1000 };

static struct vram_allocator *allocator;

static double now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void die(const char *what) {
    fprintf(stderr, "bench_pairs: %s\n", what);
    exit(4);
}

// --- the two allocators, behind the same two calls ------------------------------------------------------------------------------

struct side {
    const char *name;
    uint64_t (*take)(uint64_t size, uint64_t stream);
    void (*give)(uint64_t address);
};

static uint64_t vram_take(uint64_t size, uint64_t stream) {
    uint64_t address = 0;
    if (vram_malloc(allocator, 0, size, stream, &address) != VRAM_OK) die("vram_malloc failed");
    return address;
}
static void vram_give(uint64_t address) {
    if (vram_free(allocator, address) != VRAM_OK) die("vram_free failed");
}
static uint64_t glibc_take(uint64_t size, uint64_t stream) {
    (void)stream;
    void *volatile memory = malloc(size);
    return (uint64_t)(uintptr_t)memory;
}
static void glibc_give(uint64_t address) { free((void *)(uintptr_t)address); }

static const struct side sides[] = {{"vram", vram_take, vram_give}, {"glibc", glibc_take, glibc_give}};

// --- workloads: each does `pairs` pairs -------------------------------------------------------------------------------------------

struct run {
    const struct side *side;
    uint64_t size; // fixed-size pairs
    uint64_t stream;
    uint64_t *live; // the mix
    uint64_t state; // random numbers
    const uint64_t *sizes;
};

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// Not inlined, because instructions are counted while it is on the stack.
VR_NOINLINE static void measured_pairs(struct run *run, uint64_t pairs) {
    for (uint64_t i = 0; i < pairs; i++) run->side->give(run->side->take(run->size, run->stream));
}

VR_NOINLINE static void measured_mix(struct run *run, uint64_t pairs) {
    for (uint64_t i = 0; i < pairs; i++) {
        const uint64_t random = next_random(&run->state);
        uint64_t *slot = &run->live[random % LIVE];
        run->side->give(*slot);
        *slot = run->side->take(run->sizes[(random >> 32) % SIZES], run->stream);
    }
}

typedef void workload(struct run *run, uint64_t pairs);

static double least_ns_per_pair(struct run *runs, size_t count, workload *work, double *least) {
    for (size_t s = 0; s < count; s++) least[s] = 1e18;
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        for (size_t s = 0; s < count; s++) {
            const double begin = now_ns();
            work(&runs[s], PAIRS_PER_CHUNK);
            const double pair = (now_ns() - begin) / PAIRS_PER_CHUNK;
            if (pair < least[s]) least[s] = pair;
        }
    }
    return least[0] / least[1];
}

static void print_row(const char *title, const double *least) {
    printf("%-34s %9.1f %9.1f %8.2f\n", title, least[0], least[1], least[0] / least[1]);
}

static void bench_fixed(uint64_t size, const char *title) {
    struct run runs[2];
    double least[2];
    for (int s = 0; s < 2; s++) runs[s] = (struct run){.side = &sides[s], .size = size};
    (void)least_ns_per_pair(runs, 2, measured_pairs, least);
    print_row(title, least);
}

// Makes sizes spread evenly over powers of two from `low`, like those of tensors.
static void make_sizes(uint64_t *sizes, uint64_t low, unsigned powers, uint64_t seed) {
    for (int i = 0; i < SIZES; i++) {
        const uint64_t random = next_random(&seed);
        const uint64_t floor = low << (random % powers);
        sizes[i] = floor + (random >> 16) % floor;
    }
}

static void prepare_mix(struct run *run, const struct side *side, const uint64_t *sizes, uint64_t stream) {
    *run = (struct run){.side = side, .stream = stream, .state = 88172645463325252u, .sizes = sizes};
    run->live = calloc(LIVE, sizeof *run->live);
    if (run->live == NULL) die("no memory");
    for (int i = 0; i < LIVE; i++) run->live[i] = side->take(sizes[i % SIZES], stream);
}

static void release_mix(struct run *run) {
    for (int i = 0; i < LIVE; i++) run->side->give(run->live[i]);
    free(run->live);
}

static void bench_mix(uint64_t low, unsigned powers, const char *title) {
    uint64_t sizes[SIZES];
    struct run runs[2];
    double least[2];
    make_sizes(sizes, low, powers, 1);
    for (int s = 0; s < 2; s++) prepare_mix(&runs[s], &sides[s], sizes, 0);
    (void)least_ns_per_pair(runs, 2, measured_mix, least);
    print_row(title, least);
    for (int s = 0; s < 2; s++) release_mix(&runs[s]);
}

// --- two threads ------------------------------------------------------------------------------------------------------------------

struct team {
    atomic_int ready;
    atomic_int go;
    double begin_ns; // common to all, so that a thread's late start counts
};

struct member {
    struct run run;
    struct team *team;
    workload *work;
    uint64_t pairs;
    double end_ns;
};

static void *run_member(void *opaque) {
    struct member *member = opaque;
    atomic_fetch_add(&member->team->ready, 1);
    while (atomic_load(&member->team->go) == 0) {
    }
    member->work(&member->run, member->pairs);
    member->end_ns = now_ns();
    return NULL;
}

// Returns pairs per microsecond of all threads together, by the slowest thread.
static double throughput(struct member *members, int threads) {
    struct team team = {0};
    pthread_t ids[2];
    for (int t = 0; t < threads; t++) {
        members[t].team = &team;
        if (pthread_create(&ids[t], NULL, run_member, &members[t]) != 0) die("no thread");
    }
    while (atomic_load(&team.ready) != threads) {
    }
    team.begin_ns = now_ns();
    atomic_store(&team.go, 1);
    double slowest = 0;
    for (int t = 0; t < threads; t++) {
        (void)pthread_join(ids[t], NULL);
        if (members[t].end_ns - team.begin_ns > slowest) slowest = members[t].end_ns - team.begin_ns;
    }
    return (double)members[0].pairs * threads / slowest * 1e3;
}

static void bench_threads(workload *work, const uint64_t *sizes, uint64_t size, bool own_streams, const char *title) {
    struct member members[2] = {{.work = work, .pairs = PAIRS_PER_CHUNK * 5}, {.work = work, .pairs = PAIRS_PER_CHUNK * 5}};
    for (int t = 0; t < 2; t++) {
        prepare_mix(&members[t].run, &sides[0], sizes, own_streams ? (uint64_t)t + 1 : 1);
        members[t].run.size = size;
    }
    double one = 0, two = 0;
    for (int chunk = 0; chunk < CHUNKS / 3; chunk++) {
        const double single = throughput(members, 1), both = throughput(members, 2);
        if (single > one) one = single;
        if (both > two) two = both;
    }
    printf("%-34s %9.1f %9.1f %8.2f\n", title, one, two, two / one);
    for (int t = 0; t < 2; t++) release_mix(&members[t].run);
}

static int only(const char *name, uint64_t pairs) {
    uint64_t sizes[SIZES];
    struct run run = {.side = &sides[0], .size = strcmp(name, "pair-4m") == 0 ? 4 << 20 : 1024};
    if (strncmp(name, "glibc-", 6) == 0) run.side = &sides[1], name += 6;
    if (strncmp(name, "pair", 4) == 0) {
        measured_pairs(&run, pairs);
        return 0;
    }
    make_sizes(sizes, 512, 12, 1);
    prepare_mix(&run, run.side, sizes, 0);
    measured_mix(&run, pairs);
    release_mix(&run);
    return 0;
}

int main(int argc, char **argv) {
    const struct vram_sim_options options = {.profile = VRAM_SIM_FREE, .memory_bytes = (uint64_t)4 << 40};
    struct vram_driver *driver = NULL;
    if (vram_sim_create(&options, &driver) != VRAM_OK) die("no simulator");
    const struct vram_create_info info = {.driver = driver, .ignore_environment = true};
    if (vram_create(&info, &allocator, NULL) != VRAM_OK) die("no allocator");
    if (argc == 3) return only(argv[1], strtoull(argv[2], NULL, 10));
    printf("%-34s %9s %9s %8s\n", "ns per pair, least of chunks", "vram", "glibc", "ratio");
    bench_fixed(1024, "pair of 1 KiB");
    bench_fixed(64 << 10, "pair of 64 KiB");
    bench_fixed(4 << 20, "pair of 4 MiB");
    bench_mix(64, 10, "300 sizes 64 B-64 KiB, 1000 live");
    bench_mix(512, 12, "300 sizes 512 B-2 MiB, 1000 live");
    bench_mix(64 << 10, 12, "300 sizes 64 KiB-256 MiB, 1000 live");
    printf("\n%-34s %9s %9s %8s\n", "pairs per microsecond, best", "1 thread", "2 threads", "ratio");
    uint64_t sizes[SIZES];
    make_sizes(sizes, 512, 12, 1);
    bench_threads(measured_pairs, sizes, 1024, true, "own streams, pair of 1 KiB");
    bench_threads(measured_mix, sizes, 1024, true, "own streams, 300 sizes");
    bench_threads(measured_pairs, sizes, 1024, false, "one stream, pair of 1 KiB");
    bench_threads(measured_mix, sizes, 1024, false, "one stream, 300 sizes");
    vram_destroy(allocator);
    vram_driver_destroy(driver);
    return 0;
}
