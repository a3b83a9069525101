// sim_graph_edges.c: the rows of calls.def that ask what a graph is made of, and those that change what comes after what.
#include "sim/graphs/sim_graphs.h"

// Writes a list as the driver does: with no place for it, its length; else as much of it as there is room for, zeros after it, and
// how much that is.
static vr_cu_result give_nodes(const struct vr_sim_nodes *list, uint64_t *items, uint64_t *count) {
    if (items == NULL) {
        *count = list->count;
        return VR_CU_SUCCESS;
    }
    const uint64_t written = *count < list->count ? *count : list->count;
    for (uint64_t i = 0; i < *count; i++) items[i] = i < written ? list->items[i] : 0;
    *count = written;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_get_nodes(struct vr_sim *sim, uint64_t graph, uint64_t *nodes, uint64_t *count) {
    const struct vr_sim_graph *found = vr_sim_slots_find(&sim->graphs, graph);
    return found == NULL || count == NULL ? VR_CU_INVALID_VALUE : give_nodes(&found->nodes, nodes, count);
}

vr_cu_result vr_sim_graph_get_root_nodes(struct vr_sim *sim, uint64_t graph, uint64_t *nodes, uint64_t *count) {
    const struct vr_sim_graph *found = vr_sim_slots_find(&sim->graphs, graph);
    if (found == NULL || count == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_nodes roots = {0};
    bool fits = true;
    for (size_t i = 0; i < found->nodes.count && fits; i++)
        if (vr_sim_node_find(sim, found->nodes.items[i])->dependencies.count == 0) fits = vr_sim_nodes_add(&roots, found->nodes.items[i]);
    const vr_cu_result result = fits ? give_nodes(&roots, nodes, count) : VR_CU_OUT_OF_MEMORY;
    vr_sim_nodes_free(&roots);
    return result;
}

// Both ends of every edge, by the node that comes later.
static bool list_edges(const struct vr_sim *sim, const struct vr_sim_graph *graph, struct vr_sim_nodes *from, struct vr_sim_nodes *to) {
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct vr_sim_nodes *before = &vr_sim_node_find(sim, graph->nodes.items[i])->dependencies;
        for (size_t d = 0; d < before->count; d++)
            if (!vr_sim_nodes_add(from, before->items[d]) || !vr_sim_nodes_add(to, graph->nodes.items[i])) return false;
    }
    return true;
}

vr_cu_result vr_sim_graph_get_edges(struct vr_sim *sim, uint64_t graph, uint64_t *from, uint64_t *to, uint64_t *count) {
    const struct vr_sim_graph *found = vr_sim_slots_find(&sim->graphs, graph);
    if (found == NULL || count == NULL || (from == NULL) != (to == NULL)) return VR_CU_INVALID_VALUE;
    struct vr_sim_nodes starts = {0}, ends = {0};
    vr_cu_result result = list_edges(sim, found, &starts, &ends) ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
    if (result == VR_CU_SUCCESS) {
        uint64_t room = *count;
        (void)give_nodes(&starts, from, &room);
        (void)give_nodes(&ends, to, count);
    }
    vr_sim_nodes_free(&starts);
    vr_sim_nodes_free(&ends);
    return result;
}

vr_cu_result vr_sim_graph_node_get_type(struct vr_sim *sim, uint64_t node, int *type) {
    const struct vr_sim_node *found = vr_sim_node_find(sim, node);
    if (found == NULL || type == NULL) return VR_CU_INVALID_VALUE;
    *type = found->work.type;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_node_get_dependencies(struct vr_sim *sim, uint64_t node, uint64_t *dependencies, uint64_t *count) {
    const struct vr_sim_node *found = vr_sim_node_find(sim, node);
    return found == NULL || count == NULL ? VR_CU_INVALID_VALUE : give_nodes(&found->dependencies, dependencies, count);
}

static bool contains_node(const struct vr_sim_nodes *nodes, uint64_t node) {
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->items[i] == node) return true;
    return false;
}

vr_cu_result vr_sim_graph_node_get_dependent_nodes(struct vr_sim *sim, uint64_t node, uint64_t *dependents, uint64_t *count) {
    const struct vr_sim_node *found = vr_sim_node_find(sim, node);
    if (found == NULL || count == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_sim_nodes *all = &vr_sim_graph_at(sim, found->graph)->nodes;
    struct vr_sim_nodes after = {0};
    bool fits = true;
    for (size_t i = 0; i < all->count && fits; i++)
        if (contains_node(&vr_sim_node_find(sim, all->items[i])->dependencies, node)) fits = vr_sim_nodes_add(&after, all->items[i]);
    const vr_cu_result result = fits ? give_nodes(&after, dependents, count) : VR_CU_OUT_OF_MEMORY;
    vr_sim_nodes_free(&after);
    return result;
}

// --- changing edges -------------------------------------------------------------------------------------------------

// The edges that a call names: `to[i]` comes after `from[i]`, two nodes of the graph.
static bool are_edges(const struct vr_sim *sim, const struct vr_sim_graph *graph, const uint64_t *from, const uint64_t *to,
                      uint64_t count) {
    if (graph == NULL || (count != 0 && (from == NULL || to == NULL))) return false;
    const uint32_t index = vr_sim_slots_index(&sim->graphs, graph);
    for (uint64_t i = 0; i < count; i++) {
        const struct vr_sim_node *start = vr_sim_node_find(sim, from[i]), *end = vr_sim_node_find(sim, to[i]);
        if (start == NULL || end == NULL || start == end || start->graph != index || end->graph != index) return false;
    }
    return true;
}

// All of them or, when one is there already, none.
vr_cu_result vr_sim_graph_add_dependencies(struct vr_sim *sim, uint64_t graph, const uint64_t *from, const uint64_t *to, uint64_t count) {
    if (!are_edges(sim, vr_sim_slots_find(&sim->graphs, graph), from, to, count)) return VR_CU_INVALID_VALUE;
    vr_cu_result result = VR_CU_SUCCESS;
    uint64_t added = 0;
    for (; added < count; added++) {
        struct vr_sim_nodes *before = &vr_sim_node_find(sim, to[added])->dependencies;
        if (contains_node(before, from[added])) result = VR_CU_INVALID_VALUE;
        if (result == VR_CU_SUCCESS && !vr_sim_nodes_add(before, from[added])) result = VR_CU_OUT_OF_MEMORY;
        if (result != VR_CU_SUCCESS) break;
    }
    while (result != VR_CU_SUCCESS && added-- > 0) vr_sim_node_find(sim, to[added])->dependencies.count--;
    return result;
}

// All of them or, when one is not there, none.
vr_cu_result vr_sim_graph_remove_dependencies(struct vr_sim *sim, uint64_t graph, const uint64_t *from, const uint64_t *to,
                                              uint64_t count) {
    if (!are_edges(sim, vr_sim_slots_find(&sim->graphs, graph), from, to, count)) return VR_CU_INVALID_VALUE;
    for (uint64_t i = 0; i < count; i++)
        if (!contains_node(&vr_sim_node_find(sim, to[i])->dependencies, from[i])) return VR_CU_INVALID_VALUE;
    for (uint64_t i = 0; i < count; i++) (void)vr_sim_nodes_remove(&vr_sim_node_find(sim, to[i])->dependencies, from[i]);
    return VR_CU_SUCCESS;
}

// Nodes that are taken out of the set need not be joined any more.
vr_cu_result vr_sim_stream_update_capture_dependencies(struct vr_sim *sim, uint64_t stream, const uint64_t *nodes, uint64_t count,
                                                       unsigned flags) {
    if (flags > VR_CU_STREAM_SET_CAPTURE_DEPENDENCIES) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *found;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &found);
    if (result != VR_CU_SUCCESS) return result;
    if (found->capture == 0) return VR_CU_ILLEGAL_STATE;
    const struct vr_sim_graph *graph = vr_sim_slots_find(&sim->graphs, vr_sim_capture_find(sim, found->capture)->graph);
    if (!vr_sim_are_nodes_of(sim, vr_sim_slots_index(&sim->graphs, graph), nodes, (size_t)count)) return VR_CU_INVALID_VALUE;
    bool fits;
    if (flags == VR_CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        fits = vr_sim_nodes_copy(&found->frontier, &(struct vr_sim_nodes){.items = (uint64_t *)(uintptr_t)nodes, .count = (size_t)count});
    else
        fits = vr_sim_nodes_merge(sim, &found->frontier, nodes, (size_t)count);
    return fits ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}
