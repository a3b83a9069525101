// counters.h: statistics without a shared word on the hot path, and peaks that are exact all the same.
//
// Invariant: each shard counts for itself and holds an allowance ("slack") of growth, per pool and for both pools together;
// over all shards of a device the allowances never add up to more than the distance between the device's current value and its
// peak. So growth within a shard's allowance cannot be a new peak and needs no look at other shards. Growth that does not fit takes what it
// lacks from another shard, under both locks (slack.c): from the one to which a pair's room passed, then from the one with the rest. Where
// these have not enough, either, it is done under all locks, where the true sums are known; then the peaks are raised, and one shard gets
// the whole distance: the others come and take of it, so that a small distance is not cut into pieces that are of use to nobody.
//
// What a shard may grow in both pools together is dealt out to its two pools, so that the hot path looks at one number per family; a pool
// that lacks some asks the other one for it (vr_counters_make_fit()). Only blocks are counted twice: where a program replaces one by
// another it stands at the peak all the time, and the two are often of different pools.
//
// Shards that rest (device.h) have no allowance and are not looked at: their sums are kept in one place.
//
// `active` is `allocation` plus what waits for fences. The waiting part changes under the device's mutex only, so the allowance for
// `allocation` is the smaller of the two distances and the hot path counts five families instead of seven.
#ifndef VR_CORE_COUNTERS_H
#define VR_CORE_COUNTERS_H

#include "base/stat.h"

enum vr_family { VR_F_COUNT, VR_F_BYTES, VR_F_REQUESTED, VR_F_SPLITS, VR_F_SPLIT_BYTES, VR_FAMILIES };
enum vr_pool_kind { VR_LARGE, VR_SMALL, VR_POOLS };

// By how much an operation changes each family.
struct vr_delta {
    int64_t of[VR_FAMILIES];
};

// A shard's part. Guarded by the shard's lock. What a family stands at is `limit - slack`: the hot path changes one number, not two.
struct vr_counters {
    int64_t slack[VR_POOLS][VR_FAMILIES];     // what a pool may grow, of its own allowance and (but for VR_F_COUNT) of that for both pools
    int64_t blocks_both;                      // VR_F_COUNT of both pools
    int64_t increased[VR_POOLS][VR_FAMILIES]; // sum of all increases since the beginning
    int64_t limit[VR_POOLS][VR_FAMILIES];     // changes where something but an operation changes the slack
    int64_t aside[VR_POOLS][VR_FAMILIES];     // of a pool's allowance what is not in its slack, for want of one for both pools
    int64_t aside_both[VR_FAMILIES];          // of that for both pools what is in neither's slack
};

VR_INLINE int64_t vr_counters_current(const struct vr_counters *counters, unsigned pool, int family) {
    return counters->limit[pool][family] - counters->slack[pool][family];
}

// The allowance of a pool, and of both together.
VR_INLINE int64_t vr_counters_own(const struct vr_counters *counters, unsigned pool, int family) {
    return counters->slack[pool][family] + counters->aside[pool][family];
}
VR_INLINE int64_t vr_counters_both(const struct vr_counters *counters, int family) {
    if (family == VR_F_COUNT) return counters->blocks_both;
    return counters->slack[VR_LARGE][family] + counters->slack[VR_SMALL][family] + counters->aside_both[family];
}

// Whether no part of the allowances is less than 0. With all books closed.
bool vr_counters_check(const struct vr_counters *counters);

// A hand-out and its free that may repeat: the last block of a pool, which comes back and goes out again unchanged (pool.h). What they
// change is booked once, at the hand-out, and of that only what goes up. While their books are open each family stands at the larger of its
// two values, with the block out and with it back; so what fits beside that can be no peak that was missed, the free has nothing to book,
// and each further round only counts itself. Whoever needs the true values, or the room that is kept, closes the books first. Guarded by
// the shard's lock.
struct vr_hot_pair {
    uint32_t block;  // whose books are open; 0: none are
    uint64_t rounds; // times it went out since
    int64_t splits;  // what its hand-out changes in inactive_split
    int64_t split_bytes;
    uint64_t requested; // what the other families change by, besides one block
    uint64_t size;
};

