// statistics.h: what is counted of a device (allocator.md §counters). Every change is booked when it happens, under the device's lock, and
// peaks are raised with it, so that the statistics are exact after every call.
#ifndef VR_CORE_STATISTICS_H
#define VR_CORE_STATISTICS_H

#include "base/stat.h"

// Families of counters. `active` is `allocation` plus the blocks that wait for fences.
enum vr_family { VR_F_COUNT, VR_F_BYTES, VR_F_REQUESTED, VR_F_ACTIVE, VR_F_ACTIVE_BYTES, VR_F_SPLITS, VR_F_SPLIT_BYTES, VR_FAMILIES };
enum vr_pool_kind { VR_LARGE, VR_SMALL, VR_POOLS };

// By how much an operation changes each family.
struct vr_delta {
    int64_t of[VR_FAMILIES];
};

// One family, of both size classes of a device. Of both together only the peak is kept: it does not follow from those of each.
struct vr_family_totals {
    int64_t current[VR_POOLS];
    int64_t increased[VR_POOLS]; // the sum of all increases; that of all decreases follows from it
    int64_t peak[VR_POOLS];
    int64_t peak_of_both;
};

struct vr_totals {
    struct vr_family_totals of[VR_FAMILIES];
    int64_t base_allocated[VRAM_STAT_POOLS][VR_FAMILIES]; // sums at the last reset_accumulated
    int64_t base_freed[VRAM_STAT_POOLS][VR_FAMILIES];
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

// `by` is more than 0: what rises may be a peak.
VR_INLINE void vr_family_raise(struct vr_family_totals *family, unsigned pool, int64_t by) {
    const int64_t current = family->current[pool] + by, both = current + family->current[pool ^ 1];
    family->current[pool] = current;
    family->increased[pool] += by;
    if (current > family->peak[pool]) family->peak[pool] = current;
    if (both > family->peak_of_both) family->peak_of_both = both;
}

VR_INLINE void vr_family_change(struct vr_family_totals *family, unsigned pool, int64_t by) {
    if (by > 0) {
        vr_family_raise(family, pool, by);
    } else {
        family->current[pool] += by;
    }
}

// Books a change. The families of what is handed out rise together, or none of them does.
VR_INLINE void vr_totals_book(struct vr_totals *totals, unsigned pool, const struct vr_delta *delta) {
    if (delta->of[VR_F_COUNT] > 0) {
        for (int f = VR_F_COUNT; f <= VR_F_ACTIVE_BYTES; f++) vr_family_raise(&totals->of[f], pool, delta->of[f]);
    } else {
        for (int f = VR_F_COUNT; f <= VR_F_ACTIVE_BYTES; f++) {
            assert(VRAM_CHECK < 2 || delta->of[f] <= 0);
            totals->of[f].current[pool] += delta->of[f];
        }
    }
    for (int f = VR_F_SPLITS; f <= VR_F_SPLIT_BYTES; f++) vr_family_change(&totals->of[f], pool, delta->of[f]);
}

// Books that a change was made and undone so many times in turn. Both states were there before, so no peak rises.
void vr_totals_repeat(struct vr_totals *totals, unsigned pool, const struct vr_delta *delta, uint64_t rounds);

VR_INLINE int64_t vr_totals_current(const struct vr_totals *totals, unsigned pool, enum vr_family family) {
    return totals->of[family].current[pool];
}
// Blocks, and bytes, that wait for fences.
VR_INLINE int64_t vr_totals_pending(const struct vr_totals *totals, unsigned pool) {
    return totals->of[VR_F_ACTIVE].current[pool] - totals->of[VR_F_COUNT].current[pool];
}
VR_INLINE int64_t vr_totals_pending_bytes(const struct vr_totals *totals, unsigned pool) {
    return totals->of[VR_F_ACTIVE_BYTES].current[pool] - totals->of[VR_F_BYTES].current[pool];
}

// Fills the families that are counted here.
void vr_totals_report(const struct vr_totals *totals, struct vram_stats *stats);
void vr_totals_reset_peak(struct vr_totals *totals);
void vr_totals_reset_accumulated(struct vr_totals *totals);

#endif
