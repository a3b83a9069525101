#include "driver/sim/memory/sim_regions.h"

#include "driver/sim/sim.h"

#define REGION_BYTES (32 * VR_MIB)
#define PAGE_BYTES   (2 * VR_MIB)

void vr_sim_regions_release(struct vr_sim_regions *regions) {
    free(regions->whole.items);
    free(regions->pages.items);
}

static bool add(struct vr_sim_region_list *list, uint64_t base, uint64_t span) {
    if (VR_GROW(list, items, list->count + 1) != VRAM_OK) return false;
    list->items[list->count++] = (struct vr_sim_region){.base = base, .end = base + span, .widest = span};
    return true;
}

// The start of the tightest gap of at least `span` between pages that something lies in; 0: none. *widest of all gaps.
static uint64_t tightest(const struct vr_sim *sim, const struct vr_sim_region *region, uint64_t span, uint64_t *widest) {
    uint64_t found = 0, tight = UINT64_MAX;
    *widest = 0;
    for (uint64_t from = region->base; from < region->end;) {
        const struct vr_sim_range *range = vr_sim_ranges_next(&sim->spaces, from);
        const bool last = range == NULL || range->base >= region->end;
        const uint64_t until = last ? region->end : vr_round_down(range->base, PAGE_BYTES);
        const uint64_t gap = until > from ? until - from : 0;
        if (gap >= span && gap < tight) {
            tight = gap;
            found = from;
        }
        if (gap > *widest) *widest = gap;
        from = last ? region->end : vr_round_up(vr_sim_range_end(range), PAGE_BYTES);
    }
    return found;
}

// The highest free range of whole regions below the base of all; 0: none.
static uint64_t new_region(const struct vr_sim *sim, uint64_t span) {
    uint64_t end = vr_round_down(sim->options.alloc_base, REGION_BYTES);
    if (end > sim->region_ceiling) end = sim->region_ceiling;
    while (end >= span + REGION_BYTES) {
        const uint64_t base = end - span;
        const struct vr_sim_range *region = vr_sim_ranges_overlap(&sim->regions, base, span);
        const struct vr_sim_range *space = vr_sim_ranges_overlap(&sim->spaces, base, span);
        if (region == NULL && space == NULL) return base;
        const uint64_t lower = region == NULL || (space != NULL && space->base > region->base) ? space->base : region->base;
        end = vr_round_down(lower, REGION_BYTES);
    }
    return 0;
}

static uint64_t grow(struct vr_sim *sim, struct vr_sim_regions *regions, uint64_t span) {
    if (span > VR_SIM_LIMIT) return 0;
    const uint64_t bytes = vr_round_up(span, REGION_BYTES), base = new_region(sim, bytes);
    if (base == 0 || !add(&regions->whole, base, bytes)) return 0;
    const struct vr_sim_range range = {.base = base, .span = bytes, .size_bytes = bytes};
    if (vr_sim_ranges_insert(&sim->regions, &range) != VRAM_OK) {
        regions->whole.count--;
        return 0;
    }
    // Everything from the ceiling up is taken, so that a search need not pass it.
    if (base + bytes == sim->region_ceiling) sim->region_ceiling = base;
    return base;
}

static uint64_t place_whole(struct vr_sim *sim, struct vr_sim_regions *regions, uint64_t span) {
    for (size_t i = regions->whole.count; i > 0; i--) {
        struct vr_sim_region *region = &regions->whole.items[i - 1];
        if (region->widest < span) continue;
        const uint64_t found = tightest(sim, region, span, &region->widest);
        if (found != 0) return found;
    }
    return grow(sim, regions, span);
}

static uint64_t place_small(struct vr_sim *sim, struct vr_sim_regions *regions, uint64_t span, uint64_t alignment) {
    for (size_t i = 0; i < regions->pages.count; i++) {
        struct vr_sim_region *page = &regions->pages.items[i];
        if (page->widest < span) continue;
        const uint64_t found = vr_sim_ranges_lowest_gap(&sim->spaces, page->base, page->end, span, alignment);
        if (found != UINT64_MAX) return found;
        page->widest = span - 1;
    }
    const uint64_t page = place_whole(sim, regions, PAGE_BYTES);
    return page != 0 && add(&regions->pages, page, PAGE_BYTES) ? page : 0;
}

uint64_t vr_sim_regions_place(struct vr_sim *sim, uint32_t device, uint64_t span, uint64_t alignment) {
    struct vr_sim_regions *regions = &sim->devices[device].regions;
    if (span < VR_MIB) return place_small(sim, regions, span, alignment);
    return place_whole(sim, regions, vr_round_up(span, PAGE_BYTES));
}

// False while something lies in what holds the address.
static bool forget(struct vr_sim *sim, struct vr_sim_region_list *list, uint64_t address, struct vr_sim_region *gone) {
    for (size_t i = list->count; i > 0; i--) {
        struct vr_sim_region *region = &list->items[i - 1];
        if (address < region->base || address >= region->end) continue;
        region->widest = region->end - region->base;
        if (vr_sim_ranges_overlap(&sim->spaces, region->base, region->widest) != NULL) return false;
        *gone = *region;
        memmove(region, region + 1, (list->count - i) * sizeof *region);
        list->count--;
        return true;
    }
    return false;
}

void vr_sim_regions_freed(struct vr_sim *sim, uint32_t device, uint64_t address) {
    struct vr_sim_regions *regions = &sim->devices[device].regions;
    struct vr_sim_region gone;
    (void)forget(sim, &regions->pages, address, &gone);
    if (!forget(sim, &regions->whole, address, &gone)) return;
    vr_sim_ranges_remove(&sim->regions, gone.base);
    if (gone.end > sim->region_ceiling) sim->region_ceiling = gone.end;
}
