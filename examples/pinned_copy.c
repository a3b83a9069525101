// pinned_copy.c: copies batches to the device from pinned memory that is reused as soon as its copy is done. Needs no GPU.
#include <stdio.h>
#include <vram/sim.h>
#include <vram/vram.h>

enum { BATCHES = 100 };
#define BATCH_BYTES (3ull << 20)

int main(void) {
    struct vram_driver *driver;
    struct vram_allocator *device;
    struct vram_host *host;
    if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = 1ull << 30}, &driver) != VRAM_OK) return 1;
    if (vram_create(&(struct vram_create_info){.driver = driver}, &device, NULL) != VRAM_OK) return 1;
    if (vram_host_create(&(struct vram_host_create_info){.driver = driver}, &host, NULL) != VRAM_OK) return 1;

    uint64_t target, copies;
    if (vram_malloc(device, 0, BATCH_BYTES, 0, &target) != VRAM_OK) return 1;
    if (vram_sim_stream_create(driver, 0, &copies) != VRAM_OK) return 1;
    for (int batch = 0; batch < BATCHES; batch++) {
        void *pinned;
        if (vram_host_malloc(host, BATCH_BYTES, copies, &pinned) != VRAM_OK) return 1;
        ((unsigned char *)pinned)[0] = (unsigned char)batch; // the loader writes here, then starts the copy
        if (vram_sim_busy(driver, 0, copies, 200000) != VRAM_OK) return 1;
        if (vram_host_record_stream(host, pinned, copies) != VRAM_OK) return 1; // the copy reads it
        if (vram_host_free(host, pinned) != VRAM_OK) return 1;                  // not reused before the copy is done
        if (vram_sim_advance(driver, 150000) != VRAM_OK) return 1;              // the loader prepares the next batch
    }

    struct vram_host_stats stats;
    vram_get_host_stats(host, &stats);
    printf("%d batches of %llu MiB went through %lld pinned blocks of %lld MiB in all\n", BATCHES, BATCH_BYTES >> 20,
           (long long)stats.allocations.current, (long long)stats.allocated_bytes.peak >> 20);
    printf("pinning them took %.1f ms; without the cache it would have been %.1f ms\n", (double)stats.host_alloc_time.total_ns / 1e6,
           (double)stats.host_alloc_time.total_ns / 1e6 / (double)stats.host_alloc_time.count * BATCHES);
    vram_host_destroy(host);
    vram_destroy(device);
    vram_driver_destroy(driver);
}
