// Mapped memory as network cards and other machines have it, and pools whose segments are one handle each.
#include "driver/watch/watch.h"

vr_cu_result vr_watch_enter(const struct vr_watching *watch, uint32_t device, uint64_t *before) {
    uint64_t context = 0;
    vr_cu_result result = vr_cu(watch->inner, ctx_get_current, before);
    if (result == VR_CU_SUCCESS) result = vr_cu(watch->inner, primary_ctx_retain, &context, (int)device);
    if (result != VR_CU_SUCCESS) return result;
    result = vr_cu(watch->inner, ctx_set_current, context);
    if (result != VR_CU_SUCCESS) VR_CU_INSIST(watch->inner, primary_ctx_release, (int)device);
    return result;
}

void vr_watch_leave(const struct vr_watching *watch, uint32_t device, uint64_t before) {
    VR_CU_INSIST(watch->inner, ctx_set_current, before);
    VR_CU_INSIST(watch->inner, primary_ctx_release, (int)device);
}

static enum vram_status failed(struct vram_error *error, const char *call, vr_cu_result result) {
    const enum vram_status status = result == VR_CU_NOT_SUPPORTED   ? VRAM_UNSUPPORTED
                                    : result == VR_CU_OUT_OF_MEMORY ? VRAM_OUT_OF_MEMORY
                                                                    : VRAM_DRIVER;
    (void)vr_fail(error, status, VRAM_NO_OFFSET, "%s: %s", call, vr_cu_result_name(result));
    if (error != NULL) error->driver_result = result;
    return status;
}

// --- DMA buffers ------------------------------------------------------------------------------------------------------------------------

// The largest generation behind a range; 0: a byte of it is not mapped.
static uint64_t generation_of(struct vr_watching *watch, uint64_t address, uint64_t size_bytes, uint32_t *device) {
    struct vram_mapping one;
    size_t count = 0;
    uint64_t largest = 0;
    for (uint64_t at = address; at < address + size_bytes; at = one.address + one.size_bytes) {
        if (vram_watch_mappings(&watch->head, at, 1, &one, 1, &count) != VRAM_OK) return 0;
        if (at != address && one.device != *device) return 0;
        *device = one.device;
        if (one.generation > largest) largest = one.generation;
    }
    return largest;
}

enum vram_status vram_watch_dma_buf(struct vram_driver *driver, uint64_t address, uint64_t size_bytes, struct vram_dma_buf *buffer,
                                    struct vram_error *error) {
    struct vr_watching *watch = vr_watch_of(driver);
    VR_REQUIRE_OR_FAIL(error, watch && buffer && size_bytes != 0 && address <= UINT64_MAX - size_bytes - vr_os_page_bytes());
    const uint64_t low = vr_round_down(address, vr_os_page_bytes()), high = vr_round_up(address + size_bytes, vr_os_page_bytes());
    uint32_t device = 0;
    const uint64_t generation = generation_of(watch, address, size_bytes, &device);
    if (generation == 0) return vr_fail(error, VRAM_INVALID_POINTER, VRAM_NO_OFFSET, "a byte of the range is not mapped");
    if (!vr_watch_has(watch, device, VR_CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED))
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "device %u, or its driver, has no DMA buffers", device);
    uint64_t before = 0;
    int descriptor = -1;
    vr_cu_result result = vr_watch_enter(watch, device, &before);
    if (result != VR_CU_SUCCESS) return failed(error, "cuCtxSetCurrent", result);
    result = vr_cu(watch->inner, mem_get_handle_for_address_range, &descriptor, low, high - low, VR_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    vr_watch_leave(watch, device, before);
    if (result != VR_CU_SUCCESS) return failed(error, "cuMemGetHandleForAddressRange", result);
    *buffer = (struct vram_dma_buf){.descriptor = descriptor, .offset = address - low, .size_bytes = high - low, .generations = generation};
    return VRAM_OK;
}

// --- handles of the fabric
// ------------------------------------------------------------------------------------------------------------------

