// sim_signature.h: what the parameters of a kernel are, read from its mangled name (the Itanium C++ ABI, which nvcc keeps to).
#ifndef VR_SIM_MODULES_SIM_SIGNATURE_H
#define VR_SIM_MODULES_SIM_SIGNATURE_H

#include "base/base.h"

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

// The types of a function's parameters; SIZE_MAX when the name is none that is mangled, or has forms that are not known here.
size_t vr_sim_signature(const char *name, struct vr_sim_mangled_type types[VR_SIM_PARAMETERS_MOST]);

#endif
