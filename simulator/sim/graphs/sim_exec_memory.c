// sim_exec_memory.c: the device memory that the driver takes for an executable graph, from its instantiation to its destruction. Programs
// see it only as less free memory.
//
// NVIDIA documents no figure. With driver 470 a kernel took 64 KiB (NVIDIA's developer forum, topic 244901, 2023); one of its engineers
// counts about 10 KB (NVIDIA/cccl, pull request 3768, 2025). The sizes here are the nearest ones to what vLLM 0.19 printed for seven models
// on an H100, beyond the pools of their graphs (docs/fit.md): 26 to 42 graphs and 520 to 1,000 kernels for each of 51 batch sizes.
#include "sim/graphs/sim_graphs.h"

enum { GRAPH_BYTES = 16 * 1024, KERNEL_BYTES = 16 * 1024 };

// Counts the kernels, and finds the device of the first one.
static uint64_t kernels_of(const struct vr_sim_exec *exec, uint32_t *device) {
    uint64_t count = 0;
    for (size_t i = 0; i < exec->step_count; i++) {
        if (exec->steps[i].work.type != VR_CU_GRAPH_NODE_TYPE_KERNEL) continue;
        if (count++ == 0) *device = exec->steps[i].work.device;
    }
    return count;
}

bool vr_sim_exec_take_memory(struct vr_sim *sim, struct vr_sim_exec *exec) {
    const uint64_t kernels = kernels_of(exec, &exec->device);
    struct vr_sim_device *device = &sim->devices[exec->device];
    if (kernels == 0 || device->context_bytes == 0) return true; // a device whose contexts take no memory has no driver that takes any
    const uint64_t bytes = GRAPH_BYTES + kernels * KERNEL_BYTES;
    if (!vr_sim_has_room(device, bytes)) return false;
    device->used_bytes += bytes;
    exec->driver_bytes = bytes;
    return true;
}

void vr_sim_exec_give_memory(struct vr_sim *sim, struct vr_sim_exec *exec) {
    sim->devices[exec->device].used_bytes -= exec->driver_bytes;
    exec->driver_bytes = 0;
}

uint64_t vr_sim_exec_memory_bytes(const struct vr_sim *sim, uint32_t device) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sim->execs.used; i++) {
        const struct vr_sim_exec *exec = (const struct vr_sim_exec *)(const void *)vr_sim_slots_item(&sim->execs, i);
        if (exec->slot.live && exec->device == device) sum += exec->driver_bytes;
    }
    return sum;
}
