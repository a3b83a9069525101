// statistics.h: the counters of a device (allocator.md §counters). Every change is booked as it happens, under the device's lock, and peaks
// are raised with it, so the statistics are exact after every call.
#ifndef VR_CORE_STATISTICS_H
#define VR_CORE_STATISTICS_H

#include "base/stat.h"

// Families of counters. `active` is derived: `allocation` plus the blocks that wait for fences.
enum vr_family {
    VR_F_COUNT,
    VR_F_BYTES,
    VR_F_REQUESTED,
    VR_F_SPLITS,
    VR_F_SPLIT_BYTES,
    VR_FAMILIES,
    VR_WAITING_FAMILIES = 2, // `active` is VR_F_COUNT plus waiting blocks; `active_bytes` is VR_F_BYTES plus waiting bytes
    VR_ALL_FAMILIES = VR_FAMILIES + VR_WAITING_FAMILIES
};
enum vr_pool_kind { VR_LARGE, VR_SMALL, VR_POOLS };

// How an operation changes each family.
struct vr_delta {
    int64_t of[VR_FAMILIES];
};

// One family, per size class of a device. For both classes together only the peak is stored, because it does not follow from the two peaks.
struct vr_family_totals {
    int64_t current[VR_POOLS];
    int64_t increased[VR_POOLS]; // sum of all increases; the sum of all decreases follows from it
    int64_t peak[VR_POOLS];
    int64_t peak_of_both;
};

// Blocks or bytes that wait for fences, and the peaks of `active` while there were some. At other times `active` equals `allocation`.
struct vr_waiting_totals {
    int64_t current[VR_POOLS];
    int64_t active_peak[VR_POOLS];
    int64_t active_peak_of_both;
};

struct vr_totals {
    struct vr_family_totals of[VR_FAMILIES];
    struct vr_waiting_totals waiting[VR_WAITING_FAMILIES];    // blocks (of VR_F_COUNT), bytes (of VR_F_BYTES)
    int64_t base_allocated[VRAM_STAT_POOLS][VR_ALL_FAMILIES]; // sums at the last reset_accumulated
    int64_t base_freed[VRAM_STAT_POOLS][VR_ALL_FAMILIES];
};

// The statistics of a device.
struct vr_device_stats {
    struct vr_totals totals;
    struct vram_stat segment[VRAM_STAT_POOLS];
    struct vram_stat reserved[VRAM_STAT_POOLS];
    struct vram_stat oversize_allocations;
    struct vram_stat oversize_segments;
    int64_t num_alloc_retries, num_ooms, num_sync_all_streams, num_device_alloc, num_device_free, num_oom_rejections, moved_bytes;
    int64_t max_split_at_start;
};

VR_INLINE int64_t vr_totals_current(const struct vr_totals *totals, unsigned kind, enum vr_family family) {
    return totals->of[family].current[kind];
}
VR_INLINE int64_t vr_totals_active(const struct vr_totals *totals, unsigned kind, enum vr_family family) {
    return totals->of[family].current[kind] + totals->waiting[family].current[kind];
}

// Raises the peaks of `active`. Needed only while something waits.
void vr_totals_raise_active(struct vr_totals *totals, unsigned kind);

// Books a change, and raises the peaks with it. COUNT, BYTES and REQUESTED rise together, or none of them does.
VR_INLINE void vr_totals_book(struct vr_totals *totals, unsigned kind, const struct vr_delta *delta) {
    const bool rises = delta->of[VR_F_COUNT] > 0;
    for (int f = 0; f < VR_FAMILIES; f++) {
        struct vr_family_totals *family = &totals->of[f];
        const int64_t current = family->current[kind] += delta->of[f];
        if (f <= VR_F_REQUESTED ? !rises : delta->of[f] <= 0) continue;
        const int64_t both = current + family->current[kind ^ 1];
        family->increased[kind] += delta->of[f];
        if (current > family->peak[kind]) family->peak[kind] = current;
        if (both > family->peak_of_both) family->peak_of_both = both;
    }
    const struct vr_waiting_totals *waiting = &totals->waiting[VR_F_COUNT];
    if (rises && VR_UNLIKELY((waiting->current[VR_SMALL] | waiting->current[VR_LARGE]) != 0)) vr_totals_raise_active(totals, kind);
}

// Books that blocks begin (positive) or cease (negative) to wait for fences after their free.
VR_INLINE void vr_totals_book_waiting(struct vr_totals *totals, unsigned kind, int64_t blocks, int64_t bytes) {
    totals->waiting[VR_F_COUNT].current[kind] += blocks;
    totals->waiting[VR_F_BYTES].current[kind] += bytes;
}

// Books a change that was made and undone `rounds` times. Both states occurred before, so no peak rises.
void vr_totals_repeat(struct vr_totals *totals, unsigned kind, const struct vr_delta *delta, uint64_t rounds);

// Fills in the families counted here.
void vr_totals_report(const struct vr_totals *totals, struct vram_stats *stats);
void vr_totals_reset_peak(struct vr_totals *totals);
void vr_totals_reset_accumulated(struct vr_totals *totals);

#endif
