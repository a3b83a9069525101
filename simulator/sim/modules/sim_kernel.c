// sim_kernel.c: functions and kernels as objects, and what a device allows them.
#include "sim/modules/sim_modules.h"

int vr_sim_device_value(struct vr_sim *sim, uint32_t device, int attribute, int otherwise) {
    int value = 0;
    if (vr_sim_device_get_attribute(sim, &value, attribute, (int)device) != VR_CU_SUCCESS) return otherwise;
    return value == 0 ? otherwise : value;
}

uint32_t vr_sim_architecture(struct vr_sim *sim, uint32_t device) {
    int major = 0, minor = 0;
    (void)vr_sim_device_get_attribute(sim, &major, VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, (int)device);
    (void)vr_sim_device_get_attribute(sim, &minor, VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, (int)device);
    return (uint32_t)(major * 10 + minor);
}

vr_cu_result vr_sim_function_make(struct vr_sim *sim, const struct vr_sim_function *function, uint64_t *handle) {
    uint32_t index;
    if (vr_sim_slots_take(&sim->functions, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_function *made = (struct vr_sim_function *)(void *)vr_sim_slots_item(&sim->functions, index);
    const struct vr_sim_slot slot = made->slot;
    const int32_t static_bytes = (int32_t)vr_sim_function_kernel(function)->shared_bytes;
    *made = *function;
    made->slot = slot;
    made->settings.carveout = -1;
    made->settings.dynamic_shared_bytes = static_bytes < VR_SIM_USUAL_SHARED_BYTES ? VR_SIM_USUAL_SHARED_BYTES - static_bytes : 0;
    *handle = vr_sim_slots_handle(&sim->functions, index);
    return VR_CU_SUCCESS;
}

struct vr_sim_function_settings *vr_sim_function_settings_of(const struct vr_sim *sim, struct vr_sim_function *function) {
    if (function->base == 0) return &function->settings;
    return &((struct vr_sim_function *)(void *)vr_sim_slots_item(&sim->functions, function->base - 1))->settings;
}

// A warp takes registers in units of 256, and warps come in fours (the four parts of a multiprocessor).
uint32_t vr_sim_function_most_threads(const struct vr_sim_function *function) {
    const struct vr_sim_kernel *kernel = vr_sim_function_kernel(function);
    const uint32_t of_warp = (uint32_t)vr_round_up((uint64_t)(kernel->registers == 0 ? 1 : kernel->registers) * 32, 256);
    const uint32_t by_registers = 65536 / of_warp / 4 * 4 * 32;
    const uint32_t bound = kernel->most_threads == 0 ? 1024 : kernel->most_threads;
    return by_registers < bound ? by_registers : bound;
}
