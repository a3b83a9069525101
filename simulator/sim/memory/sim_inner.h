// sim_inner.h: device memory that a driver takes inside a context for objects of the program: variables of modules, arrays. It lies in the
// device's address space, is accounted, and ends with what it belongs to.
#ifndef VR_SIM_MEMORY_SIM_INNER_H
#define VR_SIM_MEMORY_SIM_INNER_H

#include "sim/sim.h"

// OUT_OF_MEMORY; size_bytes is not 0.
vr_cu_result vr_sim_inner_alloc(struct vr_sim *sim, uint64_t context, uint64_t size_bytes, uint64_t *address);
void vr_sim_inner_free(struct vr_sim *sim, uint64_t address);

#endif