VR_INLINE int64_t vr_rise(int64_t change) { return change > 0 ? change : 0; }

// What a hand-out changes, but for what goes down.
VR_INLINE struct vr_delta vr_rises(const struct vr_delta *delta) {
    struct vr_delta rises = *delta;
    rises.of[VR_F_SPLITS] = vr_rise(delta->of[VR_F_SPLITS]);
    rises.of[VR_F_SPLIT_BYTES] = vr_rise(delta->of[VR_F_SPLIT_BYTES]);
    return rises;
}

// Opens the books of a hand-out of which vr_rises() are booked.
VR_INLINE void vr_hot_pair_open(struct vr_hot_pair *pair, uint32_t block, const struct vr_delta *delta) {
    pair->block = block;
    pair->rounds = 0;
    pair->splits = delta->of[VR_F_SPLITS];
    pair->split_bytes = delta->of[VR_F_SPLIT_BYTES];
    pair->requested = (uint64_t)delta->of[VR_F_REQUESTED];
    pair->size = (uint64_t)delta->of[VR_F_BYTES];
}

// The same at its free, of one that was booked in full, `splits` and `split_bytes` are set. False when what the free adds to inactive_split
// is beyond the allowance; then nothing has changed.
VR_INLINE bool vr_hot_pair_open_again(struct vr_counters *counters, unsigned pool, struct vr_hot_pair *pair, uint32_t block, uint64_t size,
                                      uint64_t requested) {
    const int64_t splits = vr_rise(-pair->splits), bytes = vr_rise(-pair->split_bytes);
    int64_t *slack = counters->slack[pool];
    if (VR_UNLIKELY(((slack[VR_F_SPLITS] - splits) | (slack[VR_F_SPLIT_BYTES] - bytes)) < 0)) return false;
    slack[VR_F_SPLITS] -= splits;
    slack[VR_F_SPLIT_BYTES] -= bytes;
    pair->block = block;
    pair->rounds = 0;
    pair->size = size;
    pair->requested = requested;
    return true;
}

// Books the rounds and gives the room back that the present state leaves. back: the block is free now. The books are open.
void vr_hot_pair_close(struct vr_counters *counters, unsigned pool, struct vr_hot_pair *pair, bool back);

// The same of a pair that never came back.
VR_INLINE void vr_hot_pair_close_out(struct vr_counters *counters, unsigned pool, struct vr_hot_pair *pair) {
    assert(pair->rounds == 0);
    counters->slack[pool][VR_F_SPLITS] += vr_rise(-pair->splits);
    counters->slack[pool][VR_F_SPLIT_BYTES] += vr_rise(-pair->split_bytes);
    pair->block = 0;
}

// The same of a pair that came back once.
VR_INLINE void vr_hot_pair_close_first(struct vr_counters *counters, unsigned pool, struct vr_hot_pair *pair) {
    assert(pair->rounds == 0);
    const int64_t room[VR_FAMILIES] = {[VR_F_COUNT] = 1,
                                       [VR_F_BYTES] = (int64_t)pair->size,
                                       [VR_F_REQUESTED] = (int64_t)pair->requested,
                                       [VR_F_SPLITS] = vr_rise(pair->splits),
                                       [VR_F_SPLIT_BYTES] = vr_rise(pair->split_bytes)};
    for (int i = 0; i < VR_FAMILIES; i++) counters->slack[pool][i] += room[i];
    counters->blocks_both++;
    counters->increased[pool][VR_F_SPLITS] += vr_rise(-pair->splits);
    counters->increased[pool][VR_F_SPLIT_BYTES] += vr_rise(-pair->split_bytes);
    pair->block = 0;
}

