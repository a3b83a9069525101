// Which pools sleep, and what becomes of a request to one.
#include "core/sleep/sleepers.h"
#include "core/capture/captures.h"
#include "core/release.h"
#include "core/share/share.h"
#include "core/source/paged.h"

struct vr_sleeper *vr_sleeper_of(const struct vr_device *device, const struct vram_pool *pool) {
    struct vr_sleeper *sleeper = device->sleepers;
    while (sleeper != NULL && sleeper->pool != pool) sleeper = sleeper->next;
    return sleeper;
}

static void end(struct vr_device *device, struct vr_sleeper *sleeper) {
    struct vr_sleeper **link = &device->sleepers;
    while (*link != sleeper) link = &(*link)->next;
    *link = sleeper->next;
    vr_kept_release(device, &sleeper->kept);
    free(sleeper);
}

static void set_shards(struct vr_device *device, const struct vram_pool *pool, bool asleep) {
    const uint32_t count = atomic_load_explicit(&device->shards.count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        struct vr_shard *shard = device->shards.items[i];
        if (shard->owner == pool && !shard->idle) shard->asleep = asleep;
    }
}

// The next segment of the pool, from *at on, which is then behind it; 0: there is none.
static uint32_t next_segment(const struct vr_device *device, const struct vram_pool *pool, size_t *at) {
    while (*at < device->segments.count) {
        const uint32_t number = device->segments.items[(*at)++];
        if (device->allocator->shards[vr_segment_at(device->allocator, number)->shard]->owner == pool) return number;
    }
    return 0;
}

// Of the whole pool, for histories.
static void tell(struct vr_device *device, const struct vram_pool *pool, bool asleep, uint64_t bytes) {
    const uint32_t count = atomic_load_explicit(&device->shards.count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        struct vr_shard *shard = device->shards.items[i];
        if (shard->owner != pool || shard->idle) continue;
        vr_notify_sleep(shard, asleep, NULL, 0, bytes);
        return;
    }
}

// --- falling asleep -------------------------------------------------------------------------------------------------------------------

static enum vram_status refuse(const struct vram_pool *pool, const struct vr_segment *segment, const char *why, struct vram_error *error) {
    const struct vram_pool_id id = pool == NULL ? (struct vram_pool_id){0, 0} : pool->id;
    return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "the segment of %llu bytes at 0x%llx of pool (%llu, %llu) cannot sleep: %s",
                   (unsigned long long)segment->mapped, (unsigned long long)segment->address, (unsigned long long)id.first,
                   (unsigned long long)id.second, why);
}

static bool is_exported(const struct vr_segment *segment) {
    for (uint64_t page = 0; segment->exported != NULL && page < segment->size / segment->page_size; page++)
        if (segment->exported[page].serial != 0) return true;
    return false;
}

// Whether all of the pool's segments can sleep.
static enum vram_status check_segments(const struct vr_device *device, const struct vram_pool *pool, struct vram_error *error) {
    for (size_t at = 0;;) {
        const uint32_t number = next_segment(device, pool, &at);
        if (number == 0) return VRAM_OK;
        const struct vr_segment *segment = vr_segment_at(device->allocator, number);
        if (segment->mapped == 0) continue;
        if (segment->source == &vr_source_user_functions) return refuse(pool, segment, "functions of the program made it", error);
        if (segment->source->vacate == NULL)
            return refuse(pool, segment, "it was made by cuMemAlloc (a tag, sleepable:True or expandable_segments:True before it was made "
                                         "would have made it of pages)", error);
        if (is_exported(segment)) return refuse(pool, segment, "other processes may have its pages", error);
    }
}

static enum vram_status list_ranges(const struct vr_device *device, const struct vr_sleeper *sleeper, struct vr_live_ranges *ranges) {
    const bool whole = sleeper->pool != NULL && sleeper->pool->captured;
    for (size_t at = 0;;) {
        const uint32_t number = next_segment(device, sleeper->pool, &at);
        if (number == 0) return VRAM_OK;
        VR_TRY(vr_live_ranges_add(device, number, whole, ranges));
    }
}

enum vram_status vr_sleeper_prepare(struct vr_device *device, uint64_t stream, struct vr_sleeper *sleeper, struct vram_error *error) {
    VR_TRY(check_segments(device, sleeper->pool, error));
    if (sleeper->level != VRAM_SLEEP_KEEP) return VRAM_OK;
    struct vr_live_ranges ranges = {0};
    enum vram_status status = list_ranges(device, sleeper, &ranges);
    if (status == VRAM_OK) status = vr_kept_save(device, stream, &ranges, &sleeper->kept);
    free(ranges.items);
    return status;
}

