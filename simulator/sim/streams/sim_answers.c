#include "sim/streams/sim_answers.h"

struct vr_sim_results *vr_sim_results_here(struct vr_sim *sim) {
    struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    return thread == NULL ? NULL : &thread->results;
}

void vr_sim_answers_say(struct vr_sim *sim, const int64_t *numbers, unsigned count, enum vr_sim_level level) {
    struct vr_sim_results *results = vr_sim_results_here(sim);
    if (results == NULL) return;
    results->level = level == VR_SIM_KNOWN ? VR_SIM_KNOWN : VR_SIM_LIKELY;
    results->count = count < VR_SIM_ANSWERS_MOST ? count : VR_SIM_ANSWERS_MOST;
    results->next = 0;
    for (uint32_t i = 0; i < results->count; i++) results->numbers[i] = numbers[i];
}

static bool is_number(uint64_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

void vr_sim_answers_give(struct vr_sim *sim, const struct vr_sim_work *work) {
    struct vr_sim_results *results = vr_sim_results_here(sim);
    const bool one = work->type == VR_CU_GRAPH_NODE_TYPE_MEMCPY && work->rows == 1 && work->planes == 1 && is_number(work->width_bytes);
    if (VR_LIKELY(results == NULL || results->next >= results->count) || !one) return;
    if (vr_sim_ranges_holding(&sim->spaces, work->from) == NULL || vr_sim_ranges_holding(&sim->spaces, work->to) != NULL) return;
    const int64_t number = results->numbers[results->next++];
    memcpy((void *)(uintptr_t)work->to, &number, (size_t)work->width_bytes); // little-endian
    sim->read = (struct vr_sim_read){.counted = sim->read.counted};
    if (results->level == VR_SIM_KNOWN) return;
    sim->read.passed_bytes = work->width_bytes;
    sim->read.gaps[0].bytes = (unsigned char *)(uintptr_t)work->to;
    sim->read.gaps[0].size_bytes = work->width_bytes;
    sim->read.gap_count = 1;
}

void vr_sim_shields_add(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    struct vr_sim_results *results = vr_sim_results_here(sim);
    if (results == NULL || results->shield_count >= VR_SIM_SHIELDS_MOST) return;
    results->shields[results->shield_count].from = address;
    results->shields[results->shield_count++].end = address + size_bytes;
}

void vr_sim_shields_cut(struct vr_sim *sim, uint32_t count) {
    struct vr_sim_results *results = vr_sim_results_here(sim);
    if (results != NULL && count < results->shield_count) results->shield_count = count;
}

bool vr_sim_is_shielded(struct vr_sim *sim, uint64_t address) {
    const struct vr_sim_results *results = vr_sim_results_here(sim);
    for (uint32_t i = 0; results != NULL && i < results->shield_count; i++)
        if (address >= results->shields[i].from && address < results->shields[i].end) return true;
    return false;
}

bool vr_sim_computes(struct vr_sim *sim) {
    const struct vr_sim_results *results = vr_sim_results_here(sim);
    return results != NULL && results->shield_count > 0;
}

void vr_sim_captured_note(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    if (VR_GROW(sim, captured, sim->captured_count + 1) != VRAM_OK) return;
    sim->captured[sim->captured_count++] = (struct vr_sim_captured){.address = address, .size_bytes = size_bytes};
}

size_t vr_sim_captured_take(struct vr_sim *sim, uint64_t *addresses, uint64_t *sizes, size_t most) {
    sim->captured_asked = true;
    const size_t count = most == 0 || most > sim->captured_count ? sim->captured_count : most;
    for (size_t i = 0; most > 0 && i < count; i++) {
        addresses[i] = sim->captured[i].address;
        sizes[i] = sim->captured[i].size_bytes;
    }
    sim->captured_count -= count;
    if (sim->captured_count > 0) memmove(sim->captured, sim->captured + count, sim->captured_count * sizeof *sim->captured);
    return count;
}
