// sim_node_calls.c: adding nodes by parameters, and getting and setting parameters, by the generic calls and by those of each kind.
#include "sim/graphs/sim_graphs.h"

// --- adding ---------------------------------------------------------------------------------------------------------

// Makes an allocation node. The address is assigned at once; memory backs it during launches.
static vr_cu_result alloc_work(struct vr_sim *sim, struct vr_cu_alloc_node *params, struct vr_sim_work *work) {
    const struct vr_cu_location *location = &params->pool.location;
    uint64_t address;
    if (location->type != VR_CU_MEM_LOCATION_TYPE_DEVICE || params->size_bytes == 0) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, location->id)) return VR_CU_INVALID_DEVICE;
    *work = (struct vr_sim_work){.type = VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC, .device = (uint32_t)location->id};
    const vr_cu_result result = vr_sim_graph_memory_make(sim, work->device, params->size_bytes, &work->memory, &address);
    if (result == VR_CU_SUCCESS) params->address = address;
    return result;
}

static bool allocates(const struct vr_sim *sim, uint32_t graph, uint32_t memory) {
    const struct vr_sim_nodes *nodes = &vr_sim_graph_at(sim, graph)->nodes;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct vr_sim_work *work = &vr_sim_node_find(sim, nodes->items[i])->work;
        if (work->type == VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC && work->memory == memory) return true;
    }
    return false;
}

// Makes a free node. A graph may free only its own allocations, each once.
static vr_cu_result free_work(struct vr_sim *sim, uint32_t graph, uint64_t address, struct vr_sim_work *work) {
    struct vr_sim_graph_memory *memory = vr_sim_graph_memory_at(sim, address);
    if (memory == NULL || memory->freed_here) return VR_CU_INVALID_VALUE;
    const uint32_t index = vr_sim_slots_index(&sim->graph_memories, memory);
    if (!allocates(sim, graph, index)) return VR_CU_INVALID_VALUE;
    *work = (struct vr_sim_work){.type = VR_CU_GRAPH_NODE_TYPE_MEM_FREE, .device = memory->device, .memory = index};
    memory->freed_here = true;
    return VR_CU_SUCCESS;
}

struct node_place { // where to add a new node
    uint64_t *node;
    uint64_t graph;
    const uint64_t *dependencies;
    uint64_t count;
};

static vr_cu_result add_alloc(struct vr_sim *sim, const struct node_place *place, uint32_t graph, struct vr_cu_alloc_node *params) {
    struct vr_sim_work work;
    vr_cu_result result = alloc_work(sim, params, &work);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_graph_memory_reference(sim, &work);
    result = vr_sim_node_add(sim, graph, &work, place->dependencies, (size_t)place->count, place->node);
    vr_sim_graph_memory_unreference(sim, &work); // frees the memory if the node took no reference
    return result;
}

static vr_cu_result add_free(struct vr_sim *sim, const struct node_place *place, uint32_t graph, uint64_t address) {
    struct vr_sim_work work;
    vr_cu_result result = free_work(sim, graph, address, &work);
    if (result != VR_CU_SUCCESS) return result;
    result = vr_sim_node_add(sim, graph, &work, place->dependencies, (size_t)place->count, place->node);
    if (result != VR_CU_SUCCESS) vr_sim_graph_memory_at(sim, address)->freed_here = false;
    return result;
}

static vr_cu_result add_condition(struct vr_sim *sim, const struct node_place *place, uint32_t graph,
                                  struct vr_cu_conditional_node *params) {
    struct vr_sim_work work = {.type = VR_CU_GRAPH_NODE_TYPE_CONDITIONAL};
    vr_cu_result result = vr_sim_condition_make(sim, place->graph, params, &work.payload);
    if (result != VR_CU_SUCCESS) return result;
    result = vr_sim_node_add(sim, graph, &work, place->dependencies, (size_t)place->count, place->node);
    if (result == VR_CU_SUCCESS)
        params->bodies = ((struct vr_sim_condition_payload *)(void *)work.payload)->bodies;
    else
        vr_sim_bodies_end(sim, work.payload);
    vr_sim_payload_drop(work.payload);
    return result;
}

