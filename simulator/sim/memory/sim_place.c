// sim_place.c: which address comes next, by queue, hint or rule.
#include "sim/sim.h"
#include "vram/sim.h"

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

// The first free address at or above *cursor, which moves past it. 0: none.
static uint64_t place_upwards(struct vr_sim *sim, uint64_t *cursor, uint64_t span, uint64_t alignment) {
    uint64_t address = vr_sim_ranges_lowest_gap(&sim->spaces, *cursor, VR_SIM_LIMIT, span, alignment);
    if (address == UINT64_MAX) return 0;
    *cursor = address + span;
    return address;
}

// The first free address that ends at or below *cursor, which moves down to it. 0: none.
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
    case VRAM_SIM_DRIVER: found.address = vr_sim_regions_place(sim, device, found.span, alignment); break;
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
    if (sim->options.addresses == VRAM_SIM_DRIVER) vr_sim_regions_freed(sim, device, address, span);
}

void vr_sim_place_lost(struct vr_sim *sim, const struct vr_sim_place *place) {
    if (sim->options.addresses == VRAM_SIM_DRIVER) vr_sim_regions_note_other(sim, place->address, place->span);
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
