#include "core/counters.h"

// PyTorch's order of the three views of a family.
static const enum vram_stat_pool view_of[VR_POOLS] = {[VR_LARGE] = VRAM_STAT_LARGE_POOL, [VR_SMALL] = VRAM_STAT_SMALL_POOL};

static int64_t current_of(const struct vr_totals *totals, unsigned pool, int family) {
    switch (family) {
    case VR_F_ACTIVE: return totals->current[pool][VR_F_COUNT] + totals->pending[pool];
    case VR_F_ACTIVE_BYTES: return totals->current[pool][VR_F_BYTES] + totals->pending_bytes[pool];
    default: return totals->current[pool][family];
    }
}

static int64_t increased_of(const struct vr_totals *totals, unsigned pool, int family) {
    switch (family) {
    case VR_F_ACTIVE: return totals->increased[pool][VR_F_COUNT];
    case VR_F_ACTIVE_BYTES: return totals->increased[pool][VR_F_BYTES];
    default: return totals->increased[pool][family];
    }
}

// Sums of hundreds of exabytes wrap around, as each step for itself would have let them.
static int64_t times(uint64_t count, int64_t change) { return (int64_t)(count * (uint64_t)change); }

static void close_family(struct vr_counters *counters, unsigned pool, int family, uint64_t rises, int64_t rise, int64_t room) {
    counters->increased[pool][family] += times(rises, rise);
    counters->slack[pool][family] += room;
    if (family == VR_F_COUNT) counters->blocks_both += room;
}

// A change that goes up at the hand-out or at the free; the books hold room for the higher value.
static void close_split_family(struct vr_counters *counters, unsigned pool, int family, const struct vr_hot_pair *pair, bool back,
                               int64_t change) {
    const uint64_t taken = pair->rounds, returns = pair->rounds + back;
    if (change >= 0) {
        close_family(counters, pool, family, taken, change, back ? change : 0);
    } else {
        close_family(counters, pool, family, returns, -change, back ? 0 : -change);
    }
}

void vr_hot_pair_close(struct vr_counters *counters, unsigned pool, struct vr_hot_pair *pair, bool back) {
    const int64_t size = (int64_t)pair->size, requested = (int64_t)pair->requested;
    close_family(counters, pool, VR_F_COUNT, pair->rounds, 1, back);
    close_family(counters, pool, VR_F_BYTES, pair->rounds, size, back ? size : 0);
    close_family(counters, pool, VR_F_REQUESTED, pair->rounds, requested, back ? requested : 0);
    close_split_family(counters, pool, VR_F_SPLITS, pair, back, pair->splits);
    close_split_family(counters, pool, VR_F_SPLIT_BYTES, pair, back, pair->split_bytes);
    pair->block = 0;
}

// A family that goes up at the hand-out stands higher where the block is out.
static void pass_family(struct vr_counters *from, struct vr_counters *to, unsigned pool, int family, uint64_t rounds, int64_t rise) {
    from->increased[pool][family] += times(rounds, rise), from->limit[pool][family] -= rise;
    to->increased[pool][family] += rise, to->limit[pool][family] += rise;
}

// One that goes up at the free stands where it does with the block back, in both books.
static void pass_split_family(struct vr_counters *from, struct vr_counters *to, unsigned pool, int family, uint64_t rounds,
                              int64_t change) {
    if (change > 0) pass_family(from, to, pool, family, rounds, change);
    if (change < 0) from->increased[pool][family] += times(rounds + 1, -change);
}

void vr_hot_pair_pass(struct vr_counters *from_counters, struct vr_hot_pair *from, struct vr_counters *to_counters, struct vr_hot_pair *to,
                      unsigned pool, uint32_t block) {
    assert(from->block != 0 && to->block == 0 && vr_hot_pairs_alike(from, to));
    const uint64_t rounds = from->rounds;
    pass_family(from_counters, to_counters, pool, VR_F_COUNT, rounds, 1);
    pass_family(from_counters, to_counters, pool, VR_F_BYTES, rounds, (int64_t)to->size);
    pass_family(from_counters, to_counters, pool, VR_F_REQUESTED, rounds, (int64_t)to->requested);
    pass_split_family(from_counters, to_counters, pool, VR_F_SPLITS, rounds, to->splits);
    pass_split_family(from_counters, to_counters, pool, VR_F_SPLIT_BYTES, rounds, to->split_bytes);
    from->block = 0;
    to->block = block;
    to->rounds = 0;
}

