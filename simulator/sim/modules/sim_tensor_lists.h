// sim_tensor_lists.h: the tensors of PyTorch's kernels for lists of tensors, which optimizers and torch._foreach_ functions launch.
#ifndef VR_SIM_MODULES_SIM_TENSOR_LISTS_H
#define VR_SIM_MODULES_SIM_TENSOR_LISTS_H

#include "check/check.h"

// Memory that a launch uses, in an array that grows.
struct vr_sim_accesses {
    struct vr_check_access *items;
    size_t count, items_capacity;
};

// Adds an access. If the host is out of memory it is left out, which can only lose a finding.
void vr_sim_accesses_add(struct vr_sim_accesses *accesses, struct vr_check_access access);

// Adds what the tensors of a launch are used for. `argument` is the kernel's first argument, of argument_bytes; blocks: of the launch;
// least: size of the smallest element that the kernel's functor may have. Returns false, and adds nothing, for other kernels and unknown
// layouts.
bool vr_sim_tensor_lists(const char *name, const unsigned char *argument, uint32_t argument_bytes, uint32_t blocks, uint32_t least,
                         struct vr_sim_accesses *accesses);

#endif
