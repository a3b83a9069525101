// sim_memory_ops.h: writes of values by streams, and streams that wait for values. What waits is held: nothing behind it is done until the
// value is there, which whoever asks or waits finds out. Bytes of copies behind a wait move at their call all the same, and host functions
// are called.
#ifndef VR_SIM_STREAMS_SIM_MEMORY_OPS_H
#define VR_SIM_STREAMS_SIM_MEMORY_OPS_H

#include "sim/graphs/sim_graphs.h"

// Operations as a node keeps them.
struct vr_sim_ops_payload {
    struct vr_sim_payload head;
    uint64_t context;
    uint32_t count, flags;
    struct vr_cu_mem_op ops[];
};

// What an operation writes, in works of 4 bytes each: how many, 0 for one that writes nothing. (sim_work.c)
uint32_t vr_sim_op_works(const struct vr_cu_mem_op *op, uint32_t device, struct vr_sim_work works[2]);
// A copy of operations with one reference. INVALID_VALUE for those that make no sense, OUT_OF_MEMORY.
vr_cu_result vr_sim_ops_keep(const struct vr_cu_mem_op *ops, uint32_t count, uint32_t flags, uint64_t context,
                             struct vr_sim_payload **made);
// Whether the device may use the memory that they read and write.
bool vr_sim_ops_are_valid(const struct vr_sim *sim, const struct vr_cu_mem_op *ops, uint32_t count, uint32_t device);

#endif
