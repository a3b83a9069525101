// The life of private pools.
#include "core/capture/private.h"
#include "core/device.h"
#include "core/source/source_ops.h"

void vr_private_retain(struct vram_pool *pool) { pool->references++; }
void vr_private_drop(struct vram_pool *pool) {
    assert(pool->references != 0);
    pool->references--;
}

// The shard is taken again by a pool made later: its lists are empty, its counters stand at zero.
static void retire_shard(struct vr_device *device, struct vr_shard *shard) {
    struct vr_shards *shards = &device->shards;
    shard->owner = NULL;
    shard->idle = true;
    if (VR_GROW(shards, idle, shards->idle_count + 1) == VRAM_OK) shards->idle[shards->idle_count++] = shard;
}

// Reservations without a page stay behind when growing failed; they go with the pool.
static void drop_empty_reservations(struct vr_shard *shard) {
    const struct vram_allocator *allocator = shard->device->allocator;
    for (int p = 0; p < VR_POOLS; p++) {
        while (shard->pool[p].holes != 0) {
            const uint32_t segment = vr_block_at(allocator, shard->pool[p].holes)->segment;
            vr_segment_at(allocator, segment)->source->abandon(shard, segment);
        }
    }
}

static bool is_dead(const struct vram_pool *pool) { return pool->references == 0 && pool->segments == 0; }

static void bury(struct vram_pool *pool) {
    for (size_t i = 0; i < pool->shard_count; i++) {
        drop_empty_reservations(pool->shards[i]);
        retire_shard(pool->device, pool->shards[i]);
    }
    vr_extensions_end(&pool->extensions);
    free(pool->shards);
    free(pool);
}

void vr_private_bury(struct vr_device *device) {
    for (struct vram_pool **link = &device->pools; *link != NULL;) {
        struct vram_pool *pool = *link;
        if (!is_dead(pool)) {
            link = &pool->next;
            continue;
        }
        *link = pool->next;
        bury(pool);
    }
}

void vr_private_bury_one(struct vram_pool *pool) {
    if (is_dead(pool)) vr_private_bury(pool->device);
}

void vr_private_release_all(struct vr_device *device) {
    while (device->pools != NULL) {
        struct vram_pool *next = device->pools->next;
        vr_extensions_end(&device->pools->extensions);
        free(device->pools->shards);
        free(device->pools);
        device->pools = next;
    }
}
