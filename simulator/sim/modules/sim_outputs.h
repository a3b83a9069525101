// sim_outputs.h: what a kernel writes, as far as its name and its arguments tell. Nothing is computed: what lay at an output before is not
// what a program would read there.
#ifndef VR_SIM_MODULES_SIM_OUTPUTS_H
#define VR_SIM_MODULES_SIM_OUTPUTS_H

#include "sim/modules/sim_image.h"

// Fills kernel->outputs and kernel->counts, once. The rules, the first that holds:
// 1. Kernels of a family that is known (`families` in sim_outputs.c) as their row says.
// 2. A pointer to const is an input, any other an output; so is what is in a struct named after a tensor (TensorInfo<const T>).
// 3. Addresses in other structs are inputs where rule 2 found an output, else outputs.
// 4. Where a name says nothing (Triton, extern "C"), every argument of eight bytes that is an address is an output: what a program reads
//    back of a kernel's arguments is mostly what the kernel made.
//    A small fill of late stays to be read (vr_sim_content_pass()): a program fills a count right before a kernel updates it in place.
// False when the host has no memory.
bool vr_sim_kernel_find_outputs(struct vr_sim_kernel *kernel);

#endif
