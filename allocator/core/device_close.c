// Takes devices down when the allocator is destroyed.
#include "core/release.h"
#include "core/device.h"
#include "core/source/backend.h"
#include "core/source/source_ops.h"

void vr_wait_at_end(struct vr_device *device) {
    vr_source_end_threads(device);
    struct vr_context_guard guard;
    const bool entered = vr_context_insist(device, &guard);
    vr_device_lock(device);
    (void)vr_deferred_convert(device);
    (void)vr_fences_wait(device);
    vr_device_unlock(device);
    if (entered) vr_context_leave(&guard);
}

// Returns all memory to the driver, whether blocks are live or not. Retries what the driver refuses as long as a round makes progress.
static void release_memory(struct vr_device *device) {
    struct vr_context_guard guard;
    const bool entered = vr_context_insist(device, &guard);
    vr_device_lock(device);
    for (uint32_t number = vr_segment_first(device); number != 0; number = vr_segment_after(device, number)) {
        struct vr_segment *segment = vr_segment_at(device->allocator, number);
        segment->source->drop(device, segment);
    }
    vr_vacant_release(device);
    for (int tries = 0; device->segments.orphan_count != 0 && tries < VR_CU_TRIES; tries++) {
        const size_t before = device->segments.orphan_count;
        vr_orphans_retry(device, NULL);
        if (device->segments.orphan_count < before) tries = 0;
    }
    vr_device_unlock(device);
    if (entered) vr_context_leave(&guard);
}

// Zeroes only what was used, so that a shard that was hardly used touches few pages.
static void release_shard(struct vr_shard *shard, uint32_t index) {
    for (unsigned kind = 0; kind < VR_POOLS; kind++) {
        vr_index_clear(&shard->pool[kind].index);
        memset(&shard->pool[kind], 0, offsetof(struct vr_pool, index));
    }
    memset(shard, 0, offsetof(struct vr_shard, pool));
    shard->kept = NULL;
    vr_os_unreserve_touched((unsigned char *)(void *)shard - vr_shard_offset(index), VR_SHARD_BYTES, 0);
}

static void release_shards(struct vr_shards *shards) {
    const uint32_t count = atomic_load_explicit(&shards->count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) release_shard(shards->items[i], i);
    vr_os_unreserve_touched(shards->slots, VR_SHARD_SLOTS * sizeof *shards->slots, VR_SHARD_SLOTS * sizeof *shards->slots);
    free(shards->items);
    free(shards->defaults);
    free(shards->idle);
}

void vr_device_release(struct vr_device *device) {
    struct vram_allocator *allocator = device->allocator;
    if (allocator->backend->close != NULL) allocator->backend->close(device);
    release_memory(device);
    vr_source_close(device);
    vr_fences_release(device);
    VR_CU_INSIST(allocator->driver, primary_ctx_release, (int)device->ordinal);
    release_shards(&device->shards);
    vr_segments_release(&device->segments);
    vr_private_release_all(device);
    vr_captures_release(&device->captures);
    free(device->routes.items);
    vr_mutex_destroy(&device->mutex);
    free(device);
}
