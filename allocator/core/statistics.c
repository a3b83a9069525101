#include "core/statistics.h"

void vr_totals_repeat(struct vr_totals *totals, unsigned pool, const struct vr_delta *delta, uint64_t rounds) {
    for (int f = 0; f < VR_FAMILIES; f++) {
        int64_t *increased = &totals->of[f].increased[pool];
        const int64_t rise = delta->of[f] > 0 ? delta->of[f] : -delta->of[f];
        *increased = (int64_t)((uint64_t)*increased + rounds * (uint64_t)rise); // sums of hundreds of exabytes wrap around
    }
}

// PyTorch's views of a family: of the small pool, of the large one, or of both.
static int64_t view_of(const int64_t pools[VR_POOLS], int view) {
    return view == VRAM_STAT_SMALL_POOL   ? pools[VR_SMALL]
           : view == VRAM_STAT_LARGE_POOL ? pools[VR_LARGE]
                                          : pools[VR_SMALL] + pools[VR_LARGE];
}

void vr_totals_report(const struct vr_totals *totals, struct vram_stats *stats) {
    struct vram_stat *const to[VR_FAMILIES] = {
        [VR_F_COUNT] = stats->allocation,
        [VR_F_BYTES] = stats->allocated_bytes,
        [VR_F_REQUESTED] = stats->requested_bytes,
        [VR_F_ACTIVE] = stats->active,
        [VR_F_ACTIVE_BYTES] = stats->active_bytes,
        [VR_F_SPLITS] = stats->inactive_split,
        [VR_F_SPLIT_BYTES] = stats->inactive_split_bytes,
    };
    for (int f = 0; f < VR_FAMILIES; f++) {
        const struct vr_family_totals *family = &totals->of[f];
        for (int v = 0; v < VRAM_STAT_POOLS; v++) {
            const int64_t current = view_of(family->current, v), increased = view_of(family->increased, v);
            to[f][v] = (struct vram_stat){
                .current = current,
                .peak = v == VRAM_STAT_ALL ? family->peak_of_both : view_of(family->peak, v),
                .allocated = increased - totals->base_allocated[v][f],
                .freed = increased - current - totals->base_freed[v][f],
            };
        }
    }
}

void vr_totals_reset_peak(struct vr_totals *totals) {
    for (int f = 0; f < VR_FAMILIES; f++) {
        struct vr_family_totals *family = &totals->of[f];
        for (unsigned p = 0; p < VR_POOLS; p++) family->peak[p] = family->current[p];
        family->peak_of_both = family->current[VR_SMALL] + family->current[VR_LARGE];
    }
}

void vr_totals_reset_accumulated(struct vr_totals *totals) {
    for (int f = 0; f < VR_FAMILIES; f++) {
        const struct vr_family_totals *family = &totals->of[f];
        for (int v = 0; v < VRAM_STAT_POOLS; v++) {
            const int64_t increased = view_of(family->increased, v);
            totals->base_allocated[v][f] = increased;
            totals->base_freed[v][f] = increased - view_of(family->current, v);
        }
    }
}
