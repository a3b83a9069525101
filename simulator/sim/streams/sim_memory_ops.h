// sim_memory_ops.h: streams that write values to memory or wait for values. A waiting stream is held: its later work is not complete until
// the value is written, which is checked whenever the stream is queried or waited for. Bytes of later copies still move during their call,
// and host functions are called.
#ifndef VR_SIM_STREAMS_SIM_MEMORY_OPS_H
#define VR_SIM_STREAMS_SIM_MEMORY_OPS_H

#include "sim/graphs/sim_graphs.h"

// Operations as stored in a graph node.
struct vr_sim_ops_payload {
    struct vr_sim_payload head;
    uint64_t context;
    uint32_t count, flags;
    struct vr_cu_mem_op ops[];
};

// Makes the work of an operation, in sets of 4 bytes, and returns their number: 0 if it writes nothing. (sim_work.c)
uint32_t vr_sim_op_works(const struct vr_cu_mem_op *op, uint32_t device, struct vr_sim_work works[2]);
// Copies the operations into a payload with one reference. INVALID_VALUE for invalid operations, OUT_OF_MEMORY.
vr_cu_result vr_sim_ops_keep(const struct vr_cu_mem_op *ops, uint32_t count, uint32_t flags, uint64_t context,
                             struct vr_sim_payload **made);
// Returns whether the device can access the memory that the operations use.
bool vr_sim_ops_are_valid(const struct vr_sim *sim, const struct vr_cu_mem_op *ops, uint32_t count, uint32_t device);

#endif
