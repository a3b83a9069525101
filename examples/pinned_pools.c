// pinned_pools.c: pinned memory in private pools: one phase's staging buffers are returned to the driver together. Needs no GPU.
#include <stdio.h>
#include <stdlib.h>
#include <vram/sim.h>
#include <vram/vram.h>

#define MIB (1ull << 20)
enum { BUFFERS = 8 };

static int held_mib(struct vram_host_pool *pool) {
    struct vram_host_pool_stats stats;
    vram_get_host_pool_stats(pool, &stats);
    return (int)(stats.allocated_bytes >> 20);
}

static void print_stats(struct vram_host *host) {
    struct vram_host_stats stats;
    vram_get_host_stats(host, &stats);
    const size_t length = vram_host_stats_json(&stats, NULL, 0);
    char *text = malloc(length + 1);
    if (text != NULL) (void)vram_host_stats_json(&stats, text, length + 1);
    printf("torch.cuda.host_memory_stats() would have %zu characters%s", length, text == NULL ? "\n" : ", which begin:\n");
    if (text != NULL) printf("%.60s\n", text);
    free(text);
}

int main(void) {
    struct vram_driver *driver;
    struct vram_host *host;
    struct vram_host_pool *staging;
    if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = 1ull << 30}, &driver) != VRAM_OK) return 1;
    if (vram_host_create(&(struct vram_host_create_info){.driver = driver}, &host, NULL) != VRAM_OK) return 1;
    if (vram_host_pool_create(host, NULL, &staging) != VRAM_OK) return 1;
    vram_host_pool_retain(staging); // a second owner, such as the loader thread
    const struct vram_pool_id id = vram_host_pool_id(staging);

    // Route this thread's requests to the pool for a while.
    const struct vram_route mine = {.kind = VRAM_ROUTE_THREAD};
    void *buffer[BUFFERS], *outside;
    if (vram_host_pool_begin(staging, &mine) != VRAM_OK) return 1;
    for (int i = 0; i < BUFFERS; i++) {
        if (vram_host_malloc(host, (uint64_t)(i + 1) * MIB, 0, &buffer[i]) != VRAM_OK) return 1;
    }
    if (vram_host_pool_end(staging, &mine) != VRAM_OK || vram_host_malloc(host, 4 * MIB, 0, &outside) != VRAM_OK) return 1;
    const uint64_t size = vram_host_allocated_size(host, buffer[2]);
    const int during = held_mib(staging);
    for (int i = 0; i < BUFFERS; i++) {
        if (vram_host_free(host, buffer[i]) != VRAM_OK) return 1;
    }
    // The phase has ended: release its cached buffers, and no other pool's.
    if (vram_host_pool_empty_cache(staging) != VRAM_OK) return 1;
    printf("pool (%llu, %llu): %d MiB pinned during the phase, %d MiB after it, %u references\n", (unsigned long long)id.first,
           (unsigned long long)id.second, during, held_mib(staging), vram_host_pool_references(staging));
    print_stats(host);
    const int good = during >= 36 && held_mib(staging) == 0 && size >= 3 * MIB && vram_host_allocated_size(host, outside) >= 4 * MIB;
    vram_host_pool_release(staging);
    vram_host_pool_release(staging);
    if (vram_host_free(host, outside) != VRAM_OK) return 1;
    vram_host_destroy(host);
    vram_driver_destroy(driver);
    return !good;
}
