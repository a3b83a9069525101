// sim_hold.c: is the value there that a stream waits for?
#include "driver/sim/streams/sim_streams.h"

#define NAP_NS 100000 // between two looks at a value that some other thread or process must write

// Are there bytes to read? Device memory that is gone has none.
static bool has_bytes(const struct vr_sim *sim, uint64_t address) {
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->spaces, address);
    if (range == NULL) return vr_sim_ranges_holding(&sim->hosts, address) != NULL;
    return sim->options.backed && (range->kind != VR_SIM_RESERVATION || vr_sim_ranges_holding(&sim->mappings, address) != NULL);
}

// What has no bytes holds nobody.
bool vr_sim_hold_is_over(const struct vr_sim *sim, const struct vr_sim_hold *hold) {
    if (hold->width == 0 || !has_bytes(sim, hold->address)) return true;
    uint64_t found = 0, wanted = hold->value;
    memcpy(&found, (const void *)(uintptr_t)hold->address, hold->width);
    const bool wide = hold->width == 8;
    if (!wide) wanted &= UINT32_MAX;
    switch (hold->test) {
    case VR_CU_STREAM_WAIT_VALUE_EQ: return found == wanted;
    case VR_CU_STREAM_WAIT_VALUE_AND: return (found & wanted) != 0;
    case VR_CU_STREAM_WAIT_VALUE_NOR: return (~(found | wanted) & (wide ? UINT64_MAX : UINT32_MAX)) != 0;
    default: return wide ? (int64_t)(found - wanted) >= 0 : (int32_t)(uint32_t)(found - wanted) >= 0; // in a circle
    }
}

// The lock is given up between looks: nothing borrowed stays valid.
void vr_sim_hold_wait(struct vr_sim *sim, const struct vr_sim_hold *hold) {
    const struct vr_sim_hold copy = *hold;
    struct vr_signal nobody;
    if (vr_sim_hold_is_over(sim, &copy)) return;
    vr_signal_init(&nobody);
    while (!vr_sim_hold_is_over(sim, &copy)) vr_signal_wait(&nobody, &sim->lock, NAP_NS);
    vr_signal_destroy(&nobody);
}
