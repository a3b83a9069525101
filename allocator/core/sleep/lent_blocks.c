// Blocks that a private pool lent to requests of the default pools (use_on_oom, share_live_pools): they lie in memory of the lender, but
// the program that asked for them does not know it. So the lender sleeps only while the default pools do, and wakes when they wake.
#include "core/sleep/sleepers.h"
#include "core/source/paged.h"

static uint32_t lent_slot(const struct vr_device *device, const struct vram_pool *pool) {
    const struct vr_paged_device *paged = vr_paged_device(device);
    for (size_t i = 1; paged != NULL && i < paged->slot_count; i++) {
        const struct vr_paged_slot *slot = &paged->slots[i];
        if (slot->own != NULL && slot->own->shard->owner == pool && vr_paged_block_of(slot)->lent) return slot->block;
    }
    return 0;
}

// The first live block that the pool has lent; 0: there is none.
static uint32_t lent_block(const struct vr_device *device, const struct vram_pool *pool) {
    const struct vram_allocator *allocator = device->allocator;
    if (pool == NULL) return 0;
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, pool, number)) != 0;) {
        const struct vr_segment *segment = vr_segment_at(allocator, number);
        if (segment->source->has_slots) continue;
        for (uint32_t at = segment->first; at != 0; at = vr_block_at(allocator, at)->next)
            if (vr_block_at(allocator, at)->lent) return at;
    }
    return lent_slot(device, pool);
}

enum vram_status vr_lent_check(const struct vr_device *device, const struct vr_sleeper *sleeper, const struct vr_sleeper *borrower,
                               struct vram_error *error) {
    const uint32_t block = lent_block(device, sleeper->pool);
    if (block == 0 || (borrower != NULL && borrower->level == sleeper->level)) return VRAM_OK;
    const struct vr_block *item = vr_block_at(device->allocator, block);
    return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET,
                   "pool (%llu, %llu) cannot sleep: it lent the block of %llu bytes at 0x%llx to a request of the default pools, which %s; "
                   "free the block first, or let the default pools sleep in the same call, at the same level",
                   (unsigned long long)sleeper->pool->id.first, (unsigned long long)sleeper->pool->id.second,
                   (unsigned long long)item->size, (unsigned long long)item->address,
                   borrower == NULL ? "stay awake" : "sleep at another level");
}

bool vr_has_lent(const struct vr_device *device, const struct vr_sleeper *sleeper) { return lent_block(device, sleeper->pool) != 0; }
