#include "core/statistics.h"

static int64_t current_of(const struct vr_pool_totals *totals, int family) {
    switch (family) {
    case VR_F_ACTIVE: return totals->current[VR_F_COUNT] + totals->pending;
    case VR_F_ACTIVE_BYTES: return totals->current[VR_F_BYTES] + totals->pending_bytes;
    default: return totals->current[family];
    }
}

static int64_t increased_of(const struct vr_pool_totals *totals, int family) {
    switch (family) {
    case VR_F_ACTIVE: return totals->increased[VR_F_COUNT];
    case VR_F_ACTIVE_BYTES: return totals->increased[VR_F_BYTES];
    default: return totals->increased[family];
    }
}

void vr_totals_repeat(struct vr_totals *totals, unsigned pool, const struct vr_delta *delta, uint64_t rounds) {
    int64_t *increased = totals->pool[pool].increased;
    for (int f = 0; f < VR_FAMILIES; f++) {
        const int64_t rise = delta->of[f] > 0 ? delta->of[f] : -delta->of[f];
        increased[f] = (int64_t)((uint64_t)increased[f] + rounds * (uint64_t)rise); // sums of hundreds of exabytes wrap around
    }
}

// PyTorch's views of a family: of the small pool, of the large one, or of both.
static int64_t sum_of(const struct vr_totals *totals, int view, int family, int64_t (*value)(const struct vr_pool_totals *, int)) {
    const int64_t small = value(&totals->pool[VR_SMALL], family), large = value(&totals->pool[VR_LARGE], family);
    return view == VRAM_STAT_SMALL_POOL ? small : view == VRAM_STAT_LARGE_POOL ? large : small + large;
}

static int64_t peak_of(const struct vr_totals *totals, int view, int family) {
    if (view == VRAM_STAT_ALL) return totals->peak_of_both[family];
    return totals->pool[view == VRAM_STAT_SMALL_POOL ? VR_SMALL : VR_LARGE].peak[family];
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
                .peak = peak_of(totals, v, f),
                .allocated = increased - totals->base_allocated[v][f],
                .freed = increased - current - totals->base_freed[v][f],
            };
        }
    }
}

void vr_totals_reset_peak(struct vr_totals *totals) {
    for (int f = 0; f < VR_VIEW_FAMILIES; f++) {
        for (unsigned p = 0; p < VR_POOLS; p++) totals->pool[p].peak[f] = current_of(&totals->pool[p], f);
        totals->peak_of_both[f] = totals->pool[VR_SMALL].peak[f] + totals->pool[VR_LARGE].peak[f];
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
