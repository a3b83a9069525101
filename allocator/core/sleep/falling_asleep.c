// Puts pools to sleep.
#include "core/share/share.h"
#include "core/sleep/sleepers.h"
#include "core/source/paged.h"
#include "core/verifier.h"

static enum vram_status refuse_sleep(const struct vram_pool *pool, const struct vr_segment *segment, const char *why,
                                     struct vram_error *error) {
    const struct vram_pool_id id = pool == NULL ? (struct vram_pool_id){0, 0} : pool->id;
    return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "the segment of %llu bytes at 0x%llx of pool (%llu, %llu) cannot sleep: %s",
                   (unsigned long long)segment->mapped, (unsigned long long)segment->address, (unsigned long long)id.first,
                   (unsigned long long)id.second, why);
}

// Finds whether a live block lies in pages that another process may use. Processes with pages of freed blocks had to finish with them
// before.
static enum vram_status look_for_exports(const struct vr_device *device, uint32_t number, bool *found) {
    const struct vr_segment *segment = vr_segment_at(device->allocator, number);
    struct vr_live_ranges ranges = {0};
    *found = false;
    if (segment->exported == NULL) return VRAM_OK;
    const enum vram_status status = vr_live_ranges_add(device, number, false, &ranges);
    for (size_t i = 0; i < ranges.count && !*found; i++)
        *found = vr_is_exported(device, segment, ranges.items[i].address, ranges.items[i].size);
    free(ranges.items);
    return status;
}

// Checks that all of the pool's segments can sleep.
static enum vram_status check_segments(const struct vr_device *device, const struct vram_pool *pool, struct vram_error *error) {
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, pool, number)) != 0;) {
        const struct vr_segment *segment = vr_segment_at(device->allocator, number);
        if (segment->mapped == 0) continue;
        if (segment->source == &vr_source_user_functions)
            return refuse_sleep(pool, segment, "the program's own functions allocated it", error);
        if (segment->source->vacate == NULL)
            return refuse_sleep(pool, segment,
                                "cuMemAlloc allocated it (to make such segments of pages, set a tag, sleepable:True or "
                                "expandable_segments:True before the first allocation)",
                                error);
        bool is_exported = false;
        VR_TRY(look_for_exports(device, number, &is_exported));
        if (is_exported) return refuse_sleep(pool, segment, "other processes may share its pages", error);
    }
    return VRAM_OK;
}

enum vram_status vr_sleeper_prepare(struct vr_device *device, uint64_t stream, struct vr_sleeper *sleeper, struct vram_error *error) {
    VR_TRY(check_segments(device, sleeper->pool, error));
    if (sleeper->level != VRAM_SLEEP_KEEP) return VRAM_OK;
    struct vr_live_ranges ranges = {0};
    enum vram_status status = vr_sleeper_ranges(device, sleeper, &ranges);
    if (status == VRAM_OK) status = vr_kept_save(device, stream, &ranges, &sleeper->kept);
    free(ranges.items);
    return status;
}

void vr_sleeper_begin(struct vr_device *device, struct vr_sleeper *sleeper, struct vram_sleep_result *result) {
    const int64_t before = device->stats.reserved[VRAM_STAT_ALL].current;
    vr_sleeper_add(device, sleeper);
    vr_sleeper_set_shards(device, sleeper->pool, true);
    vr_pool_give_up_check(device, sleeper->pool);
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, sleeper->pool, number)) != 0;) {
        struct vr_segment *segment = vr_segment_at(device->allocator, number);
        if (segment->source->vacate == NULL) continue; // a reservation of another source, without memory
        vr_blocks_fall_asleep(device, segment);
        segment->source->vacate(device, segment, &result->held_bytes);
    }
    vr_paged_vacate_pages(device, sleeper->pool, &result->held_bytes);
    const uint64_t went = (uint64_t)(before - device->stats.reserved[VRAM_STAT_ALL].current);
    vr_sleeper_notify(device, sleeper->pool, true, went);
    result->pools++;
    result->bytes += went;
    for (size_t i = 0; i < sleeper->kept.run_count; i++) result->copied_bytes += sleeper->kept.runs[i].size;
}

// --- blocks lent to requests of the default pools ---------------------------------------------------------------------------------------

// A block lent by a private pool (use_on_oom, share_live_pools) lies in the lender's memory, but the program that requested it does not
// know that. The lender therefore sleeps only while the default pools do, and wakes with them.
static uint32_t lent_slot(const struct vr_device *device, const struct vram_pool *pool) {
    const struct vr_paged_device *paged = vr_paged_device(device);
    for (size_t i = 1; paged != NULL && i < paged->slot_count; i++) {
        const struct vr_paged_slot *slot = &paged->slots[i];
        if (slot->own != NULL && slot->own->shard->owner == pool && vr_paged_block_of(slot)->lent) return slot->block;
    }
    return 0;
}

// Returns the first live block that the pool has lent, or 0.
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
                   "free that block first, or suspend the default pools in the same call and at the same level",
                   (unsigned long long)sleeper->pool->id.first, (unsigned long long)sleeper->pool->id.second,
                   (unsigned long long)item->size, (unsigned long long)item->address,
                   borrower == NULL ? "stay awake" : "sleep at another level");
}

bool vr_has_lent(const struct vr_device *device, const struct vr_sleeper *sleeper) { return lent_block(device, sleeper->pool) != 0; }