// The same, and in its place a hand-out that changes `delta` opens its books: its room is what the other leaves and, where that is less,
// some of the allowance. False when that does not do; then nothing has changed.
VR_INLINE bool vr_hot_pair_replace(struct vr_counters *counters, unsigned pool, struct vr_hot_pair *pair, uint32_t block,
                                   const struct vr_delta *delta) {
    assert(pair->rounds == 0);
    const struct vr_delta rises = vr_rises(delta);
    const int64_t more[VR_FAMILIES] = {[VR_F_BYTES] = rises.of[VR_F_BYTES] - (int64_t)pair->size,
                                       [VR_F_REQUESTED] = rises.of[VR_F_REQUESTED] - (int64_t)pair->requested,
                                       [VR_F_SPLITS] = rises.of[VR_F_SPLITS] - vr_rise(pair->splits),
                                       [VR_F_SPLIT_BYTES] = rises.of[VR_F_SPLIT_BYTES] - vr_rise(pair->split_bytes)};
    int64_t *slack = counters->slack[pool], *increased = counters->increased[pool], sign = 0;
    for (int i = VR_F_BYTES; i < VR_FAMILIES; i++) sign |= slack[i] - more[i];
    if (VR_UNLIKELY(sign < 0)) return false;
    for (int i = VR_F_BYTES; i < VR_FAMILIES; i++) slack[i] -= more[i];
    for (int i = VR_F_COUNT; i < VR_FAMILIES; i++) increased[i] += rises.of[i];
    increased[VR_F_SPLITS] += vr_rise(-pair->splits);
    increased[VR_F_SPLIT_BYTES] += vr_rise(-pair->split_bytes);
    vr_hot_pair_open(pair, block, delta);
    return true;
}

// Whether they change the same.
VR_INLINE bool vr_hot_pairs_alike(const struct vr_hot_pair *a, const struct vr_hot_pair *b) {
    return ((a->size ^ b->size) | (a->requested ^ b->requested) | (uint64_t)(a->splits ^ b->splits) |
            (uint64_t)(a->split_bytes ^ b->split_bytes)) == 0;
}
// A pair of two shards: the block of `from` is back, its books are open; that of `to` goes out, its books were closed. As the two change
// the same, the room that one leaves is the room that the other takes: no allowance changes. Closes the books of the one and opens those of
// the other. Under both shards' locks.
void vr_hot_pair_pass(struct vr_counters *from_counters, struct vr_hot_pair *from, struct vr_counters *to_counters, struct vr_hot_pair *to,
                      unsigned pool, uint32_t block);

// Families of the device-wide view: the five above, then these.
enum { VR_F_ACTIVE = VR_FAMILIES, VR_F_ACTIVE_BYTES, VR_VIEW_FAMILIES };

// A device's part. Guarded by all its shards' locks together, but for what waits, which the device's mutex and one shard's lock guard:
// where there is one shard only, its lock alone does (vr_totals_apply_single).
struct vr_totals {
    int64_t current[VR_POOLS][VR_FAMILIES];   // true sums, while `gathered`
    int64_t increased[VR_POOLS][VR_FAMILIES]; // the same
    int64_t resting[VR_POOLS][VR_FAMILIES];   // what shards that rest add to `current`, between share and gather
    int64_t resting_increased[VR_POOLS][VR_FAMILIES];
    int64_t pending[VR_POOLS]; // blocks that wait for fences
    int64_t pending_bytes[VR_POOLS];
    bool gathered; // between gather and share
    // Else: by how much the distances of `allocation` (0) and `active` (1), in blocks (VR_F_COUNT) and bytes, exceed what the shards may
    // grow; of each pool, and of both together.
    int64_t spare[VR_POOLS + 1][2][2];
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
    int64_t num_alloc_retries, num_ooms, num_sync_all_streams, num_device_alloc, num_device_free, num_oom_rejections, moved_bytes;
    int64_t max_split_at_start;
};

