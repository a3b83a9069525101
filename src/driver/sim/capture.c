// capture.c: stream capture. No stream of this simulator captures yet.
#include "driver/sim/sim.h"

vr_cu_result vr_sim_stream_begin_capture(struct vr_sim *sim, uint64_t stream, int mode) {
    (void)sim, (void)stream, (void)mode;
    return VR_CU_NOT_SUPPORTED;
}
vr_cu_result vr_sim_stream_end_capture(struct vr_sim *sim, uint64_t stream, uint64_t *graph) {
    (void)sim, (void)stream, (void)graph;
    return VR_CU_NOT_SUPPORTED;
}
vr_cu_result vr_sim_stream_is_capturing(struct vr_sim *sim, uint64_t stream, int *status) {
    (void)sim, (void)stream;
    *status = VR_CU_STREAM_CAPTURE_STATUS_NONE;
    return VR_CU_SUCCESS;
}
vr_cu_result vr_sim_stream_get_capture_info(struct vr_sim *sim, uint64_t stream, int *status, uint64_t *id, uint64_t *graph,
                                            const uint64_t **dependencies, uint64_t *count) {
    (void)sim, (void)stream, (void)id, (void)graph, (void)dependencies, (void)count;
    *status = VR_CU_STREAM_CAPTURE_STATUS_NONE;
    return VR_CU_SUCCESS;
}
vr_cu_result vr_sim_thread_exchange_capture_mode(struct vr_sim *sim, int *mode) {
    (void)sim, (void)mode;
    return VR_CU_NOT_SUPPORTED;
}
vr_cu_result vr_sim_graph_node_get_dependencies(struct vr_sim *sim, uint64_t node, uint64_t *dependencies, uint64_t *count) {
    (void)sim, (void)node, (void)dependencies, (void)count;
    return VR_CU_INVALID_VALUE;
}
