// sim_capture_memory.c: requests and frees of memory by streams that capture: they become nodes of the graph.
#include "sim/graphs/sim_graphs.h"

vr_cu_result vr_sim_capture_alloc(struct vr_sim *sim, struct vr_sim_stream *stream, uint32_t device, uint64_t size_bytes,
                                  uint64_t *address) {
    uint32_t index;
    uint64_t made;
    vr_cu_result result = vr_sim_graph_memory_make(sim, device, size_bytes, &index, &made);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_work work = {.type = VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC, .device = device, .memory = index};
    vr_sim_graph_memory_reference(sim, &work);
    result = vr_sim_capture_add(sim, stream, &work); // the node takes a reference of its own
    vr_sim_graph_memory_unreference(sim, &work);     // where it did not, the memory goes
    if (result == VR_CU_SUCCESS) *address = made;
    return result;
}

// Does the graph that the stream captures allocate it?
static bool is_of_capture(const struct vr_sim *sim, const struct vr_sim_stream *stream, uint64_t memory) {
    const struct vr_sim_graph *graph = vr_sim_slots_find(&sim->graphs, vr_sim_capture_find(sim, stream->capture)->graph);
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct vr_sim_work *work = &vr_sim_node_find(sim, graph->nodes.items[i])->work;
        if (work->type == VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC && work->memory == memory) return true;
    }
    return false;
}

// A graph frees what it allocates, once, and nothing else.
vr_cu_result vr_sim_capture_free(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t address) {
    struct vr_sim_graph_memory *memory = vr_sim_graph_memory_at(sim, address);
    if (memory == NULL || memory->freed_here) return VR_CU_INVALID_VALUE;
    const uint32_t index = vr_sim_slots_index(&sim->graph_memories, memory);
    if (!is_of_capture(sim, stream, index)) return VR_CU_INVALID_VALUE;
    const struct vr_sim_work work = {.type = VR_CU_GRAPH_NODE_TYPE_MEM_FREE, .device = memory->device, .memory = index};
    const vr_cu_result result = vr_sim_capture_add(sim, stream, &work);
    if (result == VR_CU_SUCCESS) memory->freed_here = true;
    return result;
}
