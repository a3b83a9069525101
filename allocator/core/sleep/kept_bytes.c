// Saves the contents of sleeping memory in pinned memory of the host.
#include "core/sleep/sleepers.h"

// The size of one copy. While it runs, pinned memory for the next piece is allocated, or device memory for it is put in place.
#define PIECE_BYTES (32 * VR_MIB)

static vr_cu_result give_stream(struct vram_driver *driver, uint64_t stream, uint64_t size) {
    (void)size;
    return vr_cu(driver, stream_destroy, stream);
}

static vr_cu_result give_host(struct vram_driver *driver, uint64_t host, uint64_t size) {
    (void)size;
    return vr_cu(driver, mem_free_host, host);
}

enum vram_status vr_copy_stream_open(struct vr_device *device, uint64_t *stream) {
    return vr_driver_status(vr_cu(device->allocator->driver, stream_create, stream, VR_CU_STREAM_NON_BLOCKING));
}

void vr_copy_stream_close(struct vr_device *device, uint64_t stream) {
    (void)vr_give_back(device, &(struct vr_driver_memory){give_stream, stream, 0});
}

uint64_t vr_pinned_bytes(const struct vr_pinned_chunks *chunks) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < chunks->count; i++) bytes += chunks->items[i].size;
    return bytes;
}

static void give_chunk(struct vr_device *device, const struct vr_pinned_chunk *chunk) {
    (void)vr_give_back(device, &(struct vr_driver_memory){give_host, chunk->host, 0});
}

void vr_kept_release(struct vr_device *device, struct vr_kept_bytes *kept) {
    struct vr_pinned_chunks *spare = &device->spare_chunks;
    const bool room = VR_GROW(spare, items, spare->count + kept->chunks.count) == VRAM_OK;
    for (size_t i = 0; i < kept->chunks.count; i++) {
        if (room) spare->items[spare->count++] = kept->chunks.items[i];
        if (!room) give_chunk(device, &kept->chunks.items[i]);
    }
    free(kept->chunks.items);
    free(kept->runs);
    *kept = (struct vr_kept_bytes){0};
}

void vr_pinned_trim(struct vr_device *device) {
    for (size_t i = 0; i < device->spare_chunks.count; i++) give_chunk(device, &device->spare_chunks.items[i]);
    free(device->spare_chunks.items);
    device->spare_chunks = (struct vr_pinned_chunks){0};
}

// Takes a kept chunk, or allocates `size` bytes.
static enum vram_status add_chunk(struct vr_device *device, uint64_t size, struct vr_pinned_chunks *chunks) {
    struct vr_pinned_chunk chunk = {.size = size};
    VR_TRY(VR_GROW(chunks, items, chunks->count + 1));
    if (device->spare_chunks.count != 0) {
        chunk = device->spare_chunks.items[--device->spare_chunks.count];
    } else {
        const vr_cu_result result = vr_cu(device->allocator->driver, mem_host_alloc, &chunk.host, size, VR_CU_MEM_HOST_ALLOC_PORTABLE);
        if (result != VR_CU_SUCCESS) return result == VR_CU_OUT_OF_MEMORY ? VRAM_NO_HOST_MEMORY : VRAM_DRIVER;
    }
    chunks->items[chunks->count++] = chunk;
    return VRAM_OK;
}

static enum vram_status save_ranges(struct vr_device *device, uint64_t stream, const struct vr_live_ranges *ranges,
                                    struct vr_kept_bytes *kept) {
    uint64_t left = ranges->bytes, room = 0, host = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        const struct vr_live_range *range = &ranges->items[i];
        for (uint64_t at = 0, size = 0; at < range->size; at += size) {
            if (room == 0) {
                VR_TRY(add_chunk(device, left < PIECE_BYTES ? left : PIECE_BYTES, &kept->chunks));
                room = kept->chunks.items[kept->chunks.count - 1].size;
                host = kept->chunks.items[kept->chunks.count - 1].host;
            }
            size = range->size - at < room ? range->size - at : room;
            VR_TRY(VR_GROW(kept, runs, kept->run_count + 1));
            VR_TRY(vr_driver_status(vr_cu(device->allocator->driver, memcpy_async, host, range->address + at, size, stream)));
            kept->runs[kept->run_count++] = (struct vr_kept_run){range->address + at, size, host};
            host += size;
            room -= size;
            left -= size;
        }
    }
    return VRAM_OK;
}

enum vram_status vr_kept_save(struct vr_device *device, uint64_t stream, const struct vr_live_ranges *ranges, struct vr_kept_bytes *kept) {
    struct vr_kept_bytes made = {0};
    struct vram_driver *driver = device->allocator->driver;
    enum vram_status status = save_ranges(device, stream, ranges, &made);
    const enum vram_status waited = vr_driver_status(vr_cu(driver, stream_synchronize, stream));
    if (status == VRAM_OK) status = waited;
    if (status != VRAM_OK) {
        if (waited != VRAM_OK) (void)vr_cu(driver, ctx_synchronize, 0); // copies may still write to the memory that is released next
        vr_kept_release(device, &made);
        return status;
    }
    *kept = made;
    return VRAM_OK;
}

static uint64_t larger_of(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t smaller_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

enum vram_status vr_kept_restore(struct vr_device *device, uint64_t stream, const struct vr_kept_bytes *kept, size_t *next,
                                 const struct vr_live_range *range, uint64_t *copied) {
    const uint64_t end = range->address + range->size;
    while (*next < kept->run_count && kept->runs[*next].address + kept->runs[*next].size <= range->address) ++*next;
    for (size_t i = *next; i < kept->run_count && kept->runs[i].address < end; i++) {
        const struct vr_kept_run *run = &kept->runs[i];
        const uint64_t low = larger_of(run->address, range->address), high = smaller_of(run->address + run->size, end);
        VR_TRY(vr_populate(device, range->segment, low, high - low));
        const uint64_t host = run->host + (low - run->address);
        VR_TRY(vr_driver_status(vr_cu(device->allocator->driver, memcpy_async, low, host, high - low, stream)));
        *copied += high - low;
    }
    return VRAM_OK;
}
