// sim_graph_nodes.c: the rows of calls.def that add nodes to graphs.
#include "sim/graphs/sim_graphs.h"

// What all of them check. *index: slot of the graph.
static vr_cu_result check_new_node(struct vr_sim *sim, const uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count,
                                   uint32_t *index) {
    const struct vr_sim_graph *found = vr_sim_slots_find(&sim->graphs, graph);
    if (node == NULL || found == NULL) return VR_CU_INVALID_VALUE;
    *index = vr_sim_slots_index(&sim->graphs, found);
    return vr_sim_are_nodes_of(sim, *index, dependencies, (size_t)count) ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

static vr_cu_result add_node(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count,
                             const struct vr_sim_work *work) {
    uint32_t index;
    const vr_cu_result result = check_new_node(sim, node, graph, dependencies, count, &index);
    return result == VR_CU_SUCCESS ? vr_sim_node_add(sim, index, work, dependencies, (size_t)count, node) : result;
}

vr_cu_result vr_sim_graph_add_empty_node(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count) {
    const struct vr_sim_work work = {.type = VR_CU_GRAPH_NODE_TYPE_EMPTY};
    return add_node(sim, node, graph, dependencies, count, &work);
}

// Work in the memory of a context. Nothing that it names may lie elsewhere.
static vr_cu_result add_bytes(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count,
                              struct vr_sim_work *work, uint64_t context) {
    const struct vr_sim_context *found = vr_sim_context_find(sim, context);
    if (found == NULL) return VR_CU_INVALID_CONTEXT;
    work->device = found->device;
    if (!vr_sim_work_is_valid(sim, work)) return VR_CU_INVALID_VALUE;
    return add_node(sim, node, graph, dependencies, count, work);
}

vr_cu_result vr_sim_graph_add_memcpy_node(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count,
                                          const struct vr_cu_memcpy3d *copy, uint64_t context) {
    if (copy == NULL || copy->width_bytes == 0 || copy->rows == 0 || copy->planes == 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_work work;
    const vr_cu_result result = vr_sim_copy_shape(sim, copy, &work);
    return result == VR_CU_SUCCESS ? add_bytes(sim, node, graph, dependencies, count, &work, context) : result;
}

vr_cu_result vr_sim_graph_add_memset_node(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count,
                                          const struct vr_cu_memset_node *set, uint64_t context) {
    if (set == NULL || set->width_elements == 0 || set->rows == 0) return VR_CU_INVALID_VALUE;
    const uint32_t element = set->element_bytes;
    if ((element != 1 && element != 2 && element != 4) || set->address % element != 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_work work = vr_sim_set_work(set->address, 0, 0);
    if (!vr_mul_u64(set->width_elements, element, &work.width_bytes)) return VR_CU_INVALID_VALUE;
    if (set->rows > 1 && (set->pitch_bytes < work.width_bytes || set->pitch_bytes % element != 0)) return VR_CU_INVALID_VALUE;
    work.value = set->value;
    work.element_bytes = element;
    work.rows = set->rows;
    work.to_pitch = set->pitch_bytes;
    return add_bytes(sim, node, graph, dependencies, count, &work, context);
}

vr_cu_result vr_sim_graph_add_host_node(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count,
                                        const struct vr_cu_host_node *host) {
    if (host == NULL || host->function == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_sim_work work = {.type = VR_CU_GRAPH_NODE_TYPE_HOST, .function = host->function, .argument = host->argument};
    return add_node(sim, node, graph, dependencies, count, &work);
}

static vr_cu_result add_event(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count, int type,
                              uint64_t event) {
    if (vr_sim_slots_find(&sim->events, event) == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_sim_work work = {.type = type, .event = event};
    return add_node(sim, node, graph, dependencies, count, &work);
}

vr_cu_result vr_sim_graph_add_event_record_node(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies,
                                                uint64_t count, uint64_t event) {
    return add_event(sim, node, graph, dependencies, count, VR_CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

vr_cu_result vr_sim_graph_add_event_wait_node(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies,
                                              uint64_t count, uint64_t event) {
    return add_event(sim, node, graph, dependencies, count, VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

// The graph is copied: what happens to it later does not matter to the node.
vr_cu_result vr_sim_graph_add_child_graph_node(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies,
                                               uint64_t count, uint64_t child) {
    uint32_t index;
    vr_cu_result result = check_new_node(sim, node, graph, dependencies, count, &index);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_graph *inside = vr_sim_slots_find(&sim->graphs, child);
    if (inside == NULL || inside->depth >= VR_SIM_MAX_DEPTH) return VR_CU_INVALID_VALUE;
    if (vr_sim_graph_has_memory(sim, vr_sim_slots_index(&sim->graphs, inside))) return VR_CU_NOT_SUPPORTED;
    struct vr_sim_work work = {.type = VR_CU_GRAPH_NODE_TYPE_GRAPH};
    result = vr_sim_graph_copy(sim, vr_sim_slots_index(&sim->graphs, inside), &work.child);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_graph_own(sim, work.child);
    result = vr_sim_node_add(sim, index, &work, dependencies, (size_t)count, node);
    if (result != VR_CU_SUCCESS) vr_sim_graph_end(sim, work.child);
    return result;
}
