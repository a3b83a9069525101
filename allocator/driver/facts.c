// facts.c: queries of a driver and its devices.
#include <stdio.h>

#include "driver/driver.h"
#include "os/os.h"

enum vram_status vram_driver_version(struct vram_driver *driver, int32_t *version) {
    VR_REQUIRE(driver && version);
    int found = 0;
    if (vr_cu(driver, driver_get_version, &found) != VR_CU_SUCCESS) return VRAM_DRIVER;
    *version = found;
    return VRAM_OK;
}

enum vram_status vram_driver_devices(struct vram_driver *driver, uint32_t *count) {
    VR_REQUIRE(driver && count);
    int found = 0;
    if (vr_cu(driver, device_get_count, &found) != VR_CU_SUCCESS) return VRAM_DRIVER;
    *count = found < 0 ? 0 : (uint32_t)found;
    return VRAM_OK;
}

// Returns 0 for an attribute that the driver does not know: an older driver lacks the feature.
static int32_t attribute(struct vram_driver *driver, int device, int number) {
    int value = 0;
    return vr_cu(driver, device_get_attribute, &value, number, device) == VR_CU_SUCCESS ? value : 0;
}

static void ask_attributes(struct vram_driver *driver, int device, struct vram_device_facts *facts) {
    const struct {
        int number;
        bool *flag;
    } flags[] = {
        {VR_CU_DEVICE_ATTRIBUTE_INTEGRATED, &facts->integrated},
        {VR_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, &facts->virtual_memory},
        {VR_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, &facts->file_handles},
        {VR_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, &facts->fabric_handles},
        {VR_CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, &facts->rdma},
        {VR_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &facts->memory_pools},
        {VR_CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, &facts->managed},
        {VR_CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, &facts->multicast},
        {VR_CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, &facts->host_register},
        {VR_CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, &facts->unified_addresses},
    };
    for (size_t i = 0; i < VR_COUNT_OF(flags); i++) *flags[i].flag = attribute(driver, device, flags[i].number) != 0;
    facts->compute_major = attribute(driver, device, VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    facts->compute_minor = attribute(driver, device, VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    facts->multiprocessors = attribute(driver, device, VR_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

static uint64_t page_bytes(struct vram_driver *driver, int device) {
    const struct vr_cu_allocation_prop prop = {.type = VR_CU_MEM_ALLOCATION_TYPE_PINNED,
                                               .location = {.type = VR_CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    uint64_t bytes = 0;
    const vr_cu_result result = vr_cu(driver, mem_get_allocation_granularity, &bytes, &prop, VR_CU_MEM_GRANULARITY_MINIMUM);
    return result == VR_CU_SUCCESS ? bytes : 0;
}

static bool ask_available(struct vram_driver *driver, int device, uint64_t *bytes) {
    return driver->host_available != NULL ? driver->host_available(driver, device, bytes) : vr_os_available_memory(bytes);
}

vr_cu_result vr_driver_memory_info(struct vram_driver *driver, uint64_t *free_bytes, uint64_t *total_bytes) {
    const vr_cu_result result = vr_cu(driver, mem_get_info, free_bytes, total_bytes);
    int device = 0;
    uint64_t available = 0;
    if (result != VR_CU_SUCCESS || vr_cu(driver, ctx_get_device, &device) != VR_CU_SUCCESS) return result;
    if (attribute(driver, device, VR_CU_DEVICE_ATTRIBUTE_INTEGRATED) == 0 || !ask_available(driver, device, &available)) return result;
    if (available > *total_bytes) available = *total_bytes;
    if (available > *free_bytes) *free_bytes = available;
    return result;
}

static vr_cu_result ask_free(struct vram_driver *driver, int device, struct vram_device_facts *facts) {
    uint64_t context = 0, before = 0, total = 0;
    vr_cu_result result = vr_cu(driver, primary_ctx_retain, &context, device);
    if (result != VR_CU_SUCCESS) return result;
    (void)vr_cu(driver, ctx_get_current, &before);
    result = vr_cu(driver, ctx_set_current, context);
    if (result == VR_CU_SUCCESS) result = vr_driver_memory_info(driver, &facts->free_bytes, &total);
    if (facts->virtual_memory) facts->granularity_bytes = page_bytes(driver, device);
    VR_CU_INSIST(driver, ctx_set_current, before);
    VR_CU_INSIST(driver, primary_ctx_release, device);
    return result;
}

enum vram_status vram_driver_device_facts(struct vram_driver *driver, uint32_t device, struct vram_device_facts *facts,
                                          struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, driver && facts);
    uint32_t count = 0;
    if (vram_driver_devices(driver, &count) != VRAM_OK)
        return vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "cannot query the number of devices");
    if (device >= count)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "device %u does not exist; the number of devices is %u", device,
                       count);
    struct vram_device_facts found = {.name = ""};
    vr_cu_result result = vr_cu(driver, device_get_name, found.name, (int)sizeof found.name, (int)device);
    found.name[sizeof found.name - 1] = '\0';
    if (result == VR_CU_SUCCESS) result = vr_cu(driver, device_total_mem, &found.total_bytes, (int)device);
    ask_attributes(driver, (int)device, &found);
    if (result == VR_CU_SUCCESS) result = ask_free(driver, (int)device, &found);
    if (result != VR_CU_SUCCESS) {
        const enum vram_status status =
            vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "cannot query device %u: %s", device, vr_cu_result_name(result));
        if (error != NULL) error->driver_result = (int32_t)result;
        return status;
    }
    *facts = found;
    return VRAM_OK;
}

enum vram_status vram_driver_can_access_peer(struct vram_driver *driver, uint32_t device, uint32_t peer, bool *can) {
    VR_REQUIRE(driver && can);
    int answer = 0;
    const vr_cu_result result = vr_cu(driver, device_can_access_peer, &answer, (int)device, (int)peer);
    if (result == VR_CU_INVALID_DEVICE) return VRAM_INVALID_ARGUMENT;
    if (result != VR_CU_SUCCESS) return VRAM_DRIVER;
    *can = answer != 0;
    return VRAM_OK;
}
