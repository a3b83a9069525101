// The life of private pools.
#include "core/capture/private.h"
#include "core/device.h"
#include "core/shards.h"
#include "core/sleep/sleepers.h"
#include "core/source/paged.h"
#include "core/source/source_ops.h"

// What it grows by then is another source.
void vr_private_mark_captured(struct vram_pool *pool) {
    if (pool->captured) return;
    pool->captured = true;
    vr_pool_apply_options(pool);
}

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

// Pages that a graph may have known go once the streams have been waited for (vr_release_pool()).
static bool is_dead(struct vram_pool *pool) {
    if (pool->references == 0 && pool->segments != 0 && !pool->captured) vr_paged_hand_over(pool);
    return pool->references == 0 && pool->segments == 0;
}

struct vram_pool *vr_private_by_id(const struct vr_device *device, struct vram_pool_id id) {
    struct vram_pool *pool = device->pools;
    while (pool != NULL && (pool->id.first != id.first || pool->id.second != id.second)) pool = pool->next;
    return pool;
}

void vr_private_revive(struct vram_pool *pool) {
    struct vr_ended_pools *ended = &pool->device->ended_pools;
    for (size_t i = 0; i < ended->count; i++) {
        if (ended->items[i].id.first != pool->id.first || ended->items[i].id.second != pool->id.second) continue;
        memcpy(pool->reserved, ended->items[i].reserved, sizeof pool->reserved);
        pool->counted = true;
        ended->items[i] = ended->items[--ended->count];
        return;
    }
}

// Without memory for it the statistics are gone with the pool. A pool that never held anything has none.
static void keep_stats(const struct vram_pool *pool) {
    struct vr_ended_pools *ended = &pool->device->ended_pools;
    if (!pool->counted || VR_GROW(ended, items, ended->count + 1) != VRAM_OK) return;
    ended->items[ended->count].id = pool->id;
    memcpy(ended->items[ended->count].reserved, pool->reserved, sizeof pool->reserved);
    ended->count++;
}

static void bury(struct vram_pool *pool) {
    keep_stats(pool);
    vr_sleeper_forget(pool->device, pool);
    for (size_t i = 0; i < pool->shard_count; i++) {
        vr_paged_park(pool->shards[i]);
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
    free(device->ended_pools.items);
    device->ended_pools = (struct vr_ended_pools){0};
}
