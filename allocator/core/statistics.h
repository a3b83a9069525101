// statistics.h: what is counted of a device (allocator.md §counters). Every change is booked when it happens, under the device's lock, and
// peaks are raised with it, so that the statistics are exact after every call.
#ifndef VR_CORE_STATISTICS_H
#define VR_CORE_STATISTICS_H

#include "base/stat.h"

enum vr_family { VR_F_COUNT, VR_F_BYTES, VR_F_REQUESTED, VR_F_SPLITS, VR_F_SPLIT_BYTES, VR_FAMILIES };
enum vr_pool_kind { VR_LARGE, VR_SMALL, VR_POOLS };

// By how much an operation changes each family.
struct vr_delta {
    int64_t of[VR_FAMILIES];
};

// Families of the device-wide view: the five above, then these. `active` is `allocation` plus the blocks that wait for fences.
enum { VR_F_ACTIVE = VR_FAMILIES, VR_F_ACTIVE_BYTES, VR_VIEW_FAMILIES };

// The families that blocks are counted in, of one size class of a device.
struct vr_pool_totals {
    int64_t current[VR_FAMILIES];
    int64_t increased[VR_FAMILIES]; // the sum of all increases; that of all decreases follows from it
    int64_t pending, pending_bytes; // blocks that wait for fences
    int64_t peak[VR_VIEW_FAMILIES];
};

// Of both classes together only the peaks are kept: they do not follow from those of each.
struct vr_totals {
    struct vr_pool_totals pool[VR_POOLS];
    int64_t peak_of_both[VR_VIEW_FAMILIES];
    int64_t base_allocated[VRAM_STAT_POOLS][VR_VIEW_FAMILIES]; // sums at the last reset_accumulated
    int64_t base_freed[VRAM_STAT_POOLS][VR_VIEW_FAMILIES];
};

// What is counted of a device.
struct vr_device_stats {
    struct vr_totals totals;
    struct vram_stat segment[VRAM_STAT_POOLS];
    struct vram_stat reserved[VRAM_STAT_POOLS];
    struct vram_stat oversize_allocations;
    struct vram_stat oversize_segments;
    int64_t num_alloc_retries, num_ooms, num_sync_all_streams, num_device_alloc, num_device_free, num_oom_rejections, moved_bytes;
    int64_t max_split_at_start;
};

// Books a change and raises the peaks. `pending` blocks and bytes begin (+) or cease (-) to wait for fences. Only what rises can be a peak;
// `active` rises with `allocation`, for a block that begins to wait was active before.
VR_INLINE void vr_totals_book(struct vr_totals *totals, unsigned pool, const struct vr_delta *delta, int64_t pending,
                              int64_t pending_bytes) {
    struct vr_pool_totals *own = &totals->pool[pool];
    const struct vr_pool_totals *other = &totals->pool[pool ^ 1];
    int64_t *peak = own->peak, *both = totals->peak_of_both;
    for (int f = 0; f < VR_FAMILIES; f++) {
        const int64_t current = own->current[f] += delta->of[f];
        if (delta->of[f] <= 0) continue;
        own->increased[f] += delta->of[f];
        if (current > peak[f]) peak[f] = current;
        if (current + other->current[f] > both[f]) both[f] = current + other->current[f];
    }
    own->pending += pending;
    own->pending_bytes += pending_bytes;
    if (delta->of[VR_F_COUNT] <= 0) return;
    const int64_t active = own->current[VR_F_COUNT] + own->pending, bytes = own->current[VR_F_BYTES] + own->pending_bytes;
    const int64_t all = active + other->current[VR_F_COUNT] + other->pending;
    const int64_t all_bytes = bytes + other->current[VR_F_BYTES] + other->pending_bytes;
    if (active > peak[VR_F_ACTIVE]) peak[VR_F_ACTIVE] = active;
    if (bytes > peak[VR_F_ACTIVE_BYTES]) peak[VR_F_ACTIVE_BYTES] = bytes;
    if (all > both[VR_F_ACTIVE]) both[VR_F_ACTIVE] = all;
    if (all_bytes > both[VR_F_ACTIVE_BYTES]) both[VR_F_ACTIVE_BYTES] = all_bytes;
}

// Books that a change was made and undone so many times in turn. Both states were there before, so no peak rises.
void vr_totals_repeat(struct vr_totals *totals, unsigned pool, const struct vr_delta *delta, uint64_t rounds);

// Fills the families that are counted here.
void vr_totals_report(const struct vr_totals *totals, struct vram_stats *stats);
void vr_totals_reset_peak(struct vr_totals *totals);
void vr_totals_reset_accumulated(struct vr_totals *totals);

#endif
