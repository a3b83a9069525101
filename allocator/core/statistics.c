#include "core/statistics.h"

void vr_totals_repeat(struct vr_totals *totals, unsigned kind, const struct vr_delta *delta, uint64_t rounds) {
    for (int f = 0; f < VR_FAMILIES; f++) {
        int64_t *increased = &totals->of[f].increased[kind];
        const int64_t rise = delta->of[f] > 0 ? delta->of[f] : -delta->of[f];
        *increased = (int64_t)((uint64_t)*increased + rounds * (uint64_t)rise); // sums of hundreds of exabytes wrap around
    }
}

static int64_t larger_of(int64_t a, int64_t b) { return a > b ? a : b; }

void vr_totals_raise_active(struct vr_totals *totals, unsigned kind) {
    for (int f = 0; f < VR_WAITING_FAMILIES; f++) {
        struct vr_waiting_totals *waiting = &totals->waiting[f];
        const int64_t current = vr_totals_active(totals, kind, (enum vr_family)f);
        waiting->active_peak[kind] = larger_of(waiting->active_peak[kind], current);
        waiting->active_peak_of_both =
            larger_of(waiting->active_peak_of_both, current + vr_totals_active(totals, kind ^ 1, (enum vr_family)f));
    }
}

// Returns PyTorch's view of a family: of the small pool, the large pool, or both.
static int64_t view_of(const int64_t pools[VR_POOLS], int view) {
    return view == VRAM_STAT_SMALL_POOL   ? pools[VR_SMALL]
           : view == VRAM_STAT_LARGE_POOL ? pools[VR_LARGE]
                                          : pools[VR_SMALL] + pools[VR_LARGE];
}

static int64_t peak_of(const int64_t pools[VR_POOLS], int64_t of_both, int view) {
    return view == VRAM_STAT_ALL ? of_both : view_of(pools, view);
}

// Returns one view of any family. `freed` and `allocated` are sums since the allocator was created.
static struct vram_stat sums_of(const struct vr_totals *totals, int family, int view) {
    const int kept = family < VR_FAMILIES ? family : family - VR_FAMILIES;
    const struct vr_family_totals *from = &totals->of[kept];
    struct vram_stat stat = {.current = view_of(from->current, view), .peak = peak_of(from->peak, from->peak_of_both, view)};
    if (family >= VR_FAMILIES) {
        const struct vr_waiting_totals *waiting = &totals->waiting[kept];
        stat.current += view_of(waiting->current, view);
        stat.peak = larger_of(stat.peak, peak_of(waiting->active_peak, waiting->active_peak_of_both, view));
    }
    stat.allocated = view_of(from->increased, view); // `active` rises only together with `allocation`
    stat.freed = stat.allocated - stat.current;
    return stat;
}

void vr_totals_report(const struct vr_totals *totals, struct vram_stats *stats) {
    struct vram_stat *const to[VR_ALL_FAMILIES] = {
        [VR_F_COUNT] = stats->allocation,
        [VR_F_BYTES] = stats->allocated_bytes,
        [VR_F_REQUESTED] = stats->requested_bytes,
        [VR_F_SPLITS] = stats->inactive_split,
        [VR_F_SPLIT_BYTES] = stats->inactive_split_bytes,
        [VR_FAMILIES + VR_F_COUNT] = stats->active,
        [VR_FAMILIES + VR_F_BYTES] = stats->active_bytes,
    };
    for (int f = 0; f < VR_ALL_FAMILIES; f++) {
        for (int v = 0; v < VRAM_STAT_POOLS; v++) {
            to[f][v] = sums_of(totals, f, v);
            to[f][v].allocated -= totals->base_allocated[v][f];
            to[f][v].freed -= totals->base_freed[v][f];
        }
    }
}

void vr_totals_reset_peak(struct vr_totals *totals) {
    for (int f = 0; f < VR_FAMILIES; f++) {
        struct vr_family_totals *family = &totals->of[f];
        for (unsigned p = 0; p < VR_POOLS; p++) family->peak[p] = family->current[p];
        family->peak_of_both = family->current[VR_SMALL] + family->current[VR_LARGE];
    }
    for (int f = 0; f < VR_WAITING_FAMILIES; f++) {
        struct vr_waiting_totals *waiting = &totals->waiting[f];
        for (unsigned p = 0; p < VR_POOLS; p++) waiting->active_peak[p] = vr_totals_active(totals, p, (enum vr_family)f);
        waiting->active_peak_of_both = waiting->active_peak[VR_SMALL] + waiting->active_peak[VR_LARGE];
    }
}

void vr_totals_reset_accumulated(struct vr_totals *totals) {
    for (int f = 0; f < VR_ALL_FAMILIES; f++) {
        for (int v = 0; v < VRAM_STAT_POOLS; v++) {
            const struct vram_stat sums = sums_of(totals, f, v);
            totals->base_allocated[v][f] = sums.allocated;
            totals->base_freed[v][f] = sums.freed;
        }
    }
}
