// sim_arguments.h: the arguments of a launch.
#ifndef VR_SIM_MODULES_SIM_ARGUMENTS_H
#define VR_SIM_MODULES_SIM_ARGUMENTS_H

#include "sim/modules/sim_launch.h"

// A list of pointers, or one buffer; both NULL if there are no arguments.
struct vr_sim_arguments {
    void *const *list;
    const unsigned char *buffer;
    uint64_t buffer_bytes;
};

VR_INLINE struct vr_sim_arguments vr_sim_arguments_of(const struct vr_sim_launch *launch) {
    struct vr_sim_arguments arguments = {.list = (void *const *)launch->parameters};
    for (unsigned i = 0; launch->extra != NULL && i < 8 && (uint64_t)(uintptr_t)launch->extra[i] != VR_CU_LAUNCH_PARAM_END; i += 2) {
        if ((uint64_t)(uintptr_t)launch->extra[i] == VR_CU_LAUNCH_PARAM_BUFFER_POINTER) arguments.buffer = launch->extra[i + 1];
        if ((uint64_t)(uintptr_t)launch->extra[i] == VR_CU_LAUNCH_PARAM_BUFFER_SIZE && launch->extra[i + 1] != NULL)
            arguments.buffer_bytes = *(const uint64_t *)launch->extra[i + 1];
    }
    return arguments;
}

// Returns the bytes of an argument, or NULL if there are none.
VR_INLINE const unsigned char *vr_sim_argument_at(const struct vr_sim_arguments *arguments, const struct vr_sim_kernel *kernel,
                                                  uint32_t index) {
    const struct vr_sim_parameter *parameter = &kernel->parameters[index];
    if (arguments->list != NULL) return arguments->list[index];
    const bool inside = arguments->buffer != NULL && (uint64_t)parameter->offset_bytes + parameter->size_bytes <= arguments->buffer_bytes;
    return inside ? arguments->buffer + parameter->offset_bytes : NULL;
}

// Reads an argument that is a number. Returns false if it is not one.
VR_INLINE bool vr_sim_argument_number(const struct vr_sim_arguments *arguments, const struct vr_sim_kernel *kernel, uint32_t index,
                                      uint64_t *number) {
    const uint32_t size = kernel->parameters[index].size_bytes;
    const unsigned char *from = vr_sim_argument_at(arguments, kernel, index);
    if (from == NULL || size > sizeof *number) return false;
    *number = 0;
    memcpy(number, from, size);
    return true;
}

#endif
