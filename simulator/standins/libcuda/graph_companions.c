// graph_companions.c: the functions of companions.def about captures and graphs: older binary interfaces, and those with edge data. An edge
// of this driver is the plain one: the whole of a node after the whole of another, whose data is all zero.
#include "libcuda.h"
#include "sim/graphs/sim_graphs.h"

static bool are_plain(const struct vr_cu_edge_data *edge_data, uint64_t count) {
    static const struct vr_cu_edge_data plain;
    for (uint64_t i = 0; edge_data != NULL && i < count; i++)
        if (memcmp(&edge_data[i], &plain, sizeof plain) != 0) return false;
    return true;
}

// The data of the edges that a question was answered with.
static vr_cu_result give_plain(vr_cu_result result, struct vr_cu_edge_data *edge_data, const uint64_t *count) {
    if (result == VR_CU_SUCCESS && edge_data != NULL) memset(edge_data, 0, (size_t)*count * sizeof *edge_data);
    return result;
}

vr_cu_result cuStreamGetCaptureInfo(uint64_t stream, int *status, uint64_t *id) {
    return cuStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}

vr_cu_result cuStreamGetCaptureInfo_v3(uint64_t stream, int *status, uint64_t *id, uint64_t *graph, const uint64_t **dependencies,
                                       const struct vr_cu_edge_data **edge_data, uint64_t *count) {
    if (edge_data == NULL) return cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
    struct vr_sim *sim;
    const vr_cu_result entered = vr_libcuda_enter(&sim);
    if (entered != VR_CU_SUCCESS) return entered;
    if (dependencies == NULL) return VR_CU_INVALID_VALUE;
    vr_mutex_lock(&sim->lock);
    vr_cu_result result = vr_sim_stream_get_capture_info(sim, stream, status, id, graph, dependencies, count);
    struct vr_sim_stream *found;
    if (result == VR_CU_SUCCESS && vr_sim_stream_find(sim, stream, &found) == VR_CU_SUCCESS && found->capture != 0) {
        *edge_data = vr_sim_capture_edges(found);
        if (*edge_data == NULL) result = VR_CU_OUT_OF_MEMORY;
    }
    vr_mutex_unlock(&sim->lock);
    return result;
}

vr_cu_result cuStreamUpdateCaptureDependencies_v2(uint64_t stream, const uint64_t *nodes, const struct vr_cu_edge_data *edge_data,
                                                  uint64_t count, unsigned flags) {
    if (!are_plain(edge_data, count)) return VR_CU_INVALID_VALUE;
    return cuStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}

vr_cu_result cuGraphGetEdges_v2(uint64_t graph, uint64_t *from, uint64_t *to, struct vr_cu_edge_data *edge_data, uint64_t *count) {
    if (edge_data != NULL && from == NULL) return VR_CU_INVALID_VALUE;
    return give_plain(cuGraphGetEdges(graph, from, to, count), edge_data, count);
}

vr_cu_result cuGraphNodeGetDependencies_v2(uint64_t node, uint64_t *dependencies, struct vr_cu_edge_data *edge_data, uint64_t *count) {
    if (edge_data != NULL && dependencies == NULL) return VR_CU_INVALID_VALUE;
    return give_plain(cuGraphNodeGetDependencies(node, dependencies, count), edge_data, count);
}

vr_cu_result cuGraphNodeGetDependentNodes_v2(uint64_t node, uint64_t *dependents, struct vr_cu_edge_data *edge_data, uint64_t *count) {
    if (edge_data != NULL && dependents == NULL) return VR_CU_INVALID_VALUE;
    return give_plain(cuGraphNodeGetDependentNodes(node, dependents, count), edge_data, count);
}

vr_cu_result cuGraphAddDependencies_v2(uint64_t graph, const uint64_t *from, const uint64_t *to, const struct vr_cu_edge_data *edge_data,
                                       uint64_t count) {
    return are_plain(edge_data, count) ? cuGraphAddDependencies(graph, from, to, count) : VR_CU_INVALID_VALUE;
}

vr_cu_result cuGraphRemoveDependencies_v2(uint64_t graph, const uint64_t *from, const uint64_t *to, const struct vr_cu_edge_data *edge_data,
                                          uint64_t count) {
    return are_plain(edge_data, count) ? cuGraphRemoveDependencies(graph, from, to, count) : VR_CU_INVALID_VALUE;
}
