// The list of sleeping pools, and facts about them.
#include "core/sleep/sleepers.h"
#include "core/source/paged.h"

static struct vr_sleeper **sleeper_place(struct vr_device *device, struct vram_pool *pool) {
    return pool != NULL ? &pool->sleeper : &device->vacant_defaults;
}

struct vr_sleeper *vr_sleeper_of(const struct vr_device *device, const struct vram_pool *pool) {
    return pool != NULL ? pool->sleeper : device->vacant_defaults;
}

void vr_sleeper_add(struct vr_device *device, struct vr_sleeper *sleeper) {
    sleeper->next = device->vacant;
    if (sleeper->next != NULL) sleeper->next->previous = sleeper;
    device->vacant = sleeper;
    *sleeper_place(device, sleeper->pool) = sleeper;
}

void vr_sleeper_end(struct vr_device *device, struct vr_sleeper *sleeper) {
    *(sleeper->previous != NULL ? &sleeper->previous->next : &device->vacant) = sleeper->next;
    if (sleeper->next != NULL) sleeper->next->previous = sleeper->previous;
    *sleeper_place(device, sleeper->pool) = NULL;
    vr_kept_release(device, &sleeper->kept);
    free(sleeper);
}

static struct vr_shard **shards_of(const struct vr_device *device, const struct vram_pool *pool, size_t *count) {
    *count = pool != NULL ? pool->shard_count : device->shards.default_count;
    return pool != NULL ? pool->shards : device->shards.defaults;
}

void vr_sleeper_set_shards(struct vr_device *device, const struct vram_pool *pool, bool asleep) {
    size_t count = 0;
    struct vr_shard **shards = shards_of(device, pool, &count);
    for (size_t i = 0; i < count; i++) shards[i]->vacant = asleep;
}

// Reports to the listener for the whole pool.
void vr_sleeper_notify(struct vr_device *device, const struct vram_pool *pool, bool asleep, uint64_t bytes) {
    size_t count = 0;
    struct vr_shard **shards = shards_of(device, pool, &count);
    if (count != 0) vr_notify_vacant(shards[0], asleep, NULL, 0, bytes);
}

uint64_t vr_sleeper_away(const struct vr_device *device, const struct vr_sleeper *sleeper) {
    uint64_t bytes = 0;
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, sleeper->pool, number)) != 0;) {
        bytes += vr_segment_at(device->allocator, number)->away;
    }
    for (size_t i = 1; vr_paged_device(device) != NULL && i < vr_paged_device(device)->page_count; i++) {
        const struct vr_paged_page *page = &vr_paged_device(device)->pages[i];
        if (page->size != 0 && page->away && page->own->shard->owner == sleeper->pool) bytes += page->size;
    }
    return bytes;
}

uint64_t vr_sleeper_live(const struct vr_device *device, const struct vr_sleeper *sleeper) {
    const struct vram_pool *pool = sleeper->pool;
    const struct vram_allocator *allocator = device->allocator;
    uint64_t bytes = 0;
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, pool, number)) != 0;) {
        const struct vr_segment *segment = vr_segment_at(allocator, number);
        if (segment->source->has_slots) continue;
        for (uint32_t at = segment->first; at != 0; at = vr_block_at(allocator, at)->next)
            if (vr_block_at(allocator, at)->state == VR_ALLOCATED) bytes += vr_block_at(allocator, at)->size;
    }
    for (size_t i = 1; vr_paged_device(device) != NULL && i < vr_paged_device(device)->slot_count; i++) {
        const struct vr_paged_slot *slot = &vr_paged_device(device)->slots[i];
        if (slot->own != NULL && slot->own->shard->owner == pool && vr_paged_block_of(slot)->state == VR_ALLOCATED)
            bytes += vr_paged_block_of(slot)->size;
    }
    return bytes;
}

static int segments_by_address(const void *a, const void *b) {
    const struct vr_live_range *first = a, *second = b;
    return VR_ORDER(first->address, second->address);
}

enum vram_status vr_sleeper_ranges(const struct vr_device *device, const struct vr_sleeper *sleeper, struct vr_live_ranges *ranges) {
    const bool whole = sleeper->pool != NULL && sleeper->pool->captured;
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, sleeper->pool, number)) != 0;) {
        VR_TRY(vr_live_ranges_add(device, number, whole, ranges));
    }
    if (ranges->count > 1) qsort(ranges->items, ranges->count, sizeof *ranges->items, segments_by_address);
    return VRAM_OK;
}

// A pool that a graph uses keeps everything.
void vr_sleeper_trim(struct vr_sleeper *sleeper, struct vr_device *device) {
    if (sleeper->pool != NULL && sleeper->pool->captured && sleeper->pool->references != 0) return;
    for (uint32_t number = vr_segment_of_pool_after(device, sleeper->pool, 0), next; number != 0; number = next) {
        next = vr_segment_of_pool_after(device, sleeper->pool, number); // vr_asleep_trim() may remove the segment
        if (vr_segment_at(device->allocator, number)->vacant) vr_asleep_trim(device, number);
    }
    vr_paged_asleep_trim(device, sleeper->pool);
}

// --- for other folders -------------------------------------------------------------------------------------------------------------------

bool vr_is_vacant(const struct vr_device *device, const struct vram_pool *pool) { return vr_sleeper_of(device, pool) != NULL; }

uint64_t vr_vacant_needs(const struct vr_device *device, const struct vram_pool *pool) {
    return vr_sleeper_away(device, vr_sleeper_of(device, pool));
}

uint64_t vr_vacant_live(const struct vr_device *device) {
    uint64_t bytes = 0;
    for (const struct vr_sleeper *sleeper = device->vacant; sleeper != NULL; sleeper = sleeper->next)
        bytes += vr_sleeper_live(device, sleeper);
    return bytes;
}

void vr_vacant_trim(struct vram_pool *pool) {
    struct vr_sleeper *sleeper = vr_sleeper_of(pool->device, pool);
    if (sleeper != NULL) vr_sleeper_trim(sleeper, pool->device);
}

void vr_vacant_forget(struct vr_device *device, const struct vram_pool *pool) {
    struct vr_sleeper *sleeper = vr_sleeper_of(device, pool);
    if (sleeper == NULL) return;
    vr_sleeper_set_shards(device, pool, false);
    vr_sleeper_end(device, sleeper);
}

void vr_vacant_release(struct vr_device *device) {
    while (device->vacant != NULL) vr_sleeper_end(device, device->vacant);
    vr_pinned_trim(device);
}