void vr_totals_gather(struct vr_totals *totals, struct vr_counters *const *shards, uint32_t count) {
    totals->gathered = true;
    memcpy(totals->current, totals->resting, sizeof totals->current);
    memcpy(totals->increased, totals->resting_increased, sizeof totals->increased);
    for (uint32_t s = 0; s < count; s++) {
        for (int p = 0; p < VR_POOLS; p++) {
            for (int f = 0; f < VR_FAMILIES; f++) {
                totals->current[p][f] += vr_counters_current(shards[s], (unsigned)p, f);
                totals->increased[p][f] += shards[s]->increased[p][f];
            }
        }
    }
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// The family that bounds this one besides itself.
static int companion(int family) { return family == VR_F_COUNT ? VR_F_ACTIVE : family == VR_F_BYTES ? VR_F_ACTIVE_BYTES : family; }

// The distance of a pool, or (VR_POOLS) of both, that all shards may grow together; what the two it is the smaller of exceed it by is
// noted.
static int64_t distance(struct vr_totals *totals, unsigned pool, int family) {
    const int other = companion(family);
    const int64_t *peak = totals->peak[pool == VR_POOLS ? VRAM_STAT_ALL : view_of[pool]];
    int64_t own = peak[family], others = peak[other];
    for (unsigned p = 0; p < VR_POOLS; p++) {
        if (pool != VR_POOLS && pool != p) continue;
        own -= current_of(totals, p, family);
        others -= current_of(totals, p, other);
    }
    const int64_t both = least(own, others);
    if (family <= VR_F_BYTES) totals->spare[pool][family][0] = own - both, totals->spare[pool][family][1] = others - both;
    return both;
}

static void set_slack(struct vr_counters *counters, unsigned pool, int family, int64_t slack) {
    counters->limit[pool][family] = vr_counters_current(counters, pool, family) + slack;
    counters->slack[pool][family] = slack;
}

// Gives a family these allowances, of a pool and of both; deals the latter out again: at least half of it, or all, to this pool, but no
// more than it may have.
static void allow(struct vr_counters *counters, unsigned pool, int family, int64_t own, int64_t both, bool all) {
    if (family == VR_F_COUNT) {
        set_slack(counters, pool, family, own);
        counters->blocks_both = both;
        return;
    }
    const unsigned other = pool ^ 1;
    const int64_t others = vr_counters_own(counters, other, family), beyond = vr_rise(both - own), kept = all ? 0 : both / 2;
    const int64_t left = least(counters->slack[other][family], beyond > kept ? beyond : kept);
    const int64_t taken = least(own, both - left);
    set_slack(counters, other, family, left);
    set_slack(counters, pool, family, taken);
    counters->aside[other][family] = others - left;
    counters->aside[pool][family] = own - taken;
    counters->aside_both[family] = both - left - taken;
}

static void allow_nothing(struct vr_counters *counters) {
    for (int f = 0; f < VR_FAMILIES; f++) {
        for (unsigned p = 0; p < VR_POOLS; p++) set_slack(counters, p, f, 0);
    }
    counters->blocks_both = 0;
    memset(counters->aside, 0, sizeof counters->aside);
    memset(counters->aside_both, 0, sizeof counters->aside_both);
}

bool vr_counters_check(const struct vr_counters *counters) {
    int64_t sign = counters->blocks_both | counters->aside[VR_LARGE][VR_F_COUNT] | counters->aside[VR_SMALL][VR_F_COUNT];
    for (int f = 0; f < VR_FAMILIES; f++) {
        sign |= counters->aside_both[f];
        for (unsigned p = 0; p < VR_POOLS; p++) sign |= counters->slack[p][f] | counters->aside[p][f];
    }
    return sign >= 0;
}

// What is not in these shards is in those that rest.
static void leave_to_rest(struct vr_totals *totals, struct vr_counters *const *shards, uint32_t count) {
    memcpy(totals->resting, totals->current, sizeof totals->resting);
    memcpy(totals->resting_increased, totals->increased, sizeof totals->resting_increased);
    for (uint32_t s = 0; s < count; s++) {
        for (int p = 0; p < VR_POOLS; p++) {
            for (int f = 0; f < VR_FAMILIES; f++) {
                totals->resting[p][f] -= vr_counters_current(shards[s], (unsigned)p, f);
                totals->resting_increased[p][f] -= shards[s]->increased[p][f];
            }
        }
    }
}

void vr_totals_rest(struct vr_totals *totals, const struct vr_counters *counters) {
    for (int f = 0; f < VR_FAMILIES; f++) {
        for (unsigned p = 0; p < VR_POOLS; p++) {
            totals->resting[p][f] += vr_counters_current(counters, p, f);
            totals->resting_increased[p][f] += counters->increased[p][f];
        }
    }
}

void vr_totals_wake(struct vr_totals *totals, struct vr_counters *counters) {
    for (int f = 0; f < VR_FAMILIES; f++) {
        for (unsigned p = 0; p < VR_POOLS; p++) {
            totals->resting[p][f] -= vr_counters_current(counters, p, f);
            totals->resting_increased[p][f] -= counters->increased[p][f];
        }
    }
    allow_nothing(counters);
}

// Shard by shard: the lines of one's counters lie in the same places of the processor's cache as those of the next.
void vr_totals_share(struct vr_totals *totals, struct vr_counters *const *shards, uint32_t count, struct vr_counters *rich) {
    leave_to_rest(totals, shards, count);
    for (uint32_t s = 0; s < count; s++) allow_nothing(shards[s]);
    for (int f = 0; f < VR_FAMILIES && rich != NULL; f++) {
        const int64_t both = distance(totals, VR_POOLS, f);
        for (unsigned p = 0; p < VR_POOLS; p++) allow(rich, p, f, distance(totals, p, f), both, false);
    }
    totals->gathered = false;
}

// Takes over what a number of the lender's says, or half of it.
VR_INLINE int64_t take_over(int64_t *number, int64_t *lent, bool all) {
    const int64_t part = all ? *lent : *lent / 2;
    *number += part, *lent -= part;
    return part;
}

VR_INLINE void take_over_each(struct vr_counters *restrict counters, struct vr_counters *restrict lender, bool all) {
    for (int f = 0; f < VR_FAMILIES; f++) {
        for (unsigned p = 0; p < VR_POOLS; p++) {
            const int64_t part = take_over(&counters->slack[p][f], &lender->slack[p][f], all);
            counters->limit[p][f] += part, lender->limit[p][f] -= part;
            (void)take_over(&counters->aside[p][f], &lender->aside[p][f], all);
        }
        (void)take_over(&counters->aside_both[f], &lender->aside_both[f], all);
    }
    (void)take_over(&counters->blocks_both, &lender->blocks_both, all);
}

void vr_counters_take_over(struct vr_counters *counters, struct vr_counters *lender, bool all) {
    all ? take_over_each(counters, lender, true) : take_over_each(counters, lender, false);
}

bool vr_counters_make_fit(struct vr_counters *counters, unsigned pool, const struct vr_delta *delta, int first) {
    for (int f = first; f < VR_FAMILIES; f++) {
        if (delta->of[f] > vr_counters_own(counters, pool, f) || delta->of[f] > vr_counters_both(counters, f)) return false;
    }
    for (int f = first; f < VR_FAMILIES; f++) {
        const int64_t own = vr_counters_own(counters, pool, f), both = vr_counters_both(counters, f);
        if (delta->of[f] > counters->slack[pool][f]) allow(counters, pool, f, own, both, false);
        if (delta->of[f] > counters->slack[pool][f]) allow(counters, pool, f, own, both, true);
    }
    assert(vr_counters_fit_from(counters, pool, delta, first));
    return true;
}

static void raise_peaks(struct vr_totals *totals, unsigned pool) {
    for (int f = 0; f < VR_VIEW_FAMILIES; f++) {
        const int64_t own = current_of(totals, pool, f), both = own + current_of(totals, pool ^ 1, f);
        int64_t *of_pool = &totals->peak[view_of[pool]][f], *of_all = &totals->peak[VRAM_STAT_ALL][f];
        if (own > *of_pool) *of_pool = own;
        if (both > *of_all) *of_all = both;
    }
}

// `active` stands where it stood, so the room that the block leaves in `allocation` is not for the shard: its slack stays as it is.
static void keep_room(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, int family, int64_t amount) {
    counters->limit[pool][family] -= amount;
    totals->spare[pool][family][0] += amount;
    totals->spare[VR_POOLS][family][0] += amount;
}

void vr_totals_start_waiting(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, int64_t size) {
    totals->pending[pool]++;
    totals->pending_bytes[pool] += size;
    keep_room(totals, counters, pool, VR_F_COUNT, 1);
    keep_room(totals, counters, pool, VR_F_BYTES, size);
}

static int64_t free_room(int64_t spare[2], int64_t amount) {
    spare[1] += amount;
    const int64_t room = least(spare[0], spare[1]);
    spare[0] -= room, spare[1] -= room;
    return room;
}

VR_INLINE bool fits(struct vr_counters *counters, unsigned pool, const struct vr_delta *delta, int first) {
    return VR_LIKELY(vr_counters_fit_from(counters, pool, delta, first)) || vr_counters_make_fit(counters, pool, delta, first);
}

// What both distances have over now is the shard's.
VR_INLINE void give_room(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, int family, int64_t amount) {
    const int64_t own = free_room(totals->spare[pool][family], amount), both = free_room(totals->spare[VR_POOLS][family], amount);
    const int64_t part = family == VR_F_COUNT ? own : least(own, both);
    counters->slack[pool][family] += part, counters->limit[pool][family] += part;
    counters->aside[pool][family] += own - part;
    *(family == VR_F_COUNT ? &counters->blocks_both : &counters->aside_both[family]) += family == VR_F_COUNT ? both : both - part;
}

bool vr_totals_stop_waiting(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, const struct vr_delta *delta,
                            int64_t size) {
    if (!fits(counters, pool, delta, VR_F_SPLITS)) return false;
    vr_counters_apply_from(counters, pool, delta, VR_F_REQUESTED);
    totals->pending[pool]--;
    totals->pending_bytes[pool] -= size;
    give_room(totals, counters, pool, VR_F_COUNT, 1);
    give_room(totals, counters, pool, VR_F_BYTES, size);
    return true;
}

bool vr_totals_book(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, const struct vr_delta *delta, int64_t pending,
                    int64_t pending_bytes) {
    if (pending < 0) return vr_totals_stop_waiting(totals, counters, pool, delta, -pending_bytes);
    if (pending > 0) {
        assert(delta->of[VR_F_COUNT] == -1 && delta->of[VR_F_BYTES] == -pending_bytes);
        vr_counters_apply_from(counters, pool, delta, VR_F_REQUESTED);
        vr_totals_start_waiting(totals, counters, pool, pending_bytes);
        return true;
    }
    if (!fits(counters, pool, delta, delta->of[VR_F_COUNT] > 0 ? 0 : VR_F_SPLITS)) return false;
    vr_counters_apply(counters, pool, delta);
    return true;
}

void vr_totals_apply(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, const struct vr_delta *delta, int64_t pending,
                     int64_t pending_bytes) {
    vr_counters_apply(counters, pool, delta);
    for (int f = 0; f < VR_FAMILIES; f++) {
        totals->current[pool][f] += delta->of[f];
        if (delta->of[f] > 0) totals->increased[pool][f] += delta->of[f];
    }
    totals->pending[pool] += pending;
    totals->pending_bytes[pool] += pending_bytes;
    raise_peaks(totals, pool);
}

// A shard that has the whole distance to a peak went beyond it by -*slack: the peak is where it stands now. `spare`: by how much the two
// distances of which the slack was the smaller one exceed it; NULL: there is one.
VR_INLINE int64_t raise_to(int64_t *slack, int64_t spare[2], int64_t *peak, int64_t *peak_of_companion) {
    const int64_t beyond = -*slack;
    if (beyond <= 0) return 0;
    if (spare == NULL) {
        *peak += beyond;
        *slack = 0;
        return beyond;
    }
    int64_t *const peaks[2] = {peak, peak_of_companion};
    for (int i = 0; i < 2; i++) {
        spare[i] -= beyond;
        if (spare[i] < 0) *peaks[i] -= spare[i], spare[i] = 0;
    }
    const int64_t room = least(spare[0], spare[1]);
    spare[0] -= room, spare[1] -= room;
    *slack = room;
    return beyond + room;
}

void vr_totals_apply_single(struct vr_totals *totals, struct vr_counters *counters, unsigned pool, const struct vr_delta *delta) {
    assert(!totals->gathered);
    vr_counters_apply(counters, pool, delta);
    int64_t *of_pool = totals->peak[view_of[pool]], *of_all = totals->peak[VRAM_STAT_ALL];
    for (int f = 0; f < VR_FAMILIES; f++) {
        int64_t own = vr_counters_own(counters, pool, f), both = vr_counters_both(counters, f);
        if ((counters->slack[pool][f] | own | both) >= 0) continue;
        const int other = companion(f);
        int64_t *spare = other != f ? totals->spare[pool][f] : NULL, *spare_both = other != f ? totals->spare[VR_POOLS][f] : NULL;
        (void)raise_to(&own, spare, &of_pool[f], &of_pool[other]);
        (void)raise_to(&both, spare_both, &of_all[f], &of_all[other]);
        allow(counters, pool, f, own, both, false);
    }
}

static int64_t sum_of(const struct vr_totals *totals, int view, int family, int64_t (*value)(const struct vr_totals *, unsigned, int)) {
    switch (view) {
    case VRAM_STAT_SMALL_POOL: return value(totals, VR_SMALL, family);
    case VRAM_STAT_LARGE_POOL: return value(totals, VR_LARGE, family);
    default: return value(totals, VR_SMALL, family) + value(totals, VR_LARGE, family);
    }
}

void vr_totals_report(const struct vr_totals *totals, struct vram_stats *stats) {
    struct vram_stat *const to[VR_VIEW_FAMILIES] = {
        [VR_F_COUNT] = stats->allocation,
        [VR_F_BYTES] = stats->allocated_bytes,
        [VR_F_REQUESTED] = stats->requested_bytes,
        [VR_F_SPLITS] = stats->inactive_split,
        [VR_F_SPLIT_BYTES] = stats->inactive_split_bytes,
        [VR_F_ACTIVE] = stats->active,
        [VR_F_ACTIVE_BYTES] = stats->active_bytes,
    };
    for (int f = 0; f < VR_VIEW_FAMILIES; f++) {
        for (int v = 0; v < VRAM_STAT_POOLS && to[f] != NULL; v++) {
            const int64_t current = sum_of(totals, v, f, current_of), increased = sum_of(totals, v, f, increased_of);
            to[f][v] = (struct vram_stat){
                .current = current,
                .peak = totals->peak[v][f],
                .allocated = increased - totals->base_allocated[v][f],
                .freed = increased - current - totals->base_freed[v][f],
            };
        }
    }
}

void vr_totals_reset_peak(struct vr_totals *totals) {
    for (int f = 0; f < VR_VIEW_FAMILIES; f++) {
        for (int v = 0; v < VRAM_STAT_POOLS; v++) totals->peak[v][f] = sum_of(totals, v, f, current_of);
    }
}

void vr_totals_reset_accumulated(struct vr_totals *totals) {
    for (int f = 0; f < VR_VIEW_FAMILIES; f++) {
        for (int v = 0; v < VRAM_STAT_POOLS; v++) {
            const int64_t increased = sum_of(totals, v, f, increased_of);
            totals->base_allocated[v][f] = increased;
            totals->base_freed[v][f] = increased - sum_of(totals, v, f, current_of);
        }
    }
}