// Whether the growth fits into the shard's allowance, of the families from `first` on: none before can rise by this change.
VR_INLINE bool vr_counters_fit_from(const struct vr_counters *counters, unsigned pool, const struct vr_delta *delta, int first) {
    int64_t sign = first == VR_F_COUNT ? counters->blocks_both - delta->of[VR_F_COUNT] : 0;
    for (int i = first; i < VR_FAMILIES; i++) sign |= counters->slack[pool][i] - delta->of[i];
    return sign >= 0;
}

// The same where the pool may ask the other one for its part of what both may grow.
bool vr_counters_make_fit(struct vr_counters *counters, unsigned pool, const struct vr_delta *delta, int first);

// Books the change of the families from `first` on; within the allowance, or under all locks (vr_totals_apply). The first three families
// rise together or fall together.
VR_INLINE void vr_counters_apply_from(struct vr_counters *counters, unsigned pool, const struct vr_delta *delta, int first) {
    int64_t *increased = counters->increased[pool];
    for (int i = first; i < VR_FAMILIES; i++) counters->slack[pool][i] -= delta->of[i];
    if (first == VR_F_COUNT) counters->blocks_both -= delta->of[VR_F_COUNT];
    if (delta->of[VR_F_COUNT] > 0) {
        for (int i = VR_F_COUNT; i <= VR_F_REQUESTED; i++) increased[i] += delta->of[i];
    }
    increased[VR_F_SPLITS] += vr_rise(delta->of[VR_F_SPLITS]);
    increased[VR_F_SPLIT_BYTES] += vr_rise(delta->of[VR_F_SPLIT_BYTES]);
}

VR_INLINE void vr_counters_apply(struct vr_counters *counters, unsigned pool, const struct vr_delta *delta) {
    vr_counters_apply_from(counters, pool, delta, 0);
}

// Starts and ends a stretch under all locks: sums up the shards' counters; gives the distance to the peaks to `rich`, one of them (NULL:
// there are none). `shards` are those that do not rest, before and afterwards.
void vr_totals_gather(struct vr_totals *totals, struct vr_counters *const *shards, uint32_t count);
void vr_totals_share(struct vr_totals *totals, struct vr_counters *const *shards, uint32_t count, struct vr_counters *rich);
// Under both shards' locks, with all books closed: takes over the allowance of the lender, or half of it.
void vr_counters_take_over(struct vr_counters *counters, struct vr_counters *lender, bool all);
// While the sums are not gathered: a shard rests no more. It has no allowance yet.
void vr_totals_wake(struct vr_totals *totals, struct vr_counters *counters);
// The same for a shard that does not rest, without knowing the sums: a stretch under all locks that changes little need not add up and
// share out for it. False when they must be known, because the change does not fit into the shard's allowance.
bool vr_totals_book(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, const struct vr_delta *delta, int64_t pending,
                    int64_t pending_bytes);
// A block of the shard waits for fences from now on: it is allocated no more, and still active. It waits no more: `delta` says what that
// changes in the families from VR_F_REQUESTED on; false, as above. While the sums are not gathered; the device's mutex and that shard's
// lock will do.
void vr_totals_start_waiting(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, int64_t size);
bool vr_totals_stop_waiting(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, const struct vr_delta *delta,
                            int64_t size);
// A shard that does not rest, and has given its allowance away, does from now on. Without knowing the sums.
void vr_totals_rest(struct vr_totals *totals, const struct vr_counters *counters);
// Books a change of one shard between gather and share and raises the peaks. `pending` blocks and bytes start (+) or stop (-) waiting.
void vr_totals_apply(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, const struct vr_delta *delta, int64_t pending,
                     int64_t pending_bytes);
// The same for a device with one shard, without gathering: under that shard's lock alone.
void vr_totals_apply_single(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, const struct vr_delta *delta);

// Fills the families that are counted here. Between gather and share.
void vr_totals_report(const struct vr_totals *totals, struct vram_stats *stats);
void vr_totals_reset_peak(struct vr_totals *totals);
void vr_totals_reset_accumulated(struct vr_totals *totals);

#endif
