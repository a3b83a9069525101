// sim_concatenation.h: the tensors of PyTorch's kernels for torch.cat().
#ifndef VR_SIM_MODULES_SIM_CONCATENATION_H
#define VR_SIM_MODULES_SIM_CONCATENATION_H

#include "sim/modules/sim_arguments.h"
#include "sim/modules/sim_tensor_lists.h"

// Adds what a launch of such a kernel reads and writes. inputs: the number of tensors, which is the second dimension of the grid. Returns
// false, and adds nothing, for other kernels and unknown layouts.
bool vr_sim_concatenation(const struct vr_sim_kernel *kernel, const struct vr_sim_arguments *arguments, uint32_t inputs,
                          struct vr_sim_accesses *accesses);

#endif
