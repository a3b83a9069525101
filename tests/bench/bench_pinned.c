// bench_pinned.c: measures the sizes of pinned blocks: bytes pinned for bytes in use, and the time to pin and unpin them, with the default
// rule and with PyTorch's powers of two, over six programs; then a request and its free from the cache, in nanoseconds. Uses the simulated
// driver's prices: 0.34 s per GiB to pin, 0.1 s to unpin. Usage: bench_pinned
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/base.h"
#include "vram/sim.h"
#include "vram/vram.h"

struct run {
    struct vram_driver *driver;
    struct vram_host *host;
    uint64_t random;
    bool failed;
};

static uint64_t draw(struct run *run, uint64_t limit) {
    run->random += 0x9e3779b97f4a7c15u;
    return vr_mix64(run->random) % limit;
}

static void *get(struct run *run, uint64_t size) {
    void *pointer = NULL;
    if (vram_host_malloc(run->host, size, 0, &pointer) != VRAM_OK) run->failed = true;
    return pointer;
}

static void put(struct run *run, void *pointer) {
    if (vram_host_free(run->host, pointer) != VRAM_OK) run->failed = true;
}

// --- programs -----------------------------------------------------------------------------------------------------------------------

enum { STEPS = 3000, MOST_IN_FLIGHT = 12 };

// Batches of varying size, several in flight at a time.
static void batches(struct run *run, unsigned in_flight, uint64_t (*size)(struct run *run)) {
    void *ring[MOST_IN_FLIGHT] = {NULL};
    for (unsigned step = 0; step < STEPS; step++) {
        put(run, ring[step % in_flight]);
        ring[step % in_flight] = get(run, size(run));
    }
}

// Draws each power of two with equal probability.
static uint64_t draw_scale(struct run *run, uint64_t least, unsigned doublings) {
    const uint64_t base = least << draw(run, doublings);
    return base + draw(run, base);
}
static uint64_t images(struct run *run) { return draw_scale(run, VR_MIB, 6); }
static uint64_t tables(struct run *run) { return draw_scale(run, 8 * VR_MIB, 6); }
static uint64_t tokens(struct run *run) { return 135 * VR_MIB + draw(run, 30 * VR_MIB); }

static void loader(struct run *run) { batches(run, 12, images); }
static void dataframes(struct run *run) { batches(run, 6, tables); }
static void even_batches(struct run *run) { batches(run, 12, tokens); }

// Activations of a model of 32 layers, moved out and back in, with another sequence length in each step.
static void activations(struct run *run) {
    enum { LAYERS = 32 };
    void *kept[2 * LAYERS];
    for (int step = 0; step < 200; step++) {
        const uint64_t length = 64 + draw(run, 4033);
        for (int i = 0; i < 2 * LAYERS; i++) kept[i] = get(run, length * 2 * (i % 2 == 0 ? 4096 : 11008));
        for (int i = 0; i < 2 * LAYERS; i++) put(run, kept[i]);
    }
}

static void weights(struct run *run) {
    for (int i = 0; i < 32 * 4; i++) (void)get(run, 4096 * 4096 * 2);
    for (int i = 0; i < 32 * 3; i++) (void)get(run, 4096 * 11008 * 2);
    for (int i = 0; i < 2; i++) (void)get(run, 32000 * 4096 * 2);
}

static void key_values(struct run *run) {
    (void)get(run, 20 * VR_GIB + 410 * VR_MIB);
    (void)get(run, 5 * VR_GIB);
}

static const struct {
    const char *name;
    void (*run)(struct run *run);
} programs[] = {{"loader, 1 to 64 MiB", loader},           {"tables, 8 to 512 MiB", dataframes},
                {"batches, 135 to 165 MiB", even_batches}, {"activations, varying step", activations},
                {"weights of 7 G parameters", weights},    {"keys and values, 20.4 + 5 GiB", key_values}};

static bool measure(size_t program, const char *conf) {
    struct run run = {.random = 1};
    if (vram_sim_create(NULL, &run.driver) != VRAM_OK) return false;
    const struct vram_host_create_info info = {.driver = run.driver, .conf = conf};
    if (vram_host_create(&info, &run.host, NULL) != VRAM_OK) return false;
    programs[program].run(&run);
    struct vram_host_stats stats;
    vram_get_host_stats(run.host, &stats);
    printf("  %5.2f x %5llu in %6.1f s", (double)stats.allocated_bytes.peak / (double)stats.requested_bytes.peak,
           (unsigned long long)stats.host_alloc_time.count, (double)(stats.host_alloc_time.total_ns + stats.host_free_time.total_ns) / 1e9);
    vram_host_destroy(run.host);
    vram_driver_destroy(run.driver);
    return !run.failed;
}

// --- the cache ------------------------------------------------------------------------------------------------------------------------

static double seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double shortest_pair_ns(struct run *run) {
    enum { PAIRS = 200000, REPEATS = 7 };
    double shortest = 1e9;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        const double start = seconds();
        for (int i = 0; i < PAIRS; i++) put(run, get(run, 70000));
        const double elapsed = (seconds() - start) * 1e9 / PAIRS;
        if (elapsed < shortest) shortest = elapsed;
    }
    return shortest;
}

int main(void) {
    printf("%-30s  %-25s  %s\n", "pinned for used, blocks, time", "by default", "powers of two");
    for (size_t i = 0; i < VR_COUNT_OF(programs); i++) {
        printf("%-30s", programs[i].name);
        if (!measure(i, "") || !measure(i, "pinned_max_round_threshold_mb:1048576")) return 1;
        printf("\n");
    }
    struct run run = {.random = 1};
    if (vram_sim_create(NULL, &run.driver) != VRAM_OK) return 1;
    if (vram_host_create(&(struct vram_host_create_info){.driver = run.driver, .conf = ""}, &run.host, NULL) != VRAM_OK) return 1;
    printf("a request and its free from the cache: %.0f ns\n", shortest_pair_ns(&run));
    vram_host_destroy(run.host);
    vram_driver_destroy(run.driver);
    return run.failed ? 1 : 0;
}
