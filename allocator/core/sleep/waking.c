// Wakes pools, by a call or for a request.
#include "core/capture/captures.h"
#include "core/release.h"
#include "core/sleep/sleepers.h"
#include "core/source/paged.h"

// Queues the copies of the saved contents, or the zeroing. Afterwards, every page has memory.
static enum vram_status fill_segments(struct vr_device *device, uint64_t stream, const struct vr_sleeper *sleeper, uint64_t *copied) {
    struct vr_live_ranges ranges = {0};
    enum vram_status status = vr_sleeper_ranges(device, sleeper, &ranges);
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

// Provides memory for pages without live blocks that could not be removed.
static enum vram_status fill_rest(struct vr_device *device, const struct vr_sleeper *sleeper) {
    const struct vram_allocator *allocator = device->allocator;
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, sleeper->pool, number)) != 0;) {
        const struct vr_segment *segment = vr_segment_at(allocator, number);
        if (!segment->vacant) continue;
        if (segment->source->has_slots) VR_TRY(vr_populate(device, number, segment->address, segment->size));
        for (uint32_t at = segment->source->has_slots ? 0 : segment->first; at != 0; at = vr_block_at(allocator, at)->next) {
            const struct vr_block *item = vr_block_at(allocator, at);
            if (item->state == VR_VACANT) VR_TRY(vr_populate(device, number, item->address, item->size));
        }
    }
    return vr_paged_populate_rest(device, sleeper->pool);
}

static void vacate_segments(struct vr_device *device, const struct vr_sleeper *sleeper) {
    uint64_t held = 0;
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, sleeper->pool, number)) != 0;) {
        struct vr_segment *segment = vr_segment_at(device->allocator, number);
        if (segment->vacant) segment->source->vacate(device, segment, &held);
    }
    vr_paged_vacate_pages(device, sleeper->pool, &held);
}

static void wake_sleeper(struct vr_device *device, struct vr_sleeper *sleeper) {
    vr_sleeper_set_shards(device, sleeper->pool, false);
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, sleeper->pool, number)) != 0;) {
        struct vr_segment *segment = vr_segment_at(device->allocator, number);
        if (segment->vacant) vr_blocks_wake(device, segment);
    }
    vr_sleeper_end(device, sleeper);
}

static enum vram_status try_wake(struct vr_device *device, uint64_t stream, struct vr_sleeper *const *sleepers, size_t count,
                                 uint64_t *copied) {
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) status = fill_segments(device, stream, sleepers[i], copied);
    for (size_t i = 0; i < count && status == VRAM_OK; i++) status = fill_rest(device, sleepers[i]);
    const enum vram_status waited = vr_driver_status(vr_cu(device->allocator->driver, stream_synchronize, stream));
    if (status == VRAM_OK) status = waited;
    if (status == VRAM_OK) return VRAM_OK;
    if (waited != VRAM_OK) (void)vr_cu(device->allocator->driver, ctx_synchronize, 0); // copies may still write to this memory
    for (size_t i = 0; i < count; i++) vacate_segments(device, sleepers[i]);
    return status;
}

// Releases free memory of other pools to make room.
static void make_room_to_wake(struct vr_device *device) {
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
    if (limited)
        return vr_fail(error, VRAM_OUT_OF_MEMORY, VRAM_NO_OFFSET, "waking needs %llu more bytes, which exceeds the limit of %llu bytes",
                       more, limit);
    return vr_fail(error, VRAM_OUT_OF_MEMORY, VRAM_NO_OFFSET, "waking needs %llu more bytes, but the device has only %llu bytes free", more,
                   (unsigned long long)free_bytes);
}

