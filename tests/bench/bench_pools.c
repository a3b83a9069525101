// bench_pools: measures private pools, and their effect on others. Usage: bench_pools [POOLS]
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <vram/vram.h>
#include "vram/sim.h"

enum { PAIRS = 10000 };
#define MIB (1ull << 20)

static double seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Makes pairs of 1 MiB in the pools in turn; NULL: in the default pool, in seven sizes.
static int run(struct vram_allocator *allocator, struct vram_pool **pools, size_t count) {
    const double start = seconds();
    for (size_t i = 0; i < PAIRS; i++) {
        uint64_t address = 0;
        const enum vram_status status = pools != NULL ? vram_pool_malloc(pools[i % count], MIB, 0, &address)
                                                      : vram_malloc(allocator, 0, (1 + i % 7) * MIB, 0, &address);
        if (status != VRAM_OK || vram_free(allocator, address) != VRAM_OK) return 1;
    }
    printf("%-15s %.4f s for %d pairs, %zu pools there\n", pools != NULL ? "in the pools:" : "default pool:", seconds() - start, PAIRS,
           count);
    return 0;
}

int main(int argument_count, char **arguments) {
    const long wanted = argument_count > 1 ? strtol(arguments[1], NULL, 10) : 1000;
    const size_t count = wanted > 0 && wanted <= 4000 ? (size_t)wanted : 1000;
    struct vram_driver *driver;
    struct vram_allocator *allocator;
    struct vram_pool **pools = calloc(count, sizeof *pools);
    if (pools == NULL || vram_sim_create(&(struct vram_sim_options){.memory_bytes = 1ull << 40}, &driver) != VRAM_OK) return 1;
    if (vram_create(&(struct vram_create_info){.driver = driver, .conf = ""}, &allocator, NULL) != VRAM_OK) return 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t kept = 0;
        if (vram_pool_create(allocator, 0, NULL, &pools[i]) != VRAM_OK || vram_pool_malloc(pools[i], 3 * MIB, 0, &kept) != VRAM_OK)
            return 1;
    }
    const int failed = run(allocator, pools, count) + run(allocator, NULL, count);
    vram_destroy(allocator);
    vram_driver_destroy(driver);
    free(pools);
    return failed;
}
