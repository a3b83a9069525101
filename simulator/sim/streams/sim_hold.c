// sim_hold.c: is the value there that a stream waits for?
#include "sim/streams/sim_streams.h"

#define NAP_NS 100000 // between two looks at a value that some other thread or process must write

// The value in memory; false where no bytes stand behind the address. Looking at it is no read of the program's.
static bool read_held_word(const struct vr_sim *constant, const struct vr_sim_hold *hold, uint64_t *value) {
    struct vr_sim *sim = (struct vr_sim *)(uintptr_t)constant; // what a look leaves behind is taken back
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->spaces, hold->address);
    const bool pinned = range == NULL && vr_sim_ranges_holding(&sim->hosts, hold->address) != NULL;
    if (range == NULL && !pinned) return false;
    if (range != NULL && range->kind == VR_SIM_RESERVATION && vr_sim_ranges_holding(&sim->mappings, hold->address) == NULL) return false;
    if (pinned || sim->options.backed) {
        memcpy(value, (const void *)(uintptr_t)hold->address, hold->width);
        return true;
    }
    const struct vr_sim_read before = sim->read;
    const bool kept = vr_sim_keeps(sim) && vr_sim_transfer_copy(sim, (uint64_t)(uintptr_t)value, hold->address, hold->width, true);
    sim->read = before;
    return kept;
}

// What has no bytes holds nobody.
bool vr_sim_hold_is_over(const struct vr_sim *sim, const struct vr_sim_hold *hold) {
    uint64_t found = 0, wanted = hold->value;
    if (hold->width == 0 || !read_held_word(sim, hold, &found)) return true;
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
    while (!vr_sim_hold_is_over(sim, &copy)) vr_sim_wait(sim, &nobody, NAP_NS);
    vr_signal_destroy(&nobody);
}