static enum vram_status wake_all(struct vr_device *device, struct vr_sleeper *const *sleepers, size_t count,
                                 struct vram_sleep_result *result, struct vram_error *error) {
    uint64_t needed = 0, copied = 0, stream = 0;
    for (size_t i = 0; i < count; i++) needed += sleepers[i]->away;
    if (!is_within_limit(device, needed)) make_room_to_wake(device);
    if (!is_within_limit(device, needed)) return say_short(device, needed, true, error);
    VR_TRY(vr_copy_stream_open(device, &stream));
    enum vram_status status = try_wake(device, stream, sleepers, count, &copied);
    if (status == VRAM_OUT_OF_MEMORY) {
        make_room_to_wake(device);
        copied = 0;
        status = try_wake(device, stream, sleepers, count, &copied);
    }
    vr_copy_stream_close(device, stream);
    if (status == VRAM_OUT_OF_MEMORY) return say_short(device, needed, false, error);
    VR_TRY(status);
    *result = (struct vram_sleep_result){.pools = (uint32_t)count, .bytes = needed, .copied_bytes = copied};
    return VRAM_OK;
}

// Keeps make_room_to_wake() from destroying these pools if they have no references.
static void hold_sleepers(struct vr_sleeper *const *sleepers, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (sleepers[i]->pool != NULL) vr_private_retain(sleepers[i]->pool);
}

static enum vram_status wake_these(struct vr_device *device, struct vr_sleeper *const *sleepers, size_t count,
                                   struct vram_sleep_result *result, struct vram_error *error) {
    for (size_t i = 0; i < count; i++) {
        vr_sleeper_trim(sleepers[i], device);
        sleepers[i]->away = vr_sleeper_away(device, sleepers[i]);
    }
    hold_sleepers(sleepers, count);
    const enum vram_status status = wake_all(device, sleepers, count, result, error);
    for (size_t i = 0; i < count; i++) {
        if (sleepers[i]->pool != NULL) vr_private_drop(sleepers[i]->pool);
        if (status != VRAM_OK) continue;
        vr_sleeper_notify(device, sleepers[i]->pool, false, sleepers[i]->away);
        wake_sleeper(device, sleepers[i]);
    }
    return status;
}

static bool contains_sleeper(struct vr_sleeper *const *sleepers, size_t count, const struct vr_sleeper *sleeper) {
    for (size_t i = 0; i < count; i++)
        if (sleepers[i] == sleeper) return true;
    return false;
}

// Wakes the default pools together with the pools that lent them blocks.
static enum vram_status wake_with_lenders(struct vr_device *device, struct vr_sleeper *const *sleepers, size_t count,
                                          struct vram_sleep_result *result, struct vram_error *error) {
    size_t all = count, most = 0;
    for (const struct vr_sleeper *sleeper = device->vacant; sleeper != NULL; sleeper = sleeper->next) most++;
    struct vr_sleeper **list = calloc(most, sizeof *list);
    if (list == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(list, sleepers, count * sizeof *list);
    for (struct vr_sleeper *sleeper = device->vacant; sleeper != NULL; sleeper = sleeper->next)
        if (!contains_sleeper(sleepers, count, sleeper) && vr_has_lent(device, sleeper)) list[all++] = sleeper;
    const enum vram_status status = wake_these(device, list, all, result, error);
    free(list);
    return status;
}

enum vram_status vr_sleepers_wake(struct vr_device *device, struct vr_sleeper *const *sleepers, size_t count,
                                  struct vram_sleep_result *result, struct vram_error *error) {
    const bool with_default = device->vacant_defaults != NULL && contains_sleeper(sleepers, count, device->vacant_defaults);
    return (with_default ? wake_with_lenders : wake_these)(device, sleepers, count, result, error);
}

// --- requests ----------------------------------------------------------------------------------------------------------------------------

enum vram_status vr_vacant_request(struct vr_device *device, const struct vram_pool *pool) {
    struct vr_sleeper *sleeper = vr_sleeper_of(device, pool);
    struct vram_sleep_result result;
    if (sleeper == NULL) return VRAM_OK;
    if (!sleeper->wakes || vr_any_captures(device)) return VRAM_ASLEEP;
    return vr_sleepers_wake(device, &sleeper, 1, &result, NULL);
}
