// Nodes and edges added to graphs explicitly, and conditional nodes.
#include <stdlib.h>

#include "sim/graphs/sim_graphs.h"

// ---- Calls that add nodes to graphs.

// Checks the arguments common to all of them. *index is set to the graph's slot.
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

// Adds a copy or set in a context's memory. The context's device must have access to all of it.
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

// Copies the child graph, so later changes to it do not affect the node.
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

// ---- Calls that list nodes and edges, and calls that change edges.

// Returns a list as the driver does. With items == NULL, only its length; otherwise as many items as fit, zeros after them, and the
// count.
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

// Lists both ends of every edge, grouped by the later node.
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

// Returns whether these are pairs of different nodes of the graph. to[i] comes after from[i].
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

// Adds all edges, or none if one already exists.
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

// Removes all edges, or none if one does not exist.
vr_cu_result vr_sim_graph_remove_dependencies(struct vr_sim *sim, uint64_t graph, const uint64_t *from, const uint64_t *to,
                                              uint64_t count) {
    if (!are_edges(sim, vr_sim_slots_find(&sim->graphs, graph), from, to, count)) return VR_CU_INVALID_VALUE;
    for (uint64_t i = 0; i < count; i++)
        if (!contains_node(&vr_sim_node_find(sim, to[i])->dependencies, from[i])) return VR_CU_INVALID_VALUE;
    for (uint64_t i = 0; i < count; i++) (void)vr_sim_nodes_remove(&vr_sim_node_find(sim, to[i])->dependencies, from[i]);
    return VR_CU_SUCCESS;
}

// Nodes removed from the dependencies no longer need to be joined.
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

// ---- Conditions of graphs and bodies of conditional nodes. Kernels do not run and set no condition: a launch uses the default value, and
// a loop whose default is not 0 runs once.

enum { ASSIGN_DEFAULT = 1, TYPE_IF = 0, TYPE_WHILE = 1, TYPE_SWITCH = 2, BODIES_MOST = 256 };

vr_cu_result vr_sim_graph_conditional_handle_create(struct vr_sim *sim, uint64_t *handle, uint64_t graph, uint64_t context, unsigned value,
                                                    unsigned flags) {
    if (handle == NULL || vr_sim_slots_find(&sim->graphs, graph) == NULL || flags > ASSIGN_DEFAULT) return VR_CU_INVALID_VALUE;
    if (context != 0 && vr_sim_context_find(sim, context) == NULL) return VR_CU_INVALID_CONTEXT;
    uint32_t index;
    if (vr_sim_slots_take(&sim->conditions, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_condition *made = (struct vr_sim_condition *)(void *)vr_sim_slots_item(&sim->conditions, index);
    made->graph = graph;
    made->value = flags == ASSIGN_DEFAULT ? value : 0;
    *handle = vr_sim_slots_handle(&sim->conditions, index);
    return VR_CU_SUCCESS;
}

static bool is_size(int type, uint32_t size) {
    if (type == TYPE_IF) return size == 1 || size == 2;
    return type == TYPE_WHILE ? size == 1 : type == TYPE_SWITCH && size >= 1 && size <= BODIES_MOST;
}

vr_cu_result vr_sim_condition_make(struct vr_sim *sim, uint64_t graph, const struct vr_cu_conditional_node *params,
                                   struct vr_sim_payload **made) {
    const struct vr_sim_condition *condition = vr_sim_slots_find(&sim->conditions, params->handle);
    if (condition == NULL || condition->graph != graph || !is_size(params->type, params->size)) return VR_CU_INVALID_VALUE;
    struct vr_sim_condition_payload *payload = calloc(1, sizeof *payload + params->size * sizeof payload->bodies[0]);
    if (payload == NULL) return VR_CU_OUT_OF_MEMORY;
    payload->head.references = 1;
    payload->handle = params->handle;
    payload->type = params->type;
    payload->value = condition->value;
    for (; payload->size < params->size; payload->size++) {
        uint32_t body;
        if (vr_sim_graph_make(sim, &body) != VR_CU_SUCCESS) {
            vr_sim_bodies_end(sim, &payload->head);
            vr_sim_payload_drop(&payload->head);
            return VR_CU_OUT_OF_MEMORY;
        }
        vr_sim_graph_own(sim, body);
        payload->bodies[payload->size] = vr_sim_slots_handle(&sim->graphs, body);
    }
    *made = &payload->head;
    return VR_CU_SUCCESS;
}
