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

// The families that blocks are counted in, by pool. The sums of both pools are made when they are asked for; peaks cannot be.
struct vr_totals {
    int64_t current[VR_POOLS][VR_FAMILIES];
    int64_t increased[VR_POOLS][VR_FAMILIES]; // the sum of all increases; that of all decreases follows from it
    int64_t pending[VR_POOLS];                // blocks that wait for fences
    int64_t pending_bytes[VR_POOLS];
    int64_t peak[VRAM_STAT_POOLS][VR_VIEW_FAMILIES];
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

// Where a family of the pool is now; `other`: that of the other pool.
VR_INLINE void vr_totals_raise(struct vr_totals *totals, unsigned pool, int family, int64_t own, int64_t other) {
    int64_t *of_pool = &totals->peak[pool == VR_SMALL ? VRAM_STAT_SMALL_POOL : VRAM_STAT_LARGE_POOL][family],
            *of_all = &totals->peak[VRAM_STAT_ALL][family];
    if (own > *of_pool) *of_pool = own;
    if (own + other > *of_all) *of_all = own + other;
}

// Books a change and raises the peaks. `pending` blocks and bytes begin (+) or cease (-) to wait for fences. Only what rises can be a peak;
// `active` rises with `allocation`, for a block that begins to wait was active before.
VR_INLINE void vr_totals_book(struct vr_totals *totals, unsigned pool, const struct vr_delta *delta, int64_t pending,
                              int64_t pending_bytes) {
    int64_t *current = totals->current[pool];
    const int64_t *other = totals->current[pool ^ 1], *waiting = totals->pending, *waiting_bytes = totals->pending_bytes;
    for (int f = 0; f < VR_FAMILIES; f++) {
        current[f] += delta->of[f];
        if (delta->of[f] <= 0) continue;
        totals->increased[pool][f] += delta->of[f];
        vr_totals_raise(totals, pool, f, current[f], other[f]);
    }
    totals->pending[pool] += pending;
    totals->pending_bytes[pool] += pending_bytes;
    if (delta->of[VR_F_COUNT] <= 0) return;
    vr_totals_raise(totals, pool, VR_F_ACTIVE, current[VR_F_COUNT] + waiting[pool], other[VR_F_COUNT] + waiting[pool ^ 1]);
    vr_totals_raise(totals, pool, VR_F_ACTIVE_BYTES, current[VR_F_BYTES] + waiting_bytes[pool],
                    other[VR_F_BYTES] + waiting_bytes[pool ^ 1]);
}

// Books that a change was made and undone so many times in turn. Both states were there before, so no peak rises.
void vr_totals_repeat(struct vr_totals *totals, unsigned pool, const struct vr_delta *delta, uint64_t rounds);

// Fills the families that are counted here.
void vr_totals_report(const struct vr_totals *totals, struct vram_stats *stats);
void vr_totals_reset_peak(struct vr_totals *totals);
void vr_totals_reset_accumulated(struct vr_totals *totals);

#endif
