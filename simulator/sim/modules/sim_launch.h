// sim_launch.h: one launch of a kernel, and what a graph's node keeps of it.
#ifndef VR_SIM_MODULES_SIM_LAUNCH_H
#define VR_SIM_MODULES_SIM_LAUNCH_H

#include "sim/modules/sim_modules.h"

// What one call asks for. The pointers are the caller's.
struct vr_sim_launch {
    uint64_t function;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    void **parameters, **extra;
    const struct vr_cu_launch_attribute *attributes;
    uint32_t attribute_count;
    bool cooperative;
    bool computed; // of a node: the host computes what it writes, at each launch of the graph (streams/sim_callbacks.h)
};

// What a node keeps: the launch with copies of everything.
struct vr_sim_kernel_payload {
    struct vr_sim_payload head;
    struct vr_sim_launch launch; // its pointers point behind the struct
    bool has_parameters;         // they could be copied: the kernel's are known, or they came in one piece
    uint64_t buffer_bytes;       // of `extra`
    void *extra_list[5];
};

// A launch as a node's work: checked, priced and with a payload that the caller drops.
vr_cu_result vr_sim_launch_work(struct vr_sim *sim, uint32_t device, const struct vr_sim_launch *launch, struct vr_sim_work *work);

// --- sim_launch.c ----------------------------------------------------------------------------------------------

// What a kernel that only fills memory writes is written, in the stream's order, where content is kept apart from the addresses.
// OUT_OF_MEMORY of the host.
vr_cu_result vr_sim_launch_fill(struct vr_sim *sim, struct vr_sim_stream *stream, uint32_t device, const struct vr_sim_launch *launch);

// --- sim_launch.c ----------------------------------------------------------------------------------------------

// What device memory holds at the outputs of the kernel (sim_outputs.h) is not known from now on.
void vr_sim_launch_pass(struct vr_sim *sim, const struct vr_sim_launch *launch);

#endif
