// counters.h: statistics without a shared word on the hot path, and peaks that are exact all the same.
//
// Invariant: each shard counts for itself and holds an allowance ("slack") of growth, per pool and for both pools together;
// over all shards of a device the allowances never add up to more than the distance between the device's current value and its
// peak. So growth within a shard's allowance cannot be a new peak and needs no look at other shards. Growth that does not fit is
// done under all locks, where the true sums are known; then the peaks are raised and the distance is shared out again.
//
// Shards that rest (device.h) have no allowance and are not looked at: their sums are kept in one place.
//
// `active` is `allocation` plus what waits for fences. The waiting part changes under all locks only, so the allowance for
// `allocation` is the smaller of the two distances and the hot path counts five families instead of seven.
#ifndef VR_CORE_COUNTERS_H
#define VR_CORE_COUNTERS_H

#include "base/stat.h"

enum vr_family { VR_F_COUNT, VR_F_BYTES, VR_F_REQUESTED, VR_F_SPLITS, VR_F_SPLIT_BYTES, VR_FAMILIES = 6 /* one spare: pairs */ };
enum vr_pool_kind { VR_LARGE, VR_SMALL, VR_POOLS };

// By how much an operation changes each family.
struct vr_delta {
    int64_t of[VR_FAMILIES];
};

// A shard's part. Guarded by the shard's lock. What a family stands at is `limit - slack`: the hot path changes one number, not two.
struct vr_counters {
    int64_t slack[VR_POOLS][VR_FAMILIES];
    int64_t slack_both[VR_FAMILIES];
    int64_t increased[VR_POOLS][VR_FAMILIES]; // sum of all increases since the beginning
    int64_t limit[VR_POOLS][VR_FAMILIES];     // set when the slack was last shared out
};

VR_INLINE int64_t vr_counters_current(const struct vr_counters *counters, unsigned pool, int family) {
    return counters->limit[pool][family] - counters->slack[pool][family];
}

// Families of the device-wide view: the five above, then these.
enum { VR_F_ACTIVE = VR_FAMILIES, VR_F_ACTIVE_BYTES, VR_VIEW_FAMILIES };

// A device's part. Guarded by all its shards' locks together.
struct vr_totals {
    int64_t current[VR_POOLS][VR_FAMILIES];   // true sums; valid between vr_totals_gather() and vr_totals_share()
    int64_t increased[VR_POOLS][VR_FAMILIES]; // the same
    int64_t resting[VR_POOLS][VR_FAMILIES];   // what shards that rest add to `current`, between share and gather
    int64_t resting_increased[VR_POOLS][VR_FAMILIES];
    int64_t pending[VR_POOLS]; // blocks that wait for fences
    int64_t pending_bytes[VR_POOLS];
    int64_t peak[VRAM_STAT_POOLS][VR_VIEW_FAMILIES];
    int64_t base_allocated[VRAM_STAT_POOLS][VR_VIEW_FAMILIES]; // sums at the last reset_accumulated
    int64_t base_freed[VRAM_STAT_POOLS][VR_VIEW_FAMILIES];
};

// What is counted of a device. Guarded by all its shards' locks together.
struct vr_device_stats {
    struct vr_totals totals;
    struct vram_stat segment[VRAM_STAT_POOLS];
    struct vram_stat reserved[VRAM_STAT_POOLS];
    struct vram_stat oversize_allocations;
    struct vram_stat oversize_segments;
    int64_t num_alloc_retries, num_ooms, num_sync_all_streams, num_device_alloc, num_device_free, num_oom_rejections;
    int64_t max_split_at_start;
};

// Whether the growth fits into the shard's allowance.
VR_INLINE bool vr_counters_fit(const struct vr_counters *counters, unsigned pool, const struct vr_delta *delta) {
    int64_t sign = 0;
    for (int i = 0; i < VR_FAMILIES; i++) {
        sign |= (counters->slack[pool][i] - delta->of[i]) | (counters->slack_both[i] - delta->of[i]);
    }
    return sign >= 0;
}

// Books the change; within the allowance, or under all locks (vr_totals_apply). The first three families rise together or fall together.
VR_INLINE void vr_counters_apply(struct vr_counters *counters, unsigned pool, const struct vr_delta *delta) {
    int64_t *increased = counters->increased[pool];
    for (int i = 0; i < VR_FAMILIES; i++) {
        counters->slack[pool][i] -= delta->of[i];
        counters->slack_both[i] -= delta->of[i];
    }
    if (delta->of[VR_F_COUNT] > 0) {
        for (int i = VR_F_COUNT; i <= VR_F_REQUESTED; i++) increased[i] += delta->of[i];
    }
    if (delta->of[VR_F_SPLITS] > 0) increased[VR_F_SPLITS] += delta->of[VR_F_SPLITS];
    if (delta->of[VR_F_SPLIT_BYTES] > 0) increased[VR_F_SPLIT_BYTES] += delta->of[VR_F_SPLIT_BYTES];
}

// Starts and ends a stretch under all locks: sums up the shards' counters; shares the distance to the peaks out again. `shards` are those
// that do not rest, before and afterwards.
void vr_totals_gather(struct vr_totals *totals, struct vr_counters *const *shards, uint32_t count);
void vr_totals_share(struct vr_totals *totals, struct vr_counters *const *shards, uint32_t count);
// Between share and gather: a shard rests no more. It has no allowance yet.
void vr_totals_wake(struct vr_totals *totals, struct vr_counters *counters);
// Books a change of one shard under all locks and raises the peaks. `pending` blocks and bytes start (+) or stop (-) waiting.
void vr_totals_apply(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, const struct vr_delta *delta, int64_t pending,
                     int64_t pending_bytes);
// The same for a device with one shard, without gathering: under that shard's lock alone.
void vr_totals_apply_single(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, const struct vr_delta *delta);

// Fills the families that are counted here. Between gather and share.
void vr_totals_report(const struct vr_totals *totals, struct vram_stats *stats);
void vr_totals_reset_peak(struct vr_totals *totals);
void vr_totals_reset_accumulated(struct vr_totals *totals);

#endif
