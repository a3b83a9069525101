// Regions of device addresses, and placement inside of them.
#include "sim/memory/sim_regions.h"

#include "sim/sim.h"
#include "vram/sim.h"

#define REGION_BYTES (32 * VR_MIB)
#define PAGE_BYTES   (2 * VR_MIB)

void vr_sim_regions_release(struct vr_sim_regions *regions) {
    for (size_t i = 0; i < regions->count; i++) free(regions->items[i].gaps);
    free(regions->items);
    free(regions->pages.items);
}

// --- gaps -----------------------------------------------------------------------------------------------------------

static void measure_region(struct vr_sim_region *region) {
    region->widest = 0;
    for (size_t i = 0; i < region->gap_count; i++) {
        const uint64_t bytes = region->gaps[i].end - region->gaps[i].from;
        if (bytes > region->widest) region->widest = bytes;
    }
}

// Returns the first gap that ends after the address.
static size_t gap_behind(const struct vr_sim_region *region, uint64_t address) {
    size_t low = 0, high = region->gap_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (region->gaps[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_gap(struct vr_sim_region *region, size_t at) {
    region->gap_count--;
    memmove(&region->gaps[at], &region->gaps[at + 1], (region->gap_count - at) * sizeof *region->gaps);
}

// Inserts a gap. The region's invariant guarantees room.
static void insert_gap(struct vr_sim_region *region, size_t at, uint64_t from, uint64_t end) {
    assert(region->gap_count < region->gaps_capacity);
    memmove(&region->gaps[at + 1], &region->gaps[at], (region->gap_count - at) * sizeof *region->gaps);
    region->gaps[at] = (struct vr_sim_gap){from, end};
    region->gap_count++;
}

// Marks the pages [from, end) as unused.
static void open_gap(struct vr_sim_region *region, uint64_t from, uint64_t end) {
    const size_t next = gap_behind(region, from);
    const bool joins_before = next > 0 && region->gaps[next - 1].end == from;
    const bool joins_behind = next < region->gap_count && region->gaps[next].from == end;
    if (joins_before && joins_behind) {
        region->gaps[next - 1].end = region->gaps[next].end;
        remove_gap(region, next);
    } else if (joins_before) {
        region->gaps[next - 1].end = end;
    } else if (joins_behind) {
        region->gaps[next].from = from;
    } else {
        insert_gap(region, next, from, end);
    }
    measure_region(region);
}

// Finds the first gap of whole pages at or after *from, and moves *from past it and past the range that ends it. Returns false after the
// last gap.
static bool next_gap(const struct vr_sim *sim, uint64_t end, uint64_t *from, struct vr_sim_gap *gap) {
    while (*from < end) {
        const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->spaces, *from); // may start on an earlier page
        if (range == NULL) range = vr_sim_ranges_next(&sim->spaces, *from);
        const bool last = range == NULL || range->base >= end;
        *gap = (struct vr_sim_gap){*from, last ? end : vr_round_down(range->base, PAGE_BYTES)};
        *from = last ? end : vr_round_up(vr_sim_range_end(range), PAGE_BYTES);
        if (gap->end > gap->from) return true;
    }
    return false;
}

// Recomputes the gaps from the table of address space, which includes `others`. If the host is out of memory, the last gaps are left out.
static void look_at_region(const struct vr_sim *sim, struct vr_sim_region *region) {
    uint64_t from = region->base;
    struct vr_sim_gap gap;
    region->gap_count = 0;
    while (next_gap(sim, region->end, &from, &gap) && VR_GROW(region, gaps, region->gap_count + 1) == VRAM_OK)
        insert_gap(region, region->gap_count, gap.from, gap.end);
    region->things = region->gap_count;
    measure_region(region);
}

static bool is_right(const struct vr_sim *sim, const struct vr_sim_region *region) {
    uint64_t from = region->base, widest = 0;
    struct vr_sim_gap gap;
    size_t count = 0;
    for (; next_gap(sim, region->end, &from, &gap); count++) {
        if (count >= region->gap_count || region->gaps[count].from != gap.from || region->gaps[count].end != gap.end) return false;
        if (widest < gap.end - gap.from) widest = gap.end - gap.from;
    }
    return count == region->gap_count && count <= region->things + 1 && widest == region->widest;
}

bool vr_sim_regions_check(const struct vr_sim *sim) {
    for (uint32_t i = 0; i < sim->options.device_count; i++) {
        const struct vr_sim_regions *regions = &sim->devices[i].regions;
        for (uint32_t at = regions->newest; at != 0; at = regions->items[at].older)
            if (!regions->items[at].others && !is_right(sim, &regions->items[at])) return false;
    }
    return true;
}

// Takes the low end of the tightest gap of at least `span` and returns its address. Returns 0 if no gap fits or the host is out of memory.
static uint64_t take_span(struct vr_sim_region *region, uint64_t span) {
    size_t found = region->gap_count;
    uint64_t tight = UINT64_MAX;
    for (size_t i = 0; i < region->gap_count; i++) {
        const uint64_t bytes = region->gaps[i].end - region->gaps[i].from;
        if (bytes < span || bytes >= tight) continue;
        tight = bytes;
        found = i;
    }
    if (found == region->gap_count || VR_GROW(region, gaps, region->things + 2) != VRAM_OK) return 0;
    const uint64_t address = region->gaps[found].from;
    region->things++;
    region->gaps[found].from += span;
    if (tight == span) remove_gap(region, found);
    if (tight == region->widest) measure_region(region);
    return address;
}

// --- regions --------------------------------------------------------------------------------------------------------

// Mirrors an address. The table of all regions has mirrored addresses, so that its lowest gap is the highest hole.
static uint64_t mirrored_address(const struct vr_sim *sim, uint64_t address) {
    return vr_round_down(sim->options.alloc_base, REGION_BYTES) + REGION_BYTES - address;
}

// Returns the highest free range of whole regions below alloc_base, or 0.
static uint64_t highest_hole(const struct vr_sim *sim, uint64_t span) {
    const uint64_t limit = mirrored_address(sim, REGION_BYTES);
    for (uint64_t from = REGION_BYTES;;) {
        const uint64_t found = vr_sim_ranges_lowest_gap(&sim->regions, from, limit, span, REGION_BYTES);
        if (found == UINT64_MAX) return 0;
        const uint64_t base = mirrored_address(sim, found + span);
        const struct vr_sim_range *space = vr_sim_ranges_overlap(&sim->spaces, base, span); // from a queued or hinted address
        if (space == NULL) return base;
        from = mirrored_address(sim, vr_round_down(space->base, REGION_BYTES));
    }
}

// Allocates a table entry for a new region. Returns 0 if the host is out of memory.
static uint32_t new_place(struct vr_sim_regions *regions) {
    const uint32_t place = regions->free_list;
    if (place != 0) {
        regions->free_list = regions->items[place].older;
        return place;
    }
    const size_t used = regions->count == 0 ? 1 : regions->count;
    if (used >= UINT32_MAX || VR_GROW(regions, items, used + 1) != VRAM_OK) return 0;
    if (regions->count == 0) regions->items[0] = (struct vr_sim_region){0};
    regions->items[used] = (struct vr_sim_region){0};
    regions->count = used + 1;
    return (uint32_t)used;
}

static void give_place(struct vr_sim_regions *regions, uint32_t place) {
    struct vr_sim_region *region = &regions->items[place];
    region->base = region->end = 0;
    region->older = regions->free_list;
    regions->free_list = place;
}

static struct vr_sim_region *grow_regions(struct vr_sim *sim, struct vr_sim_regions *regions, uint32_t device, uint64_t span) {
    if (span > VR_SIM_LIMIT) return NULL;
    const uint64_t bytes = vr_round_up(span, REGION_BYTES), base = highest_hole(sim, bytes);
    const uint32_t place = base == 0 ? 0 : new_place(regions);
    if (place == 0) return NULL;
    struct vr_sim_region *region = &regions->items[place];
    const struct vr_sim_range range = {
        .base = mirrored_address(sim, base + bytes), .span = bytes, .size_bytes = bytes, .kind = device, .owner = place};
    if (VR_GROW(region, gaps, 2) != VRAM_OK || vr_sim_ranges_insert(&sim->regions, &range) != VRAM_OK) {
        give_place(regions, place);
        return NULL;
    }
    region->base = base;
    region->end = base + bytes;
    region->gap_count = region->things = 0;
    insert_gap(region, 0, base, base + bytes);
    region->widest = bytes;
    region->others = sim->options.backed; // the host may choose other addresses
    region->older = regions->newest;
    region->newer = 0;
    regions->items[regions->newest].newer = place;
    regions->newest = place;
    if (regions->widest < bytes) regions->widest = bytes;
    return region;
}

// Drops the small-request pages that `others` kept in the list.
static void forget_pages(struct vr_sim_regions *regions, const struct vr_sim_region *region) {
    size_t kept = 0;
    for (size_t i = 0; i < regions->pages.count; i++) {
        const struct vr_sim_small_page page = regions->pages.items[i];
        if (page.base < region->base || page.base >= region->end) regions->pages.items[kept++] = page;
    }
    regions->pages.count = kept;
}

static void free_region(struct vr_sim *sim, struct vr_sim_regions *regions, uint32_t place) {
    struct vr_sim_region *region = &regions->items[place];
    if (region->others) forget_pages(regions, region);
    vr_sim_ranges_remove(&sim->regions, mirrored_address(sim, region->end));
    if (region->older != 0) regions->items[region->older].newer = region->newer;
    if (region->newer != 0) regions->items[region->newer].older = region->older;
    if (regions->newest == place) regions->newest = region->older;
    give_place(regions, place);
}

// --- placing --------------------------------------------------------------------------------------------------------

static uint64_t place_whole(struct vr_sim *sim, struct vr_sim_regions *regions, uint32_t device, uint64_t span) {
    uint64_t widest = 0;
    for (uint32_t at = regions->widest < span ? 0 : regions->newest; at != 0; at = regions->items[at].older) {
        struct vr_sim_region *region = &regions->items[at];
        if (VR_UNLIKELY(region->others)) look_at_region(sim, region);
        if (region->widest >= span) return take_span(region, span);
        if (widest < region->widest) widest = region->widest;
    }
    if (regions->widest >= span) regions->widest = widest; // every region was searched
    struct vr_sim_region *region = grow_regions(sim, regions, device, span);
    return region == NULL ? 0 : take_span(region, span);
}

static uint64_t place_small(struct vr_sim *sim, struct vr_sim_regions *regions, uint32_t device, uint64_t span, uint64_t alignment) {
    for (size_t i = regions->pages.widest < span ? regions->pages.count : 0; i < regions->pages.count; i++) {
        struct vr_sim_small_page *page = &regions->pages.items[i];
        if (page->widest < span) continue;
        const uint64_t found = vr_sim_ranges_lowest_gap(&sim->spaces, page->base, page->base + PAGE_BYTES, span, alignment);
        if (found != UINT64_MAX) return found;
        page->widest = span - 1;
    }
    if (regions->pages.widest >= span) regions->pages.widest = span - 1; // every page was searched
    if (VR_GROW(&regions->pages, items, regions->pages.count + 1) != VRAM_OK) return 0;
    const uint64_t base = place_whole(sim, regions, device, PAGE_BYTES);
    if (base == 0) return 0;
    regions->pages.items[regions->pages.count++] = (struct vr_sim_small_page){.base = base, .widest = PAGE_BYTES - span};
    if (regions->pages.widest < PAGE_BYTES - span) regions->pages.widest = PAGE_BYTES - span;
    return base;
}

// Returns an address for `span` bytes on `device`, or 0 if no place fits or the host is out of memory. A span of 1 MiB or more is rounded
// up to 2 MiB.
static uint64_t sim_regions_place(struct vr_sim *sim, uint32_t device, uint64_t span, uint64_t alignment) {
    struct vr_sim_regions *regions = &sim->devices[device].regions;
    if (span < VR_MIB) return place_small(sim, regions, device, span, alignment);
    return place_whole(sim, regions, device, vr_round_up(span, PAGE_BYTES));
}

// --- giving back ----------------------------------------------------------------------------------------------------

// Returns the table's entry of the region that contains the address, on any device, or NULL.
static const struct vr_sim_range *entry_at(const struct vr_sim *sim, uint64_t address) {
    const uint64_t top = mirrored_address(sim, 0);
    return address >= top ? NULL : vr_sim_ranges_holding(&sim->regions, mirrored_address(sim, address + 1));
}

static void free_pages(struct vr_sim *sim, uint32_t device, uint64_t from, uint64_t end) {
    struct vr_sim_regions *regions = &sim->devices[device].regions;
    const struct vr_sim_range *entry = entry_at(sim, from);
    if (entry == NULL || entry->kind != device) return;
    const uint32_t place = (uint32_t)entry->owner;
    struct vr_sim_region *region = &regions->items[place];
    if (VR_UNLIKELY(region->others)) {
        look_at_region(sim, region);
    } else {
        open_gap(region, from, end);
        region->things--;
    }
    if (region->widest == region->end - region->base)
        free_region(sim, regions, place);
    else if (regions->widest < region->widest)
        regions->widest = region->widest;
}

static void free_small(struct vr_sim *sim, uint32_t device, uint64_t address) {
    struct vr_sim_regions *regions = &sim->devices[device].regions;
    for (size_t i = regions->pages.count; i > 0; i--) {
        struct vr_sim_small_page *page = &regions->pages.items[i - 1];
        if (address - page->base >= PAGE_BYTES) continue;
        page->widest = PAGE_BYTES;
        if (regions->pages.widest < PAGE_BYTES) regions->pages.widest = PAGE_BYTES;
        if (vr_sim_ranges_overlap(&sim->spaces, page->base, PAGE_BYTES) != NULL) return;
        const uint64_t base = page->base;
        regions->pages.count--;
        memmove(page, page + 1, (regions->pages.count - (i - 1)) * sizeof *page);
        free_pages(sim, device, base, base + PAGE_BYTES);
        return;
    }
    free_pages(sim, device, vr_round_down(address, PAGE_BYTES), vr_round_up(address + 1, PAGE_BYTES)); // no small page contains it
}

// Notes that the memory at `address` was freed. Frees a region once it is empty.
static void sim_regions_freed(struct vr_sim *sim, uint32_t device, uint64_t address, uint64_t span) {
    if (span < VR_MIB)
        free_small(sim, device, address);
    else
        free_pages(sim, device, address, address + vr_round_up(span, PAGE_BYTES));
}

// Notes memory at an address that the rule did not choose, or memory that is not where the rule put it.
static void sim_regions_note_other(struct vr_sim *sim, uint64_t address, uint64_t span) {
    const uint64_t top = mirrored_address(sim, 0);
    if (address >= top) return;
    const uint64_t end = address + (span < top - address ? span : top - address);
    const uint64_t first = mirrored_address(sim, end);
    const struct vr_sim_range *entry;
    while (end > address && (entry = vr_sim_ranges_overlap(&sim->regions, first, mirrored_address(sim, address) - first)) != NULL) {
        struct vr_sim_regions *regions = &sim->devices[entry->kind].regions;
        struct vr_sim_region *region = &regions->items[entry->owner];
        region->others = true;
        if (regions->widest < region->end - region->base) regions->widest = region->end - region->base;
        if (region->end >= end) return;
        address = region->end;
    }
}

// ---- Choice of the next address: from the queue, a hint or the rule.

vr_cu_result vr_sim_queue_push(struct vr_sim_queue *queue, uint64_t address) {
    if (queue->next == queue->count) queue->next = queue->count = 0;
    if (VR_GROW(queue, items, queue->count + 1) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    queue->items[queue->count++] = address;
    return VR_CU_SUCCESS;
}

static bool is_free(const struct vr_sim *sim, uint64_t address, uint64_t span) {
    if (address == 0 || address >= VR_SIM_LIMIT || VR_SIM_LIMIT - address < span) return false;
    return vr_sim_ranges_overlap(&sim->spaces, address, span) == NULL;
}

static vr_cu_result take_queued(struct vr_sim *sim, struct vr_sim_queue *queue, uint64_t size_bytes, struct vr_sim_place *place) {
    uint64_t address = queue->items[queue->next++];
    if (!is_free(sim, address, size_bytes)) return VR_CU_INVALID_VALUE;
    *place = (struct vr_sim_place){.address = address, .span = size_bytes, .fixed = true};
    return VR_CU_SUCCESS;
}

// Takes the first free address at or above *cursor and moves *cursor past it. Returns 0 if nothing fits.
static uint64_t place_upwards(struct vr_sim *sim, uint64_t *cursor, uint64_t span, uint64_t alignment) {
    uint64_t address = vr_sim_ranges_lowest_gap(&sim->spaces, *cursor, VR_SIM_LIMIT, span, alignment);
    if (address == UINT64_MAX) return 0;
    *cursor = address + span;
    return address;
}

// Takes the highest free range that ends at or below *cursor and moves *cursor down to it. Returns 0 if nothing fits.
static uint64_t place_downwards(struct vr_sim *sim, uint64_t *cursor, uint64_t span, uint64_t alignment) {
    uint64_t end = *cursor;
    for (;;) {
        if (end < span + alignment) return 0;
        uint64_t address = vr_round_down(end - span, alignment);
        const struct vr_sim_range *taken = vr_sim_ranges_overlap(&sim->spaces, address, span);
        if (taken == NULL) {
            *cursor = address;
            return address;
        }
        end = taken->base;
    }
}

static void note_extent(struct vr_sim_extent *extent, const struct vr_sim_place *place) {
    if (place->address < extent->lowest) extent->lowest = place->address;
    if (place->address + place->span > extent->highest) extent->highest = place->address + place->span;
}

vr_cu_result vr_sim_place_chunk(struct vr_sim *sim, uint32_t device, uint64_t size_bytes, struct vr_sim_place *place) {
    const struct vram_sim_options *options = &sim->options;
    uint64_t alignment = size_bytes >= VR_MIB ? options->alloc_alignment : options->alloc_small_alignment;
    struct vr_sim_place found = {.span = vr_round_up(size_bytes, alignment), .alignment = alignment};
    uint64_t cursor = options->alloc_base;
    switch (options->addresses) {
    case VRAM_SIM_DRIVER: found.address = sim_regions_place(sim, device, found.span, alignment); break;
    case VRAM_SIM_WINDOWS:
    case VRAM_SIM_REUSE: found.address = place_upwards(sim, &cursor, found.span, alignment); break;
    case VRAM_SIM_FALLING: found.address = place_downwards(sim, &sim->alloc_cursor, found.span, alignment); break;
    case VRAM_SIM_RISING: found.address = place_upwards(sim, &sim->alloc_cursor, found.span, alignment); break;
    }
    if (found.address == 0) return VR_CU_OUT_OF_MEMORY;
    note_extent(&sim->allocated, &found);
    *place = found;
    return VR_CU_SUCCESS;
}

void vr_sim_place_freed(struct vr_sim *sim, uint32_t device, uint64_t address, uint64_t span) {
    if (sim->options.addresses == VRAM_SIM_DRIVER) sim_regions_freed(sim, device, address, span);
}

void vr_sim_place_lost(struct vr_sim *sim, const struct vr_sim_place *place) {
    if (sim->options.addresses == VRAM_SIM_DRIVER) sim_regions_note_other(sim, place->address, place->span);
}

vr_cu_result vr_sim_place_alloc(struct vr_sim *sim, uint32_t device, uint64_t size_bytes, struct vr_sim_place *place) {
    if (sim->alloc_queue.next == sim->alloc_queue.count) return vr_sim_place_chunk(sim, device, size_bytes, place);
    const vr_cu_result result = take_queued(sim, &sim->alloc_queue, size_bytes, place);
    if (result == VR_CU_SUCCESS) vr_sim_place_lost(sim, place);
    return result;
}

vr_cu_result vr_sim_place_reservation(struct vr_sim *sim, uint64_t size_bytes, uint64_t alignment, uint64_t hint,
                                      struct vr_sim_place *place) {
    if (sim->reserve_queue.next < sim->reserve_queue.count) return take_queued(sim, &sim->reserve_queue, size_bytes, place);
    if (alignment < sim->options.reserve_alignment) alignment = sim->options.reserve_alignment;
    struct vr_sim_place found = {.span = size_bytes, .alignment = alignment};
    uint64_t cursor = sim->options.reserve_base;
    if (hint % alignment == 0 && is_free(sim, hint, size_bytes))
        found.address = hint;
    else if (sim->options.addresses == VRAM_SIM_REUSE || sim->options.addresses == VRAM_SIM_WINDOWS)
        found.address = place_upwards(sim, &cursor, size_bytes, alignment);
    else
        found.address = place_upwards(sim, &sim->reserve_cursor, size_bytes, alignment);
    if (found.address == 0) return VR_CU_OUT_OF_MEMORY;
    note_extent(&sim->reserved, &found);
    vr_sim_place_lost(sim, &found);
    *place = found;
    return VR_CU_SUCCESS;
}
