// bench_sleep: measures suspending and waking, on the simulated driver's clock, against the copy alone. Usage: bench_sleep [GIB]
#include <stdio.h>
#include <stdlib.h>
#include <vram/vram.h>
#include "vram/sim.h"

#define MIB (1ull << 20)
// The simulator's bus speed (simulator/sim/streams/sim_stream.c).
enum { BUS_BYTES_PER_NS = 25 };

static const struct setting {
    const char *name, *conf;
} settings[] = {
    {"tagged pool", ""},
    {"expandable_segments:True", "expandable_segments:True"},
    {"paged:True, default pools", "paged:True"},
};

// Allocates a model's blocks: a few large ones, or layers of several sizes with small ones between.
static int fill(struct vram_allocator *allocator, struct vram_pool *pool, uint64_t bytes, int mixed, uint64_t *live) {
    static const uint64_t sizes[] = {96 * MIB, 3 * MIB / 2, 8192, 32 * MIB, 640 * 1024, 5 * MIB};
    uint64_t address = 0;
    for (size_t i = 0; *live < bytes; i++) {
        const uint64_t size = mixed ? sizes[i % (sizeof sizes / sizeof *sizes)] : 256 * MIB;
        const enum vram_status status =
            pool != NULL ? vram_pool_malloc(pool, size, 0, &address) : vram_malloc(allocator, 0, size, 0, &address);
        if (status != VRAM_OK) return 1;
        *live += vram_allocated_size(allocator, address);
    }
    return 0;
}

static int run(const struct setting *setting, enum vram_sim_profile profile, int mixed, uint64_t bytes) {
    struct vram_driver *driver;
    struct vram_allocator *allocator;
    struct vram_pool *pool = NULL;
    struct vram_sleep_result slept, woke;
    uint64_t live = 0;
    const struct vram_sim_options options = {.memory_bytes = 2 * bytes, .profile = profile, .kernel_ns = 1000};
    if (vram_sim_create(&options, &driver) != VRAM_OK) return 1;
    if (vram_create(&(struct vram_create_info){.driver = driver, .conf = setting->conf}, &allocator, NULL) != VRAM_OK) return 1;
    const int by_tag = setting != &settings[2];
    if (by_tag && vram_pool_create(allocator, 0, &(struct vram_pool_options){.tag = "model"}, &pool) != VRAM_OK) return 1;
    if (fill(allocator, pool, bytes, mixed, &live) != 0) return 1;
    const uint64_t start = vram_sim_clock_ns(driver);
    if (vram_sleep(allocator, 0, NULL, 0, &slept, NULL) != VRAM_OK) return 1;
    const uint64_t asleep = vram_sim_clock_ns(driver);
    if (vram_wake(allocator, 0, NULL, 0, &woke, NULL) != VRAM_OK) return 1;
    const uint64_t awake = vram_sim_clock_ns(driver);
    if (vram_sleep(allocator, 0, NULL, 0, &slept, NULL) != VRAM_OK) return 1;
    const double again = (double)(vram_sim_clock_ns(driver) - awake) / 1e6; // the pinned memory already exists
    const double copy = (double)live / BUS_BYTES_PER_NS / 1e6, sleep = (double)(asleep - start) / 1e6;
    const double wake = (double)(awake - asleep) / 1e6;
    printf("%-26s %-6s %-6s %6.1f GiB  copy %7.1f ms  first sleep %7.1f ms  later ones %6.1f ms (+%.1f %%)  wake %7.1f ms (+%.1f %%)\n",
           setting->name, mixed ? "mixed" : "large", profile == VRAM_SIM_DEAR ? "dear" : "cheap",
           (double)woke.copied_bytes / (1024.0 * MIB), copy, sleep, again, 100 * (again / copy - 1), wake, 100 * (wake / copy - 1));
    const int right = woke.copied_bytes == live && slept.held_bytes == 0 && wake <= 1.05 * copy;
    if (!right) printf("  waking costs more than the copy and 5 %%\n");
    vram_destroy(allocator);
    vram_driver_destroy(driver);
    return !right;
}

int main(int argument_count, char **arguments) {
    const long wanted = argument_count > 1 ? strtol(arguments[1], NULL, 10) : 20;
    const uint64_t bytes = (wanted > 0 && wanted <= 1000 ? (uint64_t)wanted : 20) << 30;
    int failed = 0;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (int mixed = 0; mixed < 2; mixed++)
            for (int dear = 0; dear < 2; dear++) failed |= run(&settings[i], dear ? VRAM_SIM_DEAR : VRAM_SIM_CHEAP, mixed, bytes);
    return failed;
}
