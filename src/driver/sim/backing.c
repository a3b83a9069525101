// backing.c: real bytes at the simulated addresses. An allocation is anonymous memory at its address; physical allocations are
// parts of one memory file, and a mapping maps its part, so that two mappings of one handle are the same bytes.
#include "driver/sim/sim.h"

vr_cu_result vr_sim_back_open(struct vr_sim *sim) {
    sim->file = -1;
    if (!sim->options.backed) return VR_CU_SUCCESS;
    return vr_os_shared_open(&sim->file) == VRAM_OK ? VR_CU_SUCCESS : VR_CU_OPERATING_SYSTEM;
}

void vr_sim_back_close(struct vr_sim *sim) {
    if (sim->file >= 0) vr_os_shared_close(sim->file);
    sim->file = -1;
}

// The host's pages that hold [address, address + span).
static uint64_t first_page(uint64_t address) { return vr_round_down(address, VR_SIM_PAGE_BYTES); }
static uint64_t page_span(uint64_t address, uint64_t span) { return vr_round_up(address + span, VR_SIM_PAGE_BYTES) - first_page(address); }

vr_cu_result vr_sim_back_place(struct vr_sim *sim, struct vr_sim_place *place, bool accessible) {
    if (!sim->options.backed) return VR_CU_SUCCESS;
    uint64_t mapped, first = first_page(place->address), span = page_span(place->address, place->span);
    if (vr_os_map(first, span, 0, accessible, &mapped) == VRAM_OK) return VR_CU_SUCCESS;
    if (place->fixed) return VR_CU_INVALID_VALUE;
    if (vr_os_map(0, span, place->alignment, accessible, &mapped) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    place->address = mapped;
    return VR_CU_SUCCESS;
}

void vr_sim_back_remove(struct vr_sim *sim, uint64_t address, uint64_t span) {
    if (sim->options.backed) vr_os_unmap(first_page(address), page_span(address, span));
}

vr_cu_result vr_sim_back_create(struct vr_sim *sim, struct vr_sim_physical *physical) {
    if (!sim->options.backed) return VR_CU_SUCCESS;
    uint64_t end = sim->file_bytes + physical->size_bytes;
    if (vr_os_shared_resize(sim->file, end) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    physical->file_offset = sim->file_bytes;
    sim->file_bytes = end;
    return VR_CU_SUCCESS;
}

void vr_sim_back_discard(struct vr_sim *sim, const struct vr_sim_physical *physical) {
    if (sim->options.backed) vr_os_shared_discard(sim->file, physical->file_offset, physical->size_bytes);
}

vr_cu_result vr_sim_back_map(struct vr_sim *sim, const struct vr_sim_physical *physical, uint64_t address, uint64_t size_bytes) {
    if (!sim->options.backed) return VR_CU_SUCCESS;
    return vr_os_shared_map(sim->file, physical->file_offset, size_bytes, address) == VRAM_OK ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}

vr_cu_result vr_sim_back_unmap(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    if (!sim->options.backed) return VR_CU_SUCCESS;
    return vr_os_shared_unmap(address, size_bytes) == VRAM_OK ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}

vr_cu_result vr_sim_back_protect(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, bool read, bool write) {
    if (!sim->options.backed) return VR_CU_SUCCESS;
    return vr_os_protect(address, size_bytes, read, write) == VRAM_OK ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}
