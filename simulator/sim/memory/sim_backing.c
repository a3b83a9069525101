// sim_backing.c: real bytes at the simulated addresses. All device memory of an instance is one memory file: an allocation maps its part
// where it lies, a mapping that of its handle, so that two mappings of one handle are the same bytes, in any process. Where content is kept
// apart (sim_content.h), a part of the file is a place and nothing is mapped.
#include "sim/sim.h"

vr_cu_result vr_sim_back_place(struct vr_sim *sim, struct vr_sim_place *place, bool accessible) {
    if (!sim->options.backed) return VR_CU_SUCCESS;
    uint64_t mapped, first = vr_sim_first_page(place->address), span = vr_sim_page_span(place->address, place->span);
    if (vr_os_map(first, span, 0, accessible, &mapped) == VRAM_OK) return VR_CU_SUCCESS;
    if (place->fixed) return VR_CU_INVALID_VALUE;
    if (vr_os_map(0, span, place->alignment, accessible, &mapped) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    place->address = mapped;
    return VR_CU_SUCCESS;
}

void vr_sim_back_remove(struct vr_sim *sim, uint64_t address, uint64_t span) {
    if (sim->options.backed) vr_os_unmap(vr_sim_first_page(address), vr_sim_page_span(address, span));
}

vr_cu_result vr_sim_back_fill(struct vr_sim *sim, uint64_t address, uint64_t span, uint64_t *offset) {
    if (vr_sim_keeps(sim)) return vr_sim_back_extend(sim, span, offset);
    if (!sim->options.backed) return VR_CU_SUCCESS;
    const uint64_t first = vr_sim_first_page(address), size_bytes = vr_sim_page_span(address, span);
    vr_cu_result result = vr_sim_back_extend(sim, size_bytes, offset);
    if (result == VR_CU_SUCCESS && vr_os_shared_map(sim->file, *offset, size_bytes, first) != VRAM_OK) result = VR_CU_OUT_OF_MEMORY;
    return result == VR_CU_SUCCESS ? vr_sim_back_protect(sim, first, size_bytes, true, true) : result;
}

uint64_t vr_sim_back_span(const struct vr_sim *sim, const struct vr_sim_range *range) {
    return sim->options.backed ? vr_sim_page_span(range->base, range->span) : vr_round_up(range->span, VR_SIM_PAGE_BYTES);
}

uint64_t vr_sim_back_keep(struct vr_sim *sim, uint64_t span) { return vr_sim_keeps(sim) ? vr_sim_content_place(&sim->content, span) : 0; }

void vr_sim_back_drop(struct vr_sim *sim, const struct vr_sim_range *range, uint64_t address, uint64_t size_bytes) {
    if (vr_sim_keeps(sim)) vr_sim_content_drop(&sim->content, range->read_mask + (address - range->base), size_bytes, false);
}

void vr_sim_back_give(struct vr_sim *sim, uint64_t ticket, uint64_t offset, uint64_t size_bytes) {
    if (sim->file < 0) return;
    if (vr_sim_keeps(sim)) vr_sim_content_drop(&sim->content, offset, size_bytes, ticket != 0);
    if (!vr_sim_keeps(sim) || ticket != 0) vr_sim_ticket_end(sim, ticket, offset, size_bytes);
}

vr_cu_result vr_sim_back_share(struct vr_sim *sim, uint64_t offset, uint64_t size_bytes) {
    if (sim->file < 0) return VR_CU_NOT_SUPPORTED;
    return !vr_sim_keeps(sim) || vr_sim_content_share(&sim->content, offset, size_bytes) ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}

vr_cu_result vr_sim_back_create(struct vr_sim *sim, struct vr_sim_physical *physical) {
    return sim->file >= 0 ? vr_sim_back_extend(sim, physical->size_bytes, &physical->file_offset) : VR_CU_SUCCESS;
}

void vr_sim_back_discard(struct vr_sim *sim, const struct vr_sim_physical *physical) {
    if (physical->shared != 0)
        vr_sim_shared_give(sim, physical->shared - 1);
    else
        vr_sim_back_give(sim, physical->ticket, physical->file_offset, physical->size_bytes);
}

vr_cu_result vr_sim_back_map(struct vr_sim *sim, const struct vr_sim_physical *physical, uint64_t address, uint64_t size_bytes) {
    if (!sim->options.backed) return VR_CU_SUCCESS;
    const int file = physical->shared != 0 ? vr_sim_shared_file(sim, physical->shared - 1) : sim->file;
    return vr_os_shared_map(file, physical->file_offset, size_bytes, address) == VRAM_OK ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}

vr_cu_result vr_sim_back_unmap(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    if (!sim->options.backed) return VR_CU_SUCCESS;
    return vr_os_shared_unmap(address, size_bytes) == VRAM_OK ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}

vr_cu_result vr_sim_back_protect(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, bool read, bool write) {
    if (!sim->options.backed) return VR_CU_SUCCESS;
    return vr_os_protect(address, size_bytes, read, write) == VRAM_OK ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}
