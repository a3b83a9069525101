// sim_work_time.c: how long work takes on the device, where it takes time.
#include "sim/streams/sim_streams.h"

// Bytes of a second: over the bus of a host, and inside of a device, where a copy reads and writes. Of the order of an A100's (PCIe 4.0
// x16, HBM2e); what matters is that large copies take long.
enum { BUS_BYTES_PER_NS = 25, DEVICE_BYTES_PER_NS = 700 };

static bool is_far(const struct vr_sim *sim, uint64_t address) {
    return !vr_sim_is_near(&sim->allocated, address) && !vr_sim_is_near(&sim->reserved, address);
}

uint64_t vr_sim_work_cost_ns(const struct vr_sim *sim, const struct vr_sim_work *work) {
    const bool copy = work->type == VR_CU_GRAPH_NODE_TYPE_MEMCPY;
    if (sim->options.kernel_ns == 0 || (!copy && work->type != VR_CU_GRAPH_NODE_TYPE_MEMSET)) return work->cost_ns;
    const bool bus = is_far(sim, work->to) || (copy && is_far(sim, work->from));
    uint64_t bytes;
    if (!vr_mul_u64(work->width_bytes, work->rows, &bytes) || !vr_mul_u64(bytes, work->planes, &bytes)) return work->cost_ns;
    return bytes / (bus ? BUS_BYTES_PER_NS : DEVICE_BYTES_PER_NS) + 1;
}
