// Which pools sleep, and what they are.
#include "core/sleep/sleepers.h"
#include "core/source/paged.h"

static struct vr_sleeper **sleeper_place(struct vr_device *device, struct vram_pool *pool) {
    return pool != NULL ? &pool->sleeper : &device->default_sleeper;
}

struct vr_sleeper *vr_sleeper_of(const struct vr_device *device, const struct vram_pool *pool) {
    return pool != NULL ? pool->sleeper : device->default_sleeper;
}

void vr_sleeper_add(struct vr_device *device, struct vr_sleeper *sleeper) {
    sleeper->next = device->sleepers;
    if (sleeper->next != NULL) sleeper->next->previous = sleeper;
    device->sleepers = sleeper;
    *sleeper_place(device, sleeper->pool) = sleeper;
}

void vr_sleeper_end(struct vr_device *device, struct vr_sleeper *sleeper) {
    *(sleeper->previous != NULL ? &sleeper->previous->next : &device->sleepers) = sleeper->next;
    if (sleeper->next != NULL) sleeper->next->previous = sleeper->previous;
    *sleeper_place(device, sleeper->pool) = NULL;
    vr_kept_release(device, &sleeper->kept);
    free(sleeper);
}

void vr_sleeper_set_shards(struct vr_device *device, const struct vram_pool *pool, bool asleep) {
    const uint32_t count = atomic_load_explicit(&device->shards.count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        struct vr_shard *shard = device->shards.items[i];
        if (shard->owner == pool && !shard->idle) shard->asleep = asleep;
    }
}

uint32_t vr_sleeper_next_segment(const struct vr_device *device, const struct vram_pool *pool, uint32_t after) {
    uint32_t number = after != 0 ? vr_segment_after(device, after) : vr_segment_first(device);
    while (number != 0 && device->allocator->shards[vr_segment_at(device->allocator, number)->shard]->owner != pool)
        number = vr_segment_after(device, number);
    return number;
}

// Of the whole pool, for histories.
void vr_sleeper_notify(struct vr_device *device, const struct vram_pool *pool, bool asleep, uint64_t bytes) {
    const uint32_t count = atomic_load_explicit(&device->shards.count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        struct vr_shard *shard = device->shards.items[i];
        if (shard->owner != pool || shard->idle) continue;
        vr_notify_sleep(shard, asleep, NULL, 0, bytes);
        return;
    }
}

uint64_t vr_sleeper_away(const struct vr_device *device, const struct vr_sleeper *sleeper) {
    uint64_t bytes = 0;
    for (uint32_t number = 0; (number = vr_sleeper_next_segment(device, sleeper->pool, number)) != 0;) {
        bytes += vr_segment_at(device->allocator, number)->away;
    }
    for (size_t i = 1; device->paged != NULL && i < device->paged->page_count; i++) {
        const struct vr_paged_page *page = &device->paged->pages[i];
        if (page->size != 0 && page->away && page->own->shard->owner == sleeper->pool) bytes += page->size;
    }
    return bytes;
}

uint64_t vr_sleeper_live(const struct vr_device *device, const struct vr_sleeper *sleeper) {
    const struct vram_pool *pool = sleeper->pool;
    const struct vram_allocator *allocator = device->allocator;
    uint64_t bytes = 0;
    for (uint32_t number = vr_segment_first(device); number != 0; number = vr_segment_after(device, number)) {
        const struct vr_segment *segment = vr_segment_at(allocator, number);
        if (allocator->shards[segment->shard]->owner != pool || segment->source->block_containing != NULL) continue;
        for (uint32_t at = segment->first; at != 0; at = vr_block_at(allocator, at)->next)
            if (vr_block_at(allocator, at)->state == VR_ALLOCATED) bytes += vr_block_at(allocator, at)->size;
    }
    for (size_t i = 1; device->paged != NULL && i < device->paged->slot_count; i++) {
        const struct vr_paged_slot *slot = &device->paged->slots[i];
        if (slot->own != NULL && slot->own->shard->owner == pool && vr_paged_block_of(slot)->state == VR_ALLOCATED)
            bytes += vr_paged_block_of(slot)->size;
    }
    return bytes;
}

enum vram_status vr_sleeper_ranges(const struct vr_device *device, const struct vr_sleeper *sleeper, struct vr_live_ranges *ranges) {
    const bool whole = sleeper->pool != NULL && sleeper->pool->captured;
    for (uint32_t number = 0; (number = vr_sleeper_next_segment(device, sleeper->pool, number)) != 0;) {
        VR_TRY(vr_live_ranges_add(device, number, whole, ranges));
    }
    return VRAM_OK;
}

// Of a pool that a graph knows everything stays.
void vr_sleeper_trim(struct vr_sleeper *sleeper, struct vr_device *device) {
    if (sleeper->pool != NULL && sleeper->pool->captured && sleeper->pool->references != 0) return;
    for (uint32_t number = vr_sleeper_next_segment(device, sleeper->pool, 0), next; number != 0; number = next) {
        next = vr_sleeper_next_segment(device, sleeper->pool, number); // it may be gone afterwards
        if (vr_segment_at(device->allocator, number)->asleep) vr_asleep_trim(device, number);
    }
    vr_paged_asleep_trim(device, sleeper->pool);
}

void vr_sleeper_forget(struct vr_device *device, const struct vram_pool *pool) {
    struct vr_sleeper *sleeper = vr_sleeper_of(device, pool);
    if (sleeper == NULL) return;
    vr_sleeper_set_shards(device, pool, false);
    vr_sleeper_end(device, sleeper);
}

void vr_sleepers_release(struct vr_device *device) {
    while (device->sleepers != NULL) vr_sleeper_end(device, device->sleepers);
    vr_pinned_trim(device);
}
