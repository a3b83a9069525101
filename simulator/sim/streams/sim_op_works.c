// sim_op_works.c: a value written in memory as sets of four bytes.
#include "sim/streams/sim_memory_ops.h"

uint32_t vr_sim_op_works(const struct vr_cu_mem_op *op, uint32_t device, struct vr_sim_work works[2]) {
    const bool wide = op->operation == VR_CU_STREAM_MEM_OP_WRITE_VALUE_64;
    if (!wide && op->operation != VR_CU_STREAM_MEM_OP_WRITE_VALUE_32) return 0;
    for (uint32_t i = 0; i < (wide ? 2u : 1u); i++) // the lower half lies first
        works[i] = (struct vr_sim_work){.type = VR_CU_GRAPH_NODE_TYPE_MEMSET,
                                        .device = device,
                                        .to = op->address + 4 * i,
                                        .width_bytes = 4,
                                        .rows = 1,
                                        .planes = 1,
                                        .value = (uint32_t)(op->value >> (32 * i)),
                                        .element_bytes = 4};
    return wide ? 2 : 1;
}