enum vram_status vram_watch_fabric(struct vram_driver *driver, uint64_t address, struct vram_fabric_handle *handle,
                                   struct vram_error *error) {
    struct vr_watching *watch = vr_watch_of(driver);
    VR_REQUIRE_OR_FAIL(error, watch && handle);
    struct vram_mapping mapping;
    size_t count = 0;
    if (vram_watch_mappings(driver, address, 1, &mapping, 1, &count) != VRAM_OK)
        return vr_fail(error, VRAM_INVALID_POINTER, VRAM_NO_OFFSET, "nothing is mapped there");
    if (!mapping.physical)
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET,
                       "memory by cuMemAlloc has no handle of the fabric: see vram_watch_one_handle()");
    struct vram_fabric_handle made = {.allocation_bytes = mapping.size_bytes, .offset = address - mapping.address};
    uint64_t physical = 0;
    vr_cu_result result = vr_cu(watch->inner, mem_retain_allocation_handle, &physical, address);
    if (result != VR_CU_SUCCESS) return failed(error, "cuMemRetainAllocationHandle", result);
    struct vr_cu_allocation_prop prop = {.type = 0};
    result = vr_cu(watch->inner, mem_get_allocation_properties, &prop, physical);
    const bool can = result == VR_CU_SUCCESS && (prop.requested_handle_types & VR_CU_MEM_HANDLE_TYPE_FABRIC) != 0;
    if (can) result = vr_cu(watch->inner, mem_export_to_shareable_handle, made.bytes, physical, VR_CU_MEM_HANDLE_TYPE_FABRIC, 0);
    VR_CU_INSIST(watch->inner, mem_release, physical);
    if (!can)
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "device %u, or its driver, has no handles of the fabric", mapping.device);
    if (result != VR_CU_SUCCESS) return failed(error, "cuMemExportToShareableHandle", result);
    *handle = made;
    return VRAM_OK;
}

