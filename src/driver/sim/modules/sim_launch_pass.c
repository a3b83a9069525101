// sim_launch_pass.c: the addresses that a launch gives a kernel: what lies there may be the kernel's from then on.
#include "driver/sim/modules/sim_launch.h"

// Every eight bytes of an argument, a struct as well, may be an address.
static void pass_words(struct vr_sim *sim, const void *value, uint64_t size_bytes) {
    const unsigned char *bytes = value;
    for (uint64_t at = 0; at + sizeof(uint64_t) <= size_bytes; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes + at, sizeof word);
        vr_sim_transfer_pass(sim, word);
    }
}

static void pass_buffer(struct vr_sim *sim, void *const *extra) {
    const void *buffer = NULL;
    const uint64_t *length = NULL;
    for (unsigned i = 0; i < 8 && (uint64_t)(uintptr_t)extra[i] != VR_CU_LAUNCH_PARAM_END; i += 2) {
        if ((uint64_t)(uintptr_t)extra[i] == VR_CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[i + 1];
        if ((uint64_t)(uintptr_t)extra[i] == VR_CU_LAUNCH_PARAM_BUFFER_SIZE) length = extra[i + 1];
    }
    if (buffer != NULL && length != NULL && *length <= VR_SIM_PAGE_BYTES) pass_words(sim, buffer, *length);
}

void vr_sim_launch_pass(struct vr_sim *sim, const struct vr_sim_launch *launch) {
    const struct vr_sim_function *function = vr_sim_function_find(sim, launch->function);
    if (sim->on_read == NULL || !vr_sim_keeps(sim) || function == NULL) return;
    if (launch->extra != NULL) pass_buffer(sim, launch->extra);
    const struct vr_sim_kernel *kernel = vr_sim_function_kernel(function);
    if (launch->parameters == NULL || !kernel->has_parameters) return; // how long they are, only the code says
    for (size_t i = 0; i < kernel->parameter_count; i++)
        if (launch->parameters[i] != NULL) pass_words(sim, launch->parameters[i], kernel->parameters[i].size_bytes);
}
