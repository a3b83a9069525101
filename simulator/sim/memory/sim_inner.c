// sim_inner.c: memory of the driver's own for objects of a program.
#include "sim/memory/sim_inner.h"

vr_cu_result vr_sim_inner_alloc(struct vr_sim *sim, uint64_t context, uint64_t size_bytes, uint64_t *address) {
    const uint32_t number = vr_sim_context_find(sim, context)->device;
    struct vr_sim_device *device = &sim->devices[number];
    if (size_bytes > VR_SIM_LIMIT || !vr_sim_has_room(device, size_bytes)) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_place place = {0};
    vr_cu_result result = vr_sim_place_chunk(sim, number, size_bytes, &place);
    if (result == VR_CU_SUCCESS) result = vr_sim_back_place(sim, &place, true);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_range range = {.base = place.address,
                                       .span = place.span,
                                       .size_bytes = size_bytes,
                                       .kind = VR_SIM_INNER,
                                       .owner = context,
                                       .read_mask = vr_sim_back_keep(sim, place.span)};
    if (vr_sim_ranges_insert(&sim->spaces, &range) != VRAM_OK) {
        vr_sim_back_remove(sim, place.address, place.span);
        vr_sim_place_lost(sim, &place);
        return VR_CU_OUT_OF_MEMORY;
    }
    device->used_bytes += size_bytes;
    *address = place.address;
    return VR_CU_SUCCESS;
}

void vr_sim_inner_free(struct vr_sim *sim, uint64_t address) {
    const struct vr_sim_range *range = vr_sim_ranges_at(&sim->spaces, address);
    const uint32_t device = vr_sim_context_find(sim, range->owner)->device;
    const uint64_t span = range->span;
    sim->devices[device].used_bytes -= range->size_bytes;
    vr_sim_back_drop(sim, range, range->base, range->span);
    vr_sim_back_remove(sim, range->base, range->span);
    vr_sim_ranges_remove(&sim->spaces, address);
    vr_sim_place_freed(sim, device, address, span);
}