static vr_cu_result open_to(const struct vr_watching *watch, uint32_t device, uint64_t address, uint64_t size_bytes) {
    struct vr_cu_access_desc access[VRAM_MAX_DEVICES];
    uint64_t count = 0;
    int devices = 0;
    if (vr_cu(watch->inner, device_get_count, &devices) != VR_CU_SUCCESS) devices = (int)device + 1;
    for (uint32_t peer = 0; peer < (uint32_t)devices && peer < VRAM_MAX_DEVICES; peer++) {
        int can = peer == device;
        if (!can && vr_cu(watch->inner, device_can_access_peer, &can, (int)peer, (int)device) != VR_CU_SUCCESS) can = 0;
        if (can)
            access[count++] = (struct vr_cu_access_desc){.location = {.type = VR_CU_MEM_LOCATION_TYPE_DEVICE, .id = (int32_t)peer},
                                                         .flags = VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    }
    return vr_cu(watch->inner, mem_set_access, address, size_bytes, access, count);
}

// Reserves addresses for a physical allocation and maps it. By the watching driver's own calls: it is told.
static vr_cu_result place(struct vr_watching *watch, uint32_t device, uint64_t handle, uint64_t size_bytes, uint64_t *address) {
    struct vram_driver *driver = &watch->head;
    uint64_t at = 0;
    vr_cu_result result = vr_cu(driver, mem_address_reserve, &at, size_bytes, 0, 0, 0);
    if (result != VR_CU_SUCCESS) return result;
    result = vr_cu(driver, mem_map, at, size_bytes, 0, handle, 0);
    if (result == VR_CU_SUCCESS) {
        result = open_to(watch, device, at, size_bytes);
        if (result != VR_CU_SUCCESS) VR_CU_INSIST(driver, mem_unmap, at, size_bytes);
    }
    if (result != VR_CU_SUCCESS)
        VR_CU_INSIST(driver, mem_address_free, at, size_bytes);
    else
        *address = at;
    return result;
}

enum vram_status vram_fabric_import(struct vram_driver *driver, uint32_t device, const struct vram_fabric_handle *handle, uint64_t *address,
                                    struct vram_error *error) {
    struct vr_watching *watch = vr_watch_of(driver);
    VR_REQUIRE_OR_FAIL(error, watch && handle && address && handle->offset < handle->allocation_bytes);
    uint64_t before = 0, physical = 0, at = 0;
    unsigned char bytes[VRAM_FABRIC_BYTES];
    memcpy(bytes, handle->bytes, sizeof bytes);
    vr_cu_result result = vr_watch_enter(watch, device, &before);
    if (result != VR_CU_SUCCESS) return failed(error, "cuCtxSetCurrent", result);
    const char *call = "cuMemImportFromShareableHandle";
    result = vr_cu(watch->inner, mem_import_from_shareable_handle, &physical, bytes, VR_CU_MEM_HANDLE_TYPE_FABRIC);
    if (result == VR_CU_SUCCESS) {
        call = "cuMemMap";
        result = place(watch, device, physical, handle->allocation_bytes, &at);
        VR_CU_INSIST(watch->inner, mem_release, physical);
    }
    vr_watch_leave(watch, device, before);
    if (result != VR_CU_SUCCESS) return failed(error, call, result);
    *address = at + handle->offset;
    return VRAM_OK;
}

static vr_cu_result take_down(struct vr_watching *watch, uint64_t address, uint64_t size_bytes) {
    const vr_cu_result result = vr_cu(&watch->head, mem_unmap, address, size_bytes);
    return result == VR_CU_SUCCESS ? vr_cu(&watch->head, mem_address_free, address, size_bytes) : result;
}

enum vram_status vram_fabric_release(struct vram_driver *driver, const struct vram_fabric_handle *handle, uint64_t address) {
    struct vr_watching *watch = vr_watch_of(driver);
    VR_REQUIRE(watch && handle && address >= handle->offset);
    struct vram_mapping mapping;
    size_t count = 0;
    if (vram_watch_mappings(driver, address, 1, &mapping, 1, &count) != VRAM_OK || mapping.address != address - handle->offset ||
        mapping.size_bytes != handle->allocation_bytes)
        return VRAM_INVALID_POINTER;
    return take_down(watch, mapping.address, mapping.size_bytes) == VR_CU_SUCCESS ? VRAM_OK : VRAM_DRIVER;
}

// --- pools of one handle a segment
// ------------------------------------------------------------------------------------------------------------

static struct vr_cu_allocation_prop prop_of(const struct vr_watching *watch, uint32_t device) {
    const bool rdma = vr_watch_has(watch, device, VR_CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
    const bool files = vr_watch_has(watch, device, VR_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
    return (struct vr_cu_allocation_prop){
        .type = VR_CU_MEM_ALLOCATION_TYPE_PINNED,
        .requested_handle_types = files ? VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0,
        .location = {.type = VR_CU_MEM_LOCATION_TYPE_DEVICE, .id = (int32_t)device},
        .gpu_direct_rdma_capable = rdma,
    };
}

static bool rounded(const struct vr_watching *watch, uint32_t device, uint64_t *size_bytes) {
    const struct vr_cu_allocation_prop prop = prop_of(watch, device);
    uint64_t granularity = 0;
    const vr_cu_result result = vr_cu(watch->inner, mem_get_allocation_granularity, &granularity, &prop, VR_CU_MEM_GRANULARITY_MINIMUM);
    if (result != VR_CU_SUCCESS || granularity == 0 || *size_bytes > UINT64_MAX - granularity) return false;
    *size_bytes = (*size_bytes + granularity - 1) / granularity * granularity;
    return true;
}

static uint64_t allocate(uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    struct vr_watching *watch = vr_watch_of(user);
    const struct vr_cu_allocation_prop prop = prop_of(watch, device);
    uint64_t handle = 0, address = 0;
    (void)stream;
    if (!rounded(watch, device, &size_bytes)) return 0;
    if (vr_cu(&watch->head, mem_create, &handle, size_bytes, &prop, 0) != VR_CU_SUCCESS) return 0;
    // From here on the mapping alone holds the memory.
    const vr_cu_result result = place(watch, device, handle, size_bytes, &address);
    VR_CU_INSIST(watch->inner, mem_release, handle);
    return result == VR_CU_SUCCESS ? address : 0;
}

static void deallocate(uint64_t address, uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    struct vr_watching *watch = vr_watch_of(user);
    (void)stream;
    if (rounded(watch, device, &size_bytes)) (void)take_down(watch, address, size_bytes);
}

void vram_watch_one_handle(struct vram_driver *driver, struct vram_pool_options *options) {
    if (vr_watch_of(driver) == NULL || options == NULL) return;
    options->allocate = allocate;
    options->deallocate = deallocate;
    options->user = driver;
}
