// sim_nodes.c: lists of handles of graph nodes.
#include "sim/streams/sim_streams.h"

bool vr_sim_nodes_reserve(struct vr_sim_nodes *nodes, size_t more) { return VR_GROW(nodes, items, nodes->count + more) == VRAM_OK; }

bool vr_sim_nodes_add(struct vr_sim_nodes *nodes, uint64_t node) {
    if (!vr_sim_nodes_reserve(nodes, 1)) return false;
    nodes->items[nodes->count++] = node;
    return true;
}

bool vr_sim_nodes_copy(struct vr_sim_nodes *to, const struct vr_sim_nodes *from) {
    if (from->count > to->count && !vr_sim_nodes_reserve(to, from->count - to->count)) return false;
    if (from->count != 0) memcpy(to->items, from->items, from->count * sizeof *to->items);
    to->count = from->count;
    return true;
}

void vr_sim_nodes_free(struct vr_sim_nodes *nodes) {
    free(nodes->items);
    *nodes = (struct vr_sim_nodes){0};
}

void vr_sim_nodes_remove_at(struct vr_sim_nodes *nodes, size_t at) {
    nodes->count--;
    memmove(&nodes->items[at], &nodes->items[at + 1], (nodes->count - at) * sizeof *nodes->items);
}

bool vr_sim_nodes_remove(struct vr_sim_nodes *nodes, uint64_t node) {
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->items[i] != node) continue;
        vr_sim_nodes_remove_at(nodes, i);
        return true;
    }
    return false;
}
