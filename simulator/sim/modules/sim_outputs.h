// sim_outputs.h: what the parameters of a kernel are, read from its mangled name (the Itanium C++ ABI, which nvcc keeps to).
#ifndef VR_SIM_MODULES_SIM_OUTPUTS_H
#define VR_SIM_MODULES_SIM_OUTPUTS_H

#include "base/base.h"
#include "sim/modules/sim_image.h"

// A parameter's type, as far as it matters who writes what it points at.
struct vr_sim_mangled_type {
    bool pointer;     // and nothing around it
    bool to_constant; // a pointer to what is const
    bool constant;
    bool pack;                 // any number of parameters
    const char *template_text; // of a template that is a substitution: where it is spelled
    size_t template_length;
    const char *text; // as it is spelled where it occurs first; of a template's parameter what stands for it
    size_t length;
};

#define VR_SIM_PARAMETERS_MOST 64

// The types of a function's parameters; SIZE_MAX if the name is not mangled, or has forms that are not known here.
size_t vr_sim_signature(const char *name, struct vr_sim_mangled_type types[VR_SIM_PARAMETERS_MOST]);

// ---- What a kernel writes, as far as its name and its arguments tell. Nothing is computed: what lay at an output before is not what a
// program would read there.

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