static vr_cu_result add_node(struct vr_sim *sim, const struct node_place *place, struct vr_cu_node_params *params) {
    const struct vr_sim_graph *found = vr_sim_slots_find(&sim->graphs, place->graph);
    if (place->node == NULL || found == NULL || params == NULL) return VR_CU_INVALID_VALUE;
    const uint32_t graph = vr_sim_slots_index(&sim->graphs, found);
    if (!vr_sim_are_nodes_of(sim, graph, place->dependencies, (size_t)place->count)) return VR_CU_INVALID_VALUE;
    switch (params->type) {
    case VR_CU_GRAPH_NODE_TYPE_GRAPH:
        return vr_sim_graph_add_child_graph_node(sim, place->node, place->graph, place->dependencies, place->count, params->of.child.graph);
    case VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC: return add_alloc(sim, place, graph, &params->of.alloc);
    case VR_CU_GRAPH_NODE_TYPE_MEM_FREE: return add_free(sim, place, graph, params->of.freed);
    case VR_CU_GRAPH_NODE_TYPE_CONDITIONAL: return add_condition(sim, place, graph, &params->of.conditional);
    default: break;
    }
    struct vr_sim_work work;
    vr_cu_result result = vr_sim_params_work(sim, params, &work);
    if (result == VR_CU_SUCCESS) result = vr_sim_node_add(sim, graph, &work, place->dependencies, (size_t)place->count, place->node);
    vr_sim_payload_drop(work.payload);
    return result;
}

vr_cu_result vr_sim_graph_add_node(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count,
                                   struct vr_cu_node_params *params) {
    const struct node_place place = {node, graph, dependencies, count};
    return add_node(sim, &place, params);
}

// Edge data is ignored: an edge always joins whole nodes.
vr_cu_result vr_sim_graph_add_node_v2(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies,
                                      const struct vr_cu_edge_data *edges, uint64_t count, struct vr_cu_node_params *params) {
    (void)edges;
    return vr_sim_graph_add_node(sim, node, graph, dependencies, count, params);
}

vr_cu_result vr_sim_graph_add_node_v3(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies,
                                      const struct vr_cu_edge_data *edges, uint64_t count, struct vr_cu_node_params *params) {
    (void)edges;
    return vr_sim_graph_add_node(sim, node, graph, dependencies, count, params);
}

vr_cu_result vr_sim_graph_add_kernel_node_v2(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies,
                                             uint64_t count, const struct vr_cu_kernel_node *kernel) {
    if (kernel == NULL) return VR_CU_INVALID_VALUE;
    struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_KERNEL, .of.kernel = *kernel};
    return vr_sim_graph_add_node(sim, node, graph, dependencies, count, &params);
}

// The struct of the first version ends before `kernel`.
static struct vr_cu_kernel_node first_version(const struct vr_cu_kernel_node *kernel) {
    struct vr_cu_kernel_node whole = {0};
    memcpy(&whole, kernel, offsetof(struct vr_cu_kernel_node, kernel));
    return whole;
}

vr_cu_result vr_sim_graph_add_kernel_node(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count,
                                          const struct vr_cu_kernel_node *kernel) {
    if (kernel == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_cu_kernel_node whole = first_version(kernel);
    return vr_sim_graph_add_kernel_node_v2(sim, node, graph, dependencies, count, &whole);
}

vr_cu_result vr_sim_graph_add_mem_alloc_node(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies,
                                             uint64_t count, struct vr_cu_alloc_node *alloc) {
    if (alloc == NULL) return VR_CU_INVALID_VALUE;
    struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC, .of.alloc = *alloc};
    const vr_cu_result result = vr_sim_graph_add_node(sim, node, graph, dependencies, count, &params);
    if (result == VR_CU_SUCCESS) alloc->address = params.of.alloc.address;
    return result;
}

