// sim_outputs.h: types of a kernel's parameters, read from its mangled name (Itanium C++ ABI, as nvcc mangles), and the outputs they imply.
#ifndef VR_SIM_MODULES_SIM_OUTPUTS_H
#define VR_SIM_MODULES_SIM_OUTPUTS_H

#include "base/base.h"
#include "sim/modules/sim_image.h"

// The type of a parameter, as far as it tells whether the kernel writes through it.
struct vr_sim_mangled_type {
    bool pointer;     // it is a plain pointer
    bool to_constant; // it points to const
    bool constant;
    bool pack;                 // a pack of any number of parameters
    const char *template_text; // if its template is a substitution: the spelling of that
    size_t template_length;
    const char *text; // its first spelling in the name; for a template parameter, that of the argument
    size_t length;
};

#define VR_SIM_PARAMETERS_MOST 64

// Reads the types of a function's parameters and returns their number. SIZE_MAX if the name is not mangled or has unknown forms.
size_t vr_sim_signature(const char *name, struct vr_sim_mangled_type types[VR_SIM_PARAMETERS_MOST]);

// ---- Outputs of a kernel, as far as its name and arguments reveal them. Kernels are not executed, so older data at an output is not what
// a program would read there.

// Fills in kernel->outputs and kernel->counts, once. The first rule that applies:
// 1. Kernels of known families (`families` in sim_outputs.c): as their row says.
// 2. A pointer to const is an input, any other pointer an output; a struct named after a tensor is treated alike (TensorInfo<const T>).
// 3. Addresses in other structs are inputs if rule 2 found an output, else outputs. Those in the struct of an attention kernel
//    (FlashAttention, FlashInfer) are inputs.
// 4. If the name reveals nothing (Triton, extern "C"), every 8-byte argument that is an address is an output: what programs read back
//    from a kernel's arguments is mostly its results. A recent small fill stays readable (vr_sim_content_pass()), because programs zero
//    a counter right before a kernel updates it in place.
// A parameter behind which the kernel's code (vram_sim_kernel_code()) only reads is never an output.
// Returns false if the host is out of memory.
bool vr_sim_kernel_find_outputs(struct vr_sim_kernel *kernel);

// ---- Operands of a kernel: what it uses for certain. Unlike outputs they leave out what is only likely.

// Fills in kernel->operands, once.
// 1. Kernels of known families: the outputs that are written, and the inputs after them where their places are known. Those that index
//    use unknown elements of a tensor.
// 2. A pointer to const, or a tensor of const elements, is read. Any other one is written if the kernel has some of both or has only this
//    one; else it is used: whether it is written is unknown.
// 3. If the name reveals nothing, every 8-byte argument counts as a pointer that is used.
// Returns false if the host is out of memory.
bool vr_sim_kernel_find_operands(struct vr_sim_kernel *kernel);
// Returns the size of the smallest element that the functor in a kernel's name may have.
uint32_t vr_sim_least_element_bytes(const char *name);

#endif