void vr_sleeper_begin(struct vr_device *device, struct vr_sleeper *sleeper, struct vram_sleep_result *result) {
    const int64_t before = device->stats.reserved[VRAM_STAT_ALL].current;
    sleeper->next = device->sleepers;
    device->sleepers = sleeper;
    set_shards(device, sleeper->pool, true);
    for (size_t at = 0;;) {
        const uint32_t number = next_segment(device, sleeper->pool, &at);
        if (number == 0) break;
        struct vr_segment *segment = vr_segment_at(device->allocator, number);
        if (segment->source->vacate == NULL) continue; // a reservation of another kind, without memory
        vr_blocks_fall_asleep(device, segment);
        segment->source->vacate(device, segment, &result->held_bytes);
    }
    const uint64_t went = (uint64_t)(before - device->stats.reserved[VRAM_STAT_ALL].current);
    tell(device, sleeper->pool, true, went);
    result->pools++;
    result->bytes += went;
    for (size_t i = 0; i < sleeper->kept.run_count; i++) result->copied_bytes += sleeper->kept.runs[i].size;
}

// --- waking ------------------------------------------------------------------------------------------------------------------------------

uint64_t vr_sleeper_away(const struct vr_device *device, const struct vr_sleeper *sleeper) {
    uint64_t bytes = 0;
    for (size_t at = 0;;) {
        const uint32_t number = next_segment(device, sleeper->pool, &at);
        if (number == 0) break;
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
    for (size_t i = 0; i < device->segments.count; i++) {
        const struct vr_segment *segment = vr_segment_at(allocator, device->segments.items[i]);
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

// Bytes that were kept are queued to come back, zeros to be written; memory stands behind every page at the end.
static enum vram_status fill(struct vr_device *device, uint64_t stream, const struct vr_sleeper *sleeper, uint64_t *copied) {
    struct vr_live_ranges ranges = {0};
    enum vram_status status = list_ranges(device, sleeper, &ranges);
    size_t next = 0;
    for (size_t i = 0; i < ranges.count && status == VRAM_OK; i++) {
        const struct vr_live_range *range = &ranges.items[i];
        if (sleeper->level == VRAM_SLEEP_KEEP) status = vr_kept_restore(device, stream, &sleeper->kept, &next, range, copied);
        if (status == VRAM_OK) status = vr_populate(device, range->segment, range->address, range->size);
        if (status == VRAM_OK && sleeper->level == VRAM_SLEEP_ZERO)
            status = vr_driver_status(vr_cu(device->allocator->driver, memset_d8_async, range->address, 0, range->size, stream));
    }
    free(ranges.items);
    return status;
}

// Pages on which nothing lives, but which could not be given up.
static enum vram_status fill_rest(struct vr_device *device, const struct vr_sleeper *sleeper) {
    const struct vram_allocator *allocator = device->allocator;
    for (size_t position = 0;;) {
        const uint32_t number = next_segment(device, sleeper->pool, &position);
        if (number == 0) return VRAM_OK;
        const struct vr_segment *segment = vr_segment_at(allocator, number);
        if (!segment->asleep) continue;
        if (segment->source->block_containing != NULL) VR_TRY(vr_populate(device, number, segment->address, segment->size));
        for (uint32_t at = segment->source->block_containing == NULL ? segment->first : 0; at != 0; at = vr_block_at(allocator, at)->next) {
            const struct vr_block *item = vr_block_at(allocator, at);
            if (item->state == VR_ASLEEP) VR_TRY(vr_populate(device, number, item->address, item->size));
        }
    }
}

static void vacate(struct vr_device *device, const struct vr_sleeper *sleeper) {
    uint64_t held = 0;
    for (size_t at = 0;;) {
        const uint32_t number = next_segment(device, sleeper->pool, &at);
        if (number == 0) return;
        struct vr_segment *segment = vr_segment_at(device->allocator, number);
        if (segment->asleep) segment->source->vacate(device, segment, &held);
    }
}

static void wake(struct vr_device *device, struct vr_sleeper *sleeper) {
    set_shards(device, sleeper->pool, false);
    for (size_t at = 0;;) {
        const uint32_t number = next_segment(device, sleeper->pool, &at);
        if (number == 0) break;
        struct vr_segment *segment = vr_segment_at(device->allocator, number);
        if (segment->asleep) vr_blocks_wake(device, segment);
    }
    end(device, sleeper);
}

static enum vram_status try_wake(struct vr_device *device, uint64_t stream, struct vr_sleeper *const *sleepers, size_t count,
                                 uint64_t *copied) {
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) status = fill(device, stream, sleepers[i], copied);
    for (size_t i = 0; i < count && status == VRAM_OK; i++) status = fill_rest(device, sleepers[i]);
    const enum vram_status waited = vr_driver_status(vr_cu(device->allocator->driver, stream_synchronize, stream));
    if (status == VRAM_OK) status = waited;
    if (status == VRAM_OK) return VRAM_OK;
    if (waited != VRAM_OK) (void)vr_cu(device->allocator->driver, ctx_synchronize, 0); // copies may still write to what goes now
    for (size_t i = 0; i < count; i++) vacate(device, sleepers[i]);
    return status;
}

// Free memory of other pools goes back, to make room.
static void make_room(struct vr_device *device) {
    (void)!vr_release_all(device, true);
    (void)!vr_paged_release(device, UINT64_MAX);
}

static bool is_within_limit(const struct vr_device *device, uint64_t needed) {
    const uint64_t held = (uint64_t)device->stats.reserved[VRAM_STAT_ALL].current;
    return device->limit_bytes == VR_UNLIMITED || (held <= device->limit_bytes && needed <= device->limit_bytes - held);
}

static enum vram_status say_short(struct vr_device *device, uint64_t needed, bool limited, struct vram_error *error) {
    uint64_t free_bytes = 0, total = 0;
    (void)vr_cu(device->allocator->driver, mem_get_info, &free_bytes, &total);
    const unsigned long long more = (unsigned long long)needed, limit = (unsigned long long)device->limit_bytes;
    if (limited) return vr_fail(error, VRAM_OUT_OF_MEMORY, VRAM_NO_OFFSET, "waking needs %llu bytes more, which exceeds the limit of %llu", more, limit);
    return vr_fail(error, VRAM_OUT_OF_MEMORY, VRAM_NO_OFFSET, "waking needs %llu bytes more, and the device has %llu free", more,
                   (unsigned long long)free_bytes);
}

static enum vram_status wake_all(struct vr_device *device, struct vr_sleeper *const *sleepers, size_t count,
                                  struct vram_sleep_result *result, struct vram_error *error) {
    uint64_t needed = 0, copied = 0, stream = 0;
    for (size_t i = 0; i < count; i++) needed += sleepers[i]->away;
    if (!is_within_limit(device, needed)) make_room(device);
    if (!is_within_limit(device, needed)) return say_short(device, needed, true, error);
    VR_TRY(vr_copy_stream_open(device, &stream));
    enum vram_status status = try_wake(device, stream, sleepers, count, &copied);
    if (status == VRAM_OUT_OF_MEMORY) {
        make_room(device);
        copied = 0;
        status = try_wake(device, stream, sleepers, count, &copied);
    }
    vr_copy_stream_close(device, stream);
    if (status == VRAM_OUT_OF_MEMORY) return say_short(device, needed, false, error);
    VR_TRY(status);
    *result = (struct vram_sleep_result){.pools = (uint32_t)count, .bytes = needed, .copied_bytes = copied};
    return VRAM_OK;
}

// Making room ends pools that nobody holds: not these.
static void hold(struct vr_sleeper *const *sleepers, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (sleepers[i]->pool != NULL) vr_private_retain(sleepers[i]->pool);
}

enum vram_status vr_sleepers_wake(struct vr_device *device, struct vr_sleeper *const *sleepers, size_t count,
                                  struct vram_sleep_result *result, struct vram_error *error) {
    for (size_t i = 0; i < count; i++) {
        vr_sleeper_trim(sleepers[i], device);
        sleepers[i]->away = vr_sleeper_away(device, sleepers[i]);
    }
    hold(sleepers, count);
    const enum vram_status status = wake_all(device, sleepers, count, result, error);
    for (size_t i = 0; i < count; i++) {
        if (sleepers[i]->pool != NULL) vr_private_drop(sleepers[i]->pool);
        if (status != VRAM_OK) continue;
        tell(device, sleepers[i]->pool, false, sleepers[i]->away);
        wake(device, sleepers[i]);
    }
    return status;
}

// --- meanwhile ---------------------------------------------------------------------------------------------------------------------------

enum vram_status vr_sleeper_request(struct vr_device *device, const struct vram_pool *pool) {
    struct vr_sleeper *sleeper = vr_sleeper_of(device, pool);
    struct vram_sleep_result result;
    if (sleeper == NULL) return VRAM_OK;
    if (!sleeper->wakes || vr_any_captures(device)) return VRAM_ASLEEP;
    return vr_sleepers_wake(device, &sleeper, 1, &result, NULL);
}

// Of a pool that a graph knows everything stays.
void vr_sleeper_trim(struct vr_sleeper *sleeper, struct vr_device *device) {
    if (sleeper->pool != NULL && sleeper->pool->captured && sleeper->pool->references != 0) return;
    for (size_t at = 0;;) {
        const uint32_t number = next_segment(device, sleeper->pool, &at);
        if (number == 0) return;
        if (vr_segment_at(device->allocator, number)->asleep && vr_asleep_trim(device, number)) at--;
    }
}

void vr_sleeper_forget(struct vr_device *device, const struct vram_pool *pool) {
    struct vr_sleeper *sleeper = vr_sleeper_of(device, pool);
    if (sleeper == NULL) return;
    set_shards(device, pool, false);
    end(device, sleeper);
}

void vr_sleepers_release(struct vr_device *device) {
    while (device->sleepers != NULL) end(device, device->sleepers);
}
