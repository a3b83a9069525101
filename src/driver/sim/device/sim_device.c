// sim_device.c: what a driver says of itself and of its devices.
#include <stdio.h>

#include "driver/sim/sim.h"

bool vr_sim_is_device(const struct vr_sim *sim, int device) { return device >= 0 && (uint32_t)device < sim->options.device_count; }

vr_cu_result vr_sim_device_get_count(struct vr_sim *sim, int *count) {
    if (count == NULL) return VR_CU_INVALID_VALUE;
    *count = (int)sim->options.device_count;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_device_get_name(struct vr_sim *sim, char *name, int length, int device) {
    if (name == NULL || length <= 0) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    (void)snprintf(name, (size_t)length, "vram simulated device %d", device);
    return VR_CU_SUCCESS;
}

// What a program may want to know before it uses memory, streams and host memory. Everything else is 0: not there.
static const struct {
    int attribute, value;
} attributes[] = {
    {VR_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {VR_CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {VR_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1},
    {VR_CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {VR_CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
    {VR_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {VR_CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {VR_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
};

vr_cu_result vr_sim_device_get_attribute(struct vr_sim *sim, int *value, int attribute, int device) {
    if (value == NULL || attribute <= 0 || attribute > VR_CU_DEVICE_ATTRIBUTE_LAST) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    int found = 0;
    for (size_t i = 0; i < VR_COUNT_OF(attributes); i++)
        if (attributes[i].attribute == attribute) found = attributes[i].value;
    if (attribute == VR_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) found = sim->options.backed;
    *value = found;
    return VR_CU_SUCCESS;
}

// The same in every process: the device of one ordinal is one device.
vr_cu_result vr_sim_device_get_uuid(struct vr_sim *sim, unsigned char *uuid, int device) {
    static const char name[] = "vram simulated "; // 15 characters
    if (uuid == NULL) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    memcpy(uuid, name, sizeof name - 1);
    uuid[sizeof name - 1] = (unsigned char)device;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_device_total_mem(struct vr_sim *sim, uint64_t *size_bytes, int device) {
    if (size_bytes == NULL) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    *size_bytes = sim->devices[device].memory_bytes;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_driver_get_version(struct vr_sim *sim, int *version) {
    if (version == NULL) return VR_CU_INVALID_VALUE;
    *version = (int)sim->options.driver_version;
    return VR_CU_SUCCESS;
}
