// sim_file.c: the memory file of an instance. All its device memory that has bytes is one file, which other processes can map.
#include <stdlib.h>

#include "sim/sim.h"
#include "vram/sim.h"

vr_cu_result vr_sim_back_open(struct vr_sim *sim) {
    sim->file = -1;
    if (!sim->options.backed && sim->options.bytes == VRAM_SIM_BYTES_BACKED) return VR_CU_SUCCESS;
    sim->file_bytes = VR_SIM_PAGE_BYTES; // no ticket lies at 0
    if (vr_os_shared_open(&sim->file) != VRAM_OK) return VR_CU_OPERATING_SYSTEM;
    vr_sim_content_open(&sim->content, sim->file);
    return VR_CU_SUCCESS;
}

void vr_sim_back_close(struct vr_sim *sim) {
    vr_sim_content_release(&sim->content);
    free(sim->written);
    sim->written = NULL;
    free(sim->captured);
    sim->captured = NULL;
    sim->captured_count = sim->captured_capacity = 0;
    if (sim->file >= 0) vr_os_shared_close(sim->file);
    sim->file = -1;
}

// The host's pages that hold [address, address + span).
uint64_t vr_sim_first_page(uint64_t address) { return vr_round_down(address, VR_SIM_PAGE_BYTES); }

uint64_t vr_sim_page_span(uint64_t address, uint64_t span) {
    return vr_round_up(address + span, VR_SIM_PAGE_BYTES) - vr_sim_first_page(address);
}

vr_cu_result vr_sim_back_extend(struct vr_sim *sim, uint64_t size_bytes, uint64_t *offset) {
    if (vr_sim_keeps(sim)) {
        *offset = vr_sim_content_place(&sim->content, size_bytes);
        return VR_CU_SUCCESS;
    }
    uint64_t end;
    if (!vr_add_u64(sim->file_bytes, size_bytes, &end) || vr_os_shared_resize(sim->file, end) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    *offset = sim->file_bytes;
    sim->file_bytes = end;
    return VR_CU_SUCCESS;
}
