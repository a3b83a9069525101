// pools.c: weights and scratch memory in two private pools. Scratch memory never shares a segment with the weights.
#include <stdio.h>
#include <string.h>
#include <vram/sim.h>
#include <vram/vram.h>

enum { LAYERS = 24, STEPS = 10 };
#define MIB          (1ull << 20)
#define WEIGHT_BYTES (3 * MIB)

static int held_mib(struct vram_pool *pool) {
    struct vram_pool_stats stats;
    return vram_get_pool_stats(pool, &stats) == VRAM_OK ? (int)(stats.reserved_bytes[VRAM_STAT_ALL].current >> 20) : -1;
}

static bool count_live(const struct vram_block_view *view, void *live) {
    *(int *)live += view->state == VRAM_BLOCK_ALLOCATED;
    return true;
}

int main(void) {
    struct vram_driver *driver;
    struct vram_allocator *device;
    struct vram_pool *weights, *scratch;
    if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = 1ull << 30, .backed = true}, &driver) != VRAM_OK) return 1;
    if (vram_create(&(struct vram_create_info){.driver = driver}, &device, NULL) != VRAM_OK) return 1;
    if (vram_pool_create(device, 0, NULL, &weights) != VRAM_OK || vram_pool_create(device, 0, NULL, &scratch) != VRAM_OK) return 1;

    uint64_t weight[LAYERS], block;
    // A request can name its pool ...
    for (int layer = 0; layer < LAYERS; layer++) {
        if (vram_pool_malloc(weights, WEIGHT_BYTES, 0, &weight[layer]) != VRAM_OK) return 1;
        memset((void *)(uintptr_t)weight[layer], layer, WEIGHT_BYTES); // a simulated device's addresses can be used as pointers
    }
    // ... or all requests of this thread go to a pool for a while, including those of code that does not know about pools.
    const struct vram_route mine = {.kind = VRAM_ROUTE_THREAD};
    if (vram_pool_begin(scratch, &mine) != VRAM_OK) return 1;
    for (int step = 1; step <= STEPS; step++) {
        const uint64_t bytes = (uint64_t)step * 5 * MIB;
        if (vram_malloc(device, 0, bytes, 0, &block) != VRAM_OK) return 1;
        memset((void *)(uintptr_t)block, 0xff, bytes);
        if (vram_free(device, block) != VRAM_OK) return 1;
    }
    if (vram_pool_end(scratch, &mine) != VRAM_OK) return 1;

    const int before = held_mib(scratch), kept = held_mib(weights);
    if (vram_pool_empty_cache(scratch) != VRAM_OK) return 1; // releases only this pool's free memory
    printf("weights hold %d MiB; scratch held %d MiB, after a trim %d MiB\n", kept, before, held_mib(scratch));

    int wrong = 0, live = 0;
    if (vram_pool_walk(weights, count_live, &live) != VRAM_OK || live != LAYERS || vram_pool_references(weights) != 1) return 1;
    for (int layer = 0; layer < LAYERS; layer++) wrong += ((unsigned char *)(uintptr_t)weight[layer])[WEIGHT_BYTES - 1] != layer;
    const int ok = wrong == 0 && before > 0 && held_mib(scratch) == 0 && held_mib(weights) == kept && kept >= LAYERS * 3;
    vram_pool_release(scratch);
    vram_pool_release(weights);
    vram_destroy(device);
    vram_driver_destroy(driver);
    return ok ? 0 : 1;
}