vr_cu_result vr_sim_graph_add_mem_free_node(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies,
                                            uint64_t count, uint64_t address) {
    struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_MEM_FREE, .of.freed = address};
    return vr_sim_graph_add_node(sim, node, graph, dependencies, count, &params);
}

vr_cu_result vr_sim_graph_add_batch_mem_op_node(struct vr_sim *sim, uint64_t *node, uint64_t graph, const uint64_t *dependencies,
                                                uint64_t count, const struct vr_cu_batch_node *batch) {
    if (batch == NULL) return VR_CU_INVALID_VALUE;
    struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .of.batch = *batch};
    return vr_sim_graph_add_node(sim, node, graph, dependencies, count, &params);
}

// --- getting parameters ---------------------------------------------------------------------------------------------

vr_cu_result vr_sim_graph_node_get_params(struct vr_sim *sim, uint64_t node, struct vr_cu_node_params *params) {
    const struct vr_sim_node *found = vr_sim_node_find(sim, node);
    return found == NULL || params == NULL ? VR_CU_INVALID_VALUE : vr_sim_params_of(sim, found, params);
}

// Gets the parameters of a node, which must be of the given kind.
static vr_cu_result read_node_params(struct vr_sim *sim, uint64_t node, int type, const void *out, struct vr_cu_node_params *params) {
    const struct vr_sim_node *found = vr_sim_node_find(sim, node);
    if (found == NULL || out == NULL || found->work.type != type) return VR_CU_INVALID_VALUE;
    return vr_sim_params_of(sim, found, params);
}

// clang-format off
#define ASK(name, kind, type, field)                                                                                                       \
    vr_cu_result vr_sim_graph_##name(struct vr_sim *sim, uint64_t node, type *out) {                                                      \
        struct vr_cu_node_params params;                                                                                                   \
        const vr_cu_result result = read_node_params(sim, node, VR_CU_GRAPH_NODE_TYPE_##kind, out, &params);                                            \
        if (result == VR_CU_SUCCESS) *out = params.of.field;                                                                               \
        return result;                                                                                                                     \
    }
ASK(kernel_node_get_params_v2, KERNEL, struct vr_cu_kernel_node, kernel)
ASK(memcpy_node_get_params, MEMCPY, struct vr_cu_memcpy3d, memcpy.copy)
ASK(memset_node_get_params, MEMSET, struct vr_cu_memset_node, memset.set)
ASK(host_node_get_params, HOST, struct vr_cu_host_node, host.call)
ASK(child_graph_node_get_graph, GRAPH, uint64_t, child.graph)
ASK(event_record_node_get_event, EVENT_RECORD, uint64_t, event.event)
ASK(event_wait_node_get_event, WAIT_EVENT, uint64_t, event.event)
ASK(mem_alloc_node_get_params, MEM_ALLOC, struct vr_cu_alloc_node, alloc)
ASK(mem_free_node_get_params, MEM_FREE, uint64_t, freed)
ASK(batch_mem_op_node_get_params, BATCH_MEM_OP, struct vr_cu_batch_node, batch)
// clang-format on

vr_cu_result vr_sim_graph_kernel_node_get_params(struct vr_sim *sim, uint64_t node, struct vr_cu_kernel_node *out) {
    struct vr_cu_node_params params;
    const vr_cu_result result = read_node_params(sim, node, VR_CU_GRAPH_NODE_TYPE_KERNEL, out, &params);
    if (result == VR_CU_SUCCESS) memcpy(out, &params.of.kernel, offsetof(struct vr_cu_kernel_node, kernel));
    return result;
}

