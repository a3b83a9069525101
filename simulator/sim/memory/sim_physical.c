// sim_physical.c: how long physical allocations live: while a handle names them, a mapping shows them, or a multicast object has them. An
// object ends its bindings when it goes, and with them what only they kept.
#include "sim/sim.h"

static struct vr_sim_physical *physical_at(const struct vr_sim *sim, uint32_t index) {
    return (struct vr_sim_physical *)(void *)vr_sim_slots_item(&sim->physicals, index);
}

// Memory that is made here counts; an object and what another process made do not.
static void free_physical(struct vr_sim *sim, struct vr_sim_physical *physical) {
    if (physical->shared == 0 && physical->team == 0) sim->devices[physical->device].used_bytes -= physical->size_bytes;
    vr_sim_back_discard(sim, physical);
    vr_sim_slots_give(&sim->physicals, vr_sim_slots_index(&sim->physicals, physical));
}

static bool is_in_use(const struct vr_sim_physical *physical) {
    return physical->slot.named || physical->mappings > 0 || physical->bindings > 0;
}

void vr_sim_unbind_at(struct vr_sim *sim, size_t at) {
    struct vr_sim_physical *memory = physical_at(sim, sim->bindings[at].memory);
    sim->bindings[at] = sim->bindings[--sim->binding_count];
    memory->bindings--;
    if (!is_in_use(memory)) free_physical(sim, memory); // memory has no bindings of its own to end
}

void vr_sim_unbind_all(struct vr_sim *sim, uint32_t object) {
    for (size_t at = 0; at < sim->binding_count;) {
        if (sim->bindings[at].object == object)
            vr_sim_unbind_at(sim, at);
        else
            at++;
    }
}

void vr_sim_physical_collect(struct vr_sim *sim, struct vr_sim_physical *physical) {
    if (is_in_use(physical)) return;
    if (physical->team != 0) vr_sim_unbind_all(sim, vr_sim_slots_index(&sim->physicals, physical));
    free_physical(sim, physical);
}
