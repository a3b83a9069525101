// sim_launch.h: a launch of a kernel, and the copy of it in a graph's node.
#ifndef VR_SIM_MODULES_SIM_LAUNCH_H
#define VR_SIM_MODULES_SIM_LAUNCH_H

#include "sim/modules/sim_modules.h"

// Arguments of a launch call. The pointers are the caller's.
struct vr_sim_launch {
    uint64_t function;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    void **parameters, **extra;
    const struct vr_cu_launch_attribute *attributes;
    uint32_t attribute_count;
    bool cooperative;
    bool computed; // of a node: the host computes the kernel's outputs at each launch of the graph (streams/sim_callbacks.h)
};

// A launch in a node, with copies of all of its data.
struct vr_sim_kernel_payload {
    struct vr_sim_payload head;
    struct vr_sim_launch launch; // its pointers point into the memory after this struct
    bool has_parameters;         // the parameters were copied: the code gives their sizes, or they came in one buffer
    uint64_t buffer_bytes;       // size of the buffer passed in `extra`
    void *extra_list[5];
};

// Makes the work of a launch: checked, with its cost, and with a payload reference that the caller drops.
vr_cu_result vr_sim_launch_work(struct vr_sim *sim, uint32_t device, const struct vr_sim_launch *launch, struct vr_sim_work *work);

// Does the writes of a kernel that only fills memory, in the stream's order, if contents are kept apart from the addresses. OUT_OF_MEMORY
// if the host is out of memory.
vr_cu_result vr_sim_launch_fill(struct vr_sim *sim, struct vr_sim_stream *stream, uint32_t device, const struct vr_sim_launch *launch);

// Marks the contents of the kernel's outputs (sim_outputs.h) as unknown.
void vr_sim_launch_pass(struct vr_sim *sim, const struct vr_sim_launch *launch);

#endif
