#include "driver/sim/memory/sim_regions.h"

#include "driver/sim/sim.h"

#define REGION_BYTES (32 * VR_MIB)
#define PAGE_BYTES   (2 * VR_MIB)

void vr_sim_regions_release(struct vr_sim_regions *regions) {
    free(regions->whole.items);
    free(regions->pages.items);
}

// Adds a region of which `left` bytes are free.
static bool add(struct vr_sim_region_list *list, uint64_t base, uint64_t span, uint64_t left) {
    if (VR_GROW(list, items, list->count + 1) != VRAM_OK) return false;
    list->items[list->count++] = (struct vr_sim_region){.base = base, .end = base + span, .widest = left};
    if (list->widest < left) list->widest = left;
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

// The table of all regions is upside down, so that its lowest gap is the highest hole.
static uint64_t mirrored(const struct vr_sim *sim, uint64_t address) {
    return vr_round_down(sim->options.alloc_base, REGION_BYTES) + REGION_BYTES - address;
}

// The highest free range of whole regions below the base of all; 0: none.
static uint64_t highest_hole(const struct vr_sim *sim, uint64_t span) {
    const uint64_t limit = mirrored(sim, REGION_BYTES);
    for (uint64_t from = REGION_BYTES;;) {
        const uint64_t found = vr_sim_ranges_lowest_gap(&sim->regions, from, limit, span, REGION_BYTES);
        if (found == UINT64_MAX) return 0;
        const uint64_t base = mirrored(sim, found + span);
        const struct vr_sim_range *space = vr_sim_ranges_overlap(&sim->spaces, base, span); // queued, or hinted
        if (space == NULL) return base;
        from = mirrored(sim, vr_round_down(space->base, REGION_BYTES));
    }
}

static uint64_t grow(struct vr_sim *sim, struct vr_sim_regions *regions, uint64_t span) {
    if (span > VR_SIM_LIMIT) return 0;
    const uint64_t bytes = vr_round_up(span, REGION_BYTES), base = highest_hole(sim, bytes);
    if (base == 0 || !add(&regions->whole, base, bytes, bytes - span)) return 0;
    const struct vr_sim_range range = {.base = mirrored(sim, base + bytes), .span = bytes, .size_bytes = bytes};
    if (vr_sim_ranges_insert(&sim->regions, &range) == VRAM_OK) return base;
    regions->whole.count--;
    return 0;
}

static uint64_t place_whole(struct vr_sim *sim, struct vr_sim_regions *regions, uint64_t span) {
    uint64_t widest = 0;
    for (size_t i = regions->whole.widest < span ? 0 : regions->whole.count; i > 0; i--) {
        struct vr_sim_region *region = &regions->whole.items[i - 1];
        const uint64_t found = region->widest < span ? 0 : tightest(sim, region, span, &region->widest);
        if (found != 0) return found;
        if (widest < region->widest) widest = region->widest;
    }
    if (regions->whole.widest >= span) regions->whole.widest = widest; // all were looked at
    return grow(sim, regions, span);
}

static uint64_t place_small(struct vr_sim *sim, struct vr_sim_regions *regions, uint64_t span, uint64_t alignment) {
    for (size_t i = regions->pages.widest < span ? regions->pages.count : 0; i < regions->pages.count; i++) {
        struct vr_sim_region *page = &regions->pages.items[i];
        if (page->widest < span) continue;
        const uint64_t found = vr_sim_ranges_lowest_gap(&sim->spaces, page->base, page->end, span, alignment);
        if (found != UINT64_MAX) return found;
        page->widest = span - 1;
    }
    if (regions->pages.widest >= span) regions->pages.widest = span - 1; // all were looked at
    const uint64_t page = place_whole(sim, regions, PAGE_BYTES);
    return page != 0 && add(&regions->pages, page, PAGE_BYTES, PAGE_BYTES - span) ? page : 0;
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
        if (vr_sim_ranges_overlap(&sim->spaces, region->base, region->widest) != NULL) {
            if (list->widest < region->widest) list->widest = region->widest;
            return false;
        }
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
    if (forget(sim, &regions->whole, address, &gone)) vr_sim_ranges_remove(&sim->regions, mirrored(sim, gone.end));
}
