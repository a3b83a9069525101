#include "core/statistics.h"

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

void vr_totals_repeat(struct vr_totals *totals, unsigned pool, const struct vr_delta *delta, uint64_t rounds) {
    for (int f = 0; f < VR_FAMILIES; f++) {
        const int64_t rise = delta->of[f] > 0 ? delta->of[f] : -delta->of[f];
        // Sums of hundreds of exabytes wrap around.
        totals->increased[pool][f] = (int64_t)((uint64_t)totals->increased[pool][f] + rounds * (uint64_t)rise);
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
