// sim_user_objects.h: objects of the program that live as long as graphs need them.
#ifndef VR_SIM_GRAPHS_SIM_USER_OBJECTS_H
#define VR_SIM_GRAPHS_SIM_USER_OBJECTS_H

#include "sim/sim.h"

// Invariant: references is what the program has and what all holdings have of it; at 0 it is destroyed.
struct vr_sim_user_object {
    struct vr_sim_slot slot;
    void *object;
    vr_cu_host_function *destroy;
    uint64_t references;
};

// What a graph or an executable one has of objects.
struct vr_sim_holdings {
    struct vr_sim_holding {
        uint64_t object;
        uint64_t count;
    } * items;
    size_t count, items_capacity;
};

// Gives everything back; destructors of what nobody else has are called.
void vr_sim_holdings_release(struct vr_sim *sim, struct vr_sim_holdings *holdings);
// As many of each object as `from` has. False when the host has no memory; what was added stays.
bool vr_sim_holdings_add(struct vr_sim *sim, struct vr_sim_holdings *to, const struct vr_sim_holdings *from);

#endif