vr_cu_result vr_sim_graph_node_get_containing_graph(struct vr_sim *sim, uint64_t node, uint64_t *graph) {
    const struct vr_sim_node *found = vr_sim_node_find(sim, node);
    if (found == NULL || graph == NULL) return VR_CU_INVALID_VALUE;
    *graph = vr_sim_slots_handle(&sim->graphs, found->graph);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_node_get_local_id(struct vr_sim *sim, uint64_t node, unsigned *id) {
    const struct vr_sim_node *found = vr_sim_node_find(sim, node);
    if (found == NULL || id == NULL) return VR_CU_INVALID_VALUE;
    *id = found->place;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_node_get_tools_id(struct vr_sim *sim, uint64_t node, uint64_t *id) {
    const struct vr_sim_node *found = vr_sim_node_find(sim, node);
    if (found == NULL || id == NULL) return VR_CU_INVALID_VALUE;
    *id = (uint64_t)found->graph << 32 | found->place;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_graph_get_id(struct vr_sim *sim, uint64_t graph, unsigned *id) {
    const struct vr_sim_graph *found = vr_sim_slots_find(&sim->graphs, graph);
    if (found == NULL || id == NULL) return VR_CU_INVALID_VALUE;
    *id = vr_sim_slots_index(&sim->graphs, found);
    return VR_CU_SUCCESS;
}

// --- setting parameters ---------------------------------------------------------------------------------------------

// Replaces a node's work by work of the same kind.
static void replace_work(struct vr_sim_work *old, const struct vr_sim_work *work) {
    vr_sim_payload_keep(work->payload);
    vr_sim_payload_drop(old->payload);
    *old = *work;
}

vr_cu_result vr_sim_graph_node_set_params(struct vr_sim *sim, uint64_t node, const struct vr_cu_node_params *params) {
    const struct vr_sim_node *found = vr_sim_node_find(sim, node);
    if (found == NULL || params == NULL || params->type != found->work.type) return VR_CU_INVALID_VALUE;
    struct vr_sim_work work;
    const vr_cu_result result = vr_sim_params_work(sim, params, &work);
    if (result == VR_CU_SUCCESS) {
        work.cost_ns = vr_sim_work_cost_ns(sim, &work);
        replace_work(&vr_sim_node_find(sim, node)->work, &work);
    }
    vr_sim_payload_drop(work.payload);
    return result;
}

vr_cu_result vr_sim_graph_node_set_params_v2(struct vr_sim *sim, uint64_t node, const struct vr_cu_node_params *params) {
    return vr_sim_graph_node_set_params(sim, node, params);
}

// clang-format off
#define SET(name, kind, value_type, field)                                                                                                       \
    vr_cu_result vr_sim_graph_##name(struct vr_sim *sim, uint64_t node, const value_type *value) {                                              \
        struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_##kind};                                                          \
        if (value == NULL) return VR_CU_INVALID_VALUE;                                                                                     \
        params.of.field = *value;                                                                                                          \
        return vr_sim_graph_node_set_params(sim, node, &params);                                                                           \
    }
SET(kernel_node_set_params_v2, KERNEL, struct vr_cu_kernel_node, kernel)
SET(memcpy_node_set_params, MEMCPY, struct vr_cu_memcpy3d, memcpy.copy)
SET(memset_node_set_params, MEMSET, struct vr_cu_memset_node, memset.set)
SET(host_node_set_params, HOST, struct vr_cu_host_node, host.call)
SET(batch_mem_op_node_set_params, BATCH_MEM_OP, struct vr_cu_batch_node, batch)
// clang-format on

vr_cu_result vr_sim_graph_kernel_node_set_params(struct vr_sim *sim, uint64_t node, const struct vr_cu_kernel_node *value) {
    if (value == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_cu_kernel_node whole = first_version(value);
    return vr_sim_graph_kernel_node_set_params_v2(sim, node, &whole);
}

vr_cu_result vr_sim_graph_event_record_node_set_event(struct vr_sim *sim, uint64_t node, uint64_t event) {
    const struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_EVENT_RECORD, .of.event.event = event};
    return vr_sim_graph_node_set_params(sim, node, &params);
}

vr_cu_result vr_sim_graph_event_wait_node_set_event(struct vr_sim *sim, uint64_t node, uint64_t event) {
    const struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT, .of.event.event = event};
    return vr_sim_graph_node_set_params(sim, node, &params);
}
