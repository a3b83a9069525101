// watch.c: wraps a driver, tracks which memory is mapped where, and calls observers. On top of it: DMA buffers, handles for other machines,
// and pools whose segments have one handle each.

#include "driver/driver.h"
#include "os/os.h"
#include "vram/network.h"

struct vr_watching {
    struct vram_driver head;
    struct vram_driver *inner; // borrowed
    // `order` is held from before a driver call until all observers were called, so mappings, calls and observers have one order. `table`
    // guards the mappings, for queries inside observers. `order` is taken first.
    struct vr_mutex order, table;
    struct vram_mapping *mappings; // by ascending address
    size_t mapping_count, mappings_capacity;
    struct vram_mapping_observer *observers;
    size_t observer_count, observers_capacity;
    uint64_t generation;
    bool no_fabric[VRAM_MAX_DEVICES]; // the device refused fabric handles (guarded by order)
};

static const char watch_kind[] = "watch";

// Returns NULL for another driver.
static struct vr_watching *vr_watch_of(struct vram_driver *driver) {
    return driver != NULL && strcmp(driver->kind, watch_kind) == 0 ? (struct vr_watching *)(void *)driver : NULL;
}

// --- the table --------------------------------------------------------------------------------------------------------------------

static bool vr_watch_has(const struct vr_watching *watch, uint32_t device, int attribute) {
    int value = 0;
    return vr_cu(watch->inner, device_get_attribute, &value, attribute, (int)device) == VR_CU_SUCCESS && value != 0;
}

// Returns the first mapping that ends above the address. Called with `table` held.
static size_t vr_watch_first(const struct vr_watching *watch, uint64_t address) {
    size_t low = 0, high = watch->mapping_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (watch->mappings[middle].address + watch->mappings[middle].size_bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool reserve_mappings(struct vr_watching *watch) {
    vr_mutex_lock(&watch->table);
    const bool room = VR_GROW(watch, mappings, watch->mapping_count + 1) == VRAM_OK;
    vr_mutex_unlock(&watch->table);
    return room;
}

// There must be room.
static void insert_mapping(struct vr_watching *watch, const struct vram_mapping *mapping) {
    vr_mutex_lock(&watch->table);
    const size_t at = vr_watch_first(watch, mapping->address);
    memmove(&watch->mappings[at + 1], &watch->mappings[at], (watch->mapping_count - at) * sizeof *watch->mappings);
    watch->mappings[at] = *mapping;
    watch->mapping_count++;
    vr_mutex_unlock(&watch->table);
}

static void remove_range(struct vr_watching *watch, size_t first, size_t count) {
    vr_mutex_lock(&watch->table);
    watch->mapping_count -= count;
    memmove(&watch->mappings[first], &watch->mappings[first + count], (watch->mapping_count - first) * sizeof *watch->mappings);
    vr_mutex_unlock(&watch->table);
}

// --- observers: called with `order` held, not `table` --------------------------------------------------------------------------------

static void notify_mapped(const struct vr_watching *watch, struct vram_mapping mapping) {
    for (size_t i = 0; i < watch->observer_count; i++)
        if (watch->observers[i].mapped != NULL) watch->observers[i].mapped(&mapping, watch->observers[i].user);
}

static void notify_unmapping(const struct vr_watching *watch, struct vram_mapping mapping) {
    for (size_t i = 0; i < watch->observer_count; i++)
        if (watch->observers[i].unmapping != NULL) watch->observers[i].unmapping(&mapping, watch->observers[i].user);
}

static void mapped_now(struct vr_watching *watch, struct vram_mapping mapping) {
    mapping.generation = ++watch->generation;
    insert_mapping(watch, &mapping);
    notify_mapped(watch, mapping);
}

// Unmaps all mappings in [address, end) by `give`, after calling all observers.
static vr_cu_result unmap_by(struct vr_watching *watch, uint64_t address, uint64_t end,
                             vr_cu_result (*give)(struct vr_watching *, const uint64_t *), const uint64_t *arguments) {
    vr_mutex_lock(&watch->order);
    const size_t first = vr_watch_first(watch, address);
    size_t after = first;
    while (after < watch->mapping_count && watch->mappings[after].address < end) notify_unmapping(watch, watch->mappings[after++]);
    const vr_cu_result result = give(watch, arguments);
    if (result == VR_CU_SUCCESS) {
        remove_range(watch, first, after - first);
    } else {
        for (size_t i = first; i < after; i++) {
            vr_mutex_lock(&watch->table);
            watch->mappings[i].generation = ++watch->generation;
            vr_mutex_unlock(&watch->table);
            notify_mapped(watch, watch->mappings[i]);
        }
    }
    vr_mutex_unlock(&watch->order);
    return result;
}

// --- the calls that map and unmap -------------------------------------------------------------------------------------------------------

static vr_cu_result watch_mem_alloc(struct vram_driver *self, uint64_t *address, uint64_t size_bytes) {
    struct vr_watching *watch = vr_watch_of(self);
    int device = 0;
    vr_mutex_lock(&watch->order);
    vr_cu_result result = vr_cu(watch->inner, ctx_get_device, &device);
    if (result == VR_CU_SUCCESS && !reserve_mappings(watch)) result = VR_CU_OUT_OF_MEMORY;
    if (result == VR_CU_SUCCESS) result = vr_cu(watch->inner, mem_alloc, address, size_bytes);
    if (result == VR_CU_SUCCESS)
        mapped_now(watch, (struct vram_mapping){.address = *address, .size_bytes = size_bytes, .device = (uint32_t)device});
    vr_mutex_unlock(&watch->order);
    return result;
}

static vr_cu_result watch_mem_map(struct vram_driver *self, uint64_t address, uint64_t size_bytes, uint64_t offset_bytes, uint64_t handle,
                                  uint64_t flags) {
    struct vr_watching *watch = vr_watch_of(self);
    struct vr_cu_allocation_prop prop = {.type = 0};
    vr_mutex_lock(&watch->order);
    vr_cu_result result = vr_cu(watch->inner, mem_get_allocation_properties, &prop, handle);
    if (result == VR_CU_SUCCESS && !reserve_mappings(watch)) result = VR_CU_OUT_OF_MEMORY;
    if (result == VR_CU_SUCCESS) result = vr_cu(watch->inner, mem_map, address, size_bytes, offset_bytes, handle, flags);
    if (result == VR_CU_SUCCESS)
        mapped_now(watch, (struct vram_mapping){
                              .address = address, .size_bytes = size_bytes, .device = (uint32_t)prop.location.id, .physical = true});
    vr_mutex_unlock(&watch->order);
    return result;
}

static vr_cu_result give_free(struct vr_watching *watch, const uint64_t *arguments) { return vr_cu(watch->inner, mem_free, arguments[0]); }
static vr_cu_result give_free_async(struct vr_watching *watch, const uint64_t *arguments) {
    return vr_cu(watch->inner, mem_free_async, arguments[0], arguments[1]);
}
static vr_cu_result give_unmap(struct vr_watching *watch, const uint64_t *arguments) {
    return vr_cu(watch->inner, mem_unmap, arguments[0], arguments[1]);
}

static vr_cu_result watch_mem_free(struct vram_driver *self, uint64_t address) {
    return unmap_by(vr_watch_of(self), address, address + 1, give_free, (const uint64_t[]){address});
}
static vr_cu_result watch_mem_free_async(struct vram_driver *self, uint64_t address, uint64_t stream) {
    return unmap_by(vr_watch_of(self), address, address + 1, give_free_async, (const uint64_t[]){address, stream});
}
static vr_cu_result watch_mem_unmap(struct vram_driver *self, uint64_t address, uint64_t size_bytes) {
    return unmap_by(vr_watch_of(self), address, address + size_bytes, give_unmap, (const uint64_t[]){address, size_bytes});
}

// Requests a fabric handle if the device has them. A driver may still refuse (no fabric manager, no permission): then makes the allocation
// without one.
static vr_cu_result watch_mem_create(struct vram_driver *self, uint64_t *handle, uint64_t size_bytes,
                                     const struct vr_cu_allocation_prop *prop, uint64_t flags) {
    struct vr_watching *watch = vr_watch_of(self);
    const uint32_t device = prop == NULL ? VRAM_MAX_DEVICES : (uint32_t)prop->location.id;
    if (device < VRAM_MAX_DEVICES && prop->location.type == VR_CU_MEM_LOCATION_TYPE_DEVICE) {
        vr_mutex_lock(&watch->order);
        if (!watch->no_fabric[device] && !vr_watch_has(watch, device, VR_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED))
            watch->no_fabric[device] = true;
        const bool fabric = !watch->no_fabric[device];
        vr_mutex_unlock(&watch->order);
        struct vr_cu_allocation_prop with = *prop;
        with.requested_handle_types |= VR_CU_MEM_HANDLE_TYPE_FABRIC;
        const vr_cu_result result = fabric ? vr_cu(watch->inner, mem_create, handle, size_bytes, &with, flags) : VR_CU_NOT_SUPPORTED;
        if (result == VR_CU_SUCCESS || (fabric && result == VR_CU_OUT_OF_MEMORY)) return result;
    }
    return vr_cu(watch->inner, mem_create, handle, size_bytes, prop, flags);
}

// --- all other calls are passed on ----------------------------------------------------------------------------------------------------
// clang-format off
#define WITH_SELF(...) (struct vram_driver *self, __VA_ARGS__)
#define WITH_INNER(...) (((struct vr_watching *)(void *)self)->inner, __VA_ARGS__)
#define X(member, symbol, exported, version, parameters, arguments)                    \
    static vr_cu_result call_watch_##member WITH_SELF parameters {                     \
        return ((struct vr_watching *)(void *)self)->inner->calls->member WITH_INNER arguments; \
    }
#include "driver/calls.def"
#undef X

static const struct vr_driver_calls handed_on = {
#define X(member, symbol, exported, version, parameters, arguments) call_watch_##member,
#include "driver/calls.def"
#undef X
};
// clang-format on

// The driver has its own table of calls: all passed on, except those that are watched.
struct watch_driver {
    struct vr_watching watch;
    struct vr_driver_calls calls;
};

static uint64_t clock_of_inner(struct vram_driver *self) { return vr_watch_of(self)->inner->clock_ns(vr_watch_of(self)->inner); }
static bool host_of_inner(struct vram_driver *self, int device, uint64_t *bytes) {
    return vr_watch_of(self)->inner->host_available(vr_watch_of(self)->inner, device, bytes);
}

static void destroy_watch_driver(struct vram_driver *driver) {
    struct vr_watching *watch = vr_watch_of(driver);
    vr_mutex_destroy(&watch->order);
    vr_mutex_destroy(&watch->table);
    free(watch->mappings);
    free(watch->observers);
    free(watch);
}

enum vram_status vram_driver_watch(struct vram_driver *inner, struct vram_driver **driver) {
    VR_REQUIRE(inner && driver);
    struct watch_driver *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->calls = handed_on;
    made->calls.mem_alloc = watch_mem_alloc;
    made->calls.mem_free = watch_mem_free;
    made->calls.mem_free_async = watch_mem_free_async;
    made->calls.mem_create = watch_mem_create;
    made->calls.mem_map = watch_mem_map;
    made->calls.mem_unmap = watch_mem_unmap;
    made->watch.head = (struct vram_driver){
        .calls = &made->calls,
        .destroy = destroy_watch_driver,
        .clock_ns = inner->clock_ns == NULL ? NULL : clock_of_inner,
        .host_available = inner->host_available == NULL ? NULL : host_of_inner,
        .kind = watch_kind,
    };
    made->watch.inner = inner;
    vr_mutex_init(&made->watch.order);
    vr_mutex_init(&made->watch.table);
    *driver = &made->watch.head;
    return VRAM_OK;
}

// --- questions and observers ------------------------------------------------------------------------------------------------------------

enum vram_status vram_watch_add(struct vram_driver *driver, const struct vram_mapping_observer *observer) {
    struct vr_watching *watch = vr_watch_of(driver);
    VR_REQUIRE(watch && observer);
    vr_mutex_lock(&watch->order);
    const enum vram_status status = VR_GROW(watch, observers, watch->observer_count + 1);
    if (status == VRAM_OK) {
        watch->observers[watch->observer_count++] = *observer;
        for (size_t i = 0; i < watch->mapping_count && observer->mapped != NULL; i++) {
            const struct vram_mapping mapping = watch->mappings[i];
            observer->mapped(&mapping, observer->user);
        }
    }
    vr_mutex_unlock(&watch->order);
    return status;
}

enum vram_status vram_watch_remove(struct vram_driver *driver, const struct vram_mapping_observer *observer) {
    struct vr_watching *watch = vr_watch_of(driver);
    VR_REQUIRE(watch && observer);
    enum vram_status status = VRAM_INVALID_ARGUMENT;
    vr_mutex_lock(&watch->order);
    for (size_t i = watch->observer_count; i-- > 0 && status != VRAM_OK;) {
        const struct vram_mapping_observer *item = &watch->observers[i];
        if (item->mapped != observer->mapped || item->unmapping != observer->unmapping || item->user != observer->user) continue;
        watch->observer_count--;
        memmove(&watch->observers[i], &watch->observers[i + 1], (watch->observer_count - i) * sizeof *watch->observers);
        status = VRAM_OK;
    }
    vr_mutex_unlock(&watch->order);
    return status;
}

enum vram_status vram_watch_mappings(struct vram_driver *driver, uint64_t address, uint64_t size_bytes, struct vram_mapping *mappings,
                                     size_t capacity, size_t *count) {
    struct vr_watching *watch = vr_watch_of(driver);
    VR_REQUIRE(watch && (mappings || capacity == 0) && count && size_bytes != 0 && address <= UINT64_MAX - size_bytes);
    vr_mutex_lock(&watch->table);
    const size_t first = vr_watch_first(watch, address);
    uint64_t at = address;
    size_t after = first;
    for (; after < watch->mapping_count && at < address + size_bytes; after++) {
        const struct vram_mapping *mapping = &watch->mappings[after];
        if (mapping->address > at || mapping->device != watch->mappings[first].device) break;
        at = mapping->address + mapping->size_bytes;
    }
    const bool whole = at >= address + size_bytes;
    for (size_t i = first; whole && i < after && i - first < capacity; i++) mappings[i - first] = watch->mappings[i];
    if (whole) *count = after - first;
    vr_mutex_unlock(&watch->table);
    return whole ? VRAM_OK : VRAM_INVALID_POINTER;
}

// --- handles for network cards and other machines ---------------------------------------------------------------------------------------

// Makes the device's primary context current; `before` is for vr_watch_leave(). Returns the driver's result.
static vr_cu_result vr_watch_enter(const struct vr_watching *watch, uint32_t device, uint64_t *before) {
    uint64_t context = 0;
    vr_cu_result result = vr_cu(watch->inner, ctx_get_current, before);
    if (result == VR_CU_SUCCESS) result = vr_cu(watch->inner, primary_ctx_retain, &context, (int)device);
    if (result != VR_CU_SUCCESS) return result;
    result = vr_cu(watch->inner, ctx_set_current, context);
    if (result != VR_CU_SUCCESS) VR_CU_INSIST(watch->inner, primary_ctx_release, (int)device);
    return result;
}

static void vr_watch_leave(const struct vr_watching *watch, uint32_t device, uint64_t before) {
    VR_CU_INSIST(watch->inner, ctx_set_current, before);
    VR_CU_INSIST(watch->inner, primary_ctx_release, (int)device);
}

static enum vram_status call_failed(struct vram_error *error, const char *call, vr_cu_result result) {
    const enum vram_status status = result == VR_CU_NOT_SUPPORTED   ? VRAM_UNSUPPORTED
                                    : result == VR_CU_OUT_OF_MEMORY ? VRAM_OUT_OF_MEMORY
                                                                    : VRAM_DRIVER;
    (void)vr_fail(error, status, VRAM_NO_OFFSET, "%s: %s", call, vr_cu_result_name(result));
    if (error != NULL) error->driver_result = result;
    return status;
}

// --- DMA buffers ------------------------------------------------------------------------------------------------------------------------

// Returns the largest generation behind a range; 0 if a byte of it is not mapped.
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
    if (generation == 0) return vr_fail(error, VRAM_INVALID_POINTER, VRAM_NO_OFFSET, "part of the range is not mapped");
    if (!vr_watch_has(watch, device, VR_CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED))
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "device %u or its driver does not support DMA buffers", device);
    uint64_t before = 0;
    int descriptor = -1;
    vr_cu_result result = vr_watch_enter(watch, device, &before);
    if (result != VR_CU_SUCCESS) return call_failed(error, "cuCtxSetCurrent", result);
    result = vr_cu(watch->inner, mem_get_handle_for_address_range, &descriptor, low, high - low, VR_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    vr_watch_leave(watch, device, before);
    if (result != VR_CU_SUCCESS) return call_failed(error, "cuMemGetHandleForAddressRange", result);
    *buffer = (struct vram_dma_buf){.descriptor = descriptor, .offset = address - low, .size_bytes = high - low, .generations = generation};
    return VRAM_OK;
}

// --- handles of the fabric --------------------------------------------------------------------------------------------------------------

enum vram_status vram_watch_fabric(struct vram_driver *driver, uint64_t address, struct vram_fabric_handle *handle,
                                   struct vram_error *error) {
    struct vr_watching *watch = vr_watch_of(driver);
    VR_REQUIRE_OR_FAIL(error, watch && handle);
    struct vram_mapping mapping;
    size_t count = 0;
    if (vram_watch_mappings(driver, address, 1, &mapping, 1, &count) != VRAM_OK)
        return vr_fail(error, VRAM_INVALID_POINTER, VRAM_NO_OFFSET, "nothing is mapped at the address");
    if (!mapping.physical)
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "memory from cuMemAlloc has no fabric handle; see vram_watch_one_handle()");
    struct vram_fabric_handle made = {.allocation_bytes = mapping.size_bytes, .offset = address - mapping.address};
    uint64_t physical = 0;
    vr_cu_result result = vr_cu(watch->inner, mem_retain_allocation_handle, &physical, address);
    if (result != VR_CU_SUCCESS) return call_failed(error, "cuMemRetainAllocationHandle", result);
    struct vr_cu_allocation_prop prop = {.type = 0};
    result = vr_cu(watch->inner, mem_get_allocation_properties, &prop, physical);
    const bool can = result == VR_CU_SUCCESS && (prop.requested_handle_types & VR_CU_MEM_HANDLE_TYPE_FABRIC) != 0;
    if (can) result = vr_cu(watch->inner, mem_export_to_shareable_handle, made.bytes, physical, VR_CU_MEM_HANDLE_TYPE_FABRIC, 0);
    VR_CU_INSIST(watch->inner, mem_release, physical);
    if (!can)
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "device %u or its driver does not support fabric handles", mapping.device);
    if (result != VR_CU_SUCCESS) return call_failed(error, "cuMemExportToShareableHandle", result);
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

// Reserves addresses for a physical allocation and maps it, through the watching driver's own calls, which track it.
static vr_cu_result place_handle(struct vr_watching *watch, uint32_t device, uint64_t handle, uint64_t size_bytes, uint64_t *address) {
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
    if (result != VR_CU_SUCCESS) return call_failed(error, "cuCtxSetCurrent", result);
    const char *call = "cuMemImportFromShareableHandle";
    result = vr_cu(watch->inner, mem_import_from_shareable_handle, &physical, bytes, VR_CU_MEM_HANDLE_TYPE_FABRIC);
    if (result == VR_CU_SUCCESS) {
        call = "cuMemMap";
        result = place_handle(watch, device, physical, handle->allocation_bytes, &at);
        VR_CU_INSIST(watch->inner, mem_release, physical);
    }
    vr_watch_leave(watch, device, before);
    if (result != VR_CU_SUCCESS) return call_failed(error, call, result);
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

// --- pools of one handle a segment ------------------------------------------------------------------------------------------------------

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

static bool rounded_size(const struct vr_watching *watch, uint32_t device, uint64_t *size_bytes) {
    const struct vr_cu_allocation_prop prop = prop_of(watch, device);
    uint64_t granularity = 0;
    const vr_cu_result result = vr_cu(watch->inner, mem_get_allocation_granularity, &granularity, &prop, VR_CU_MEM_GRANULARITY_MINIMUM);
    if (result != VR_CU_SUCCESS || granularity == 0 || *size_bytes > UINT64_MAX - granularity) return false;
    *size_bytes = (*size_bytes + granularity - 1) / granularity * granularity;
    return true;
}

static uint64_t allocate_watched(uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    struct vr_watching *watch = vr_watch_of(user);
    const struct vr_cu_allocation_prop prop = prop_of(watch, device);
    uint64_t handle = 0, address = 0;
    (void)stream;
    if (!rounded_size(watch, device, &size_bytes)) return 0;
    if (vr_cu(&watch->head, mem_create, &handle, size_bytes, &prop, 0) != VR_CU_SUCCESS) return 0;
    // From now on only the mapping holds the memory.
    const vr_cu_result result = place_handle(watch, device, handle, size_bytes, &address);
    VR_CU_INSIST(watch->inner, mem_release, handle);
    return result == VR_CU_SUCCESS ? address : 0;
}

static void deallocate(uint64_t address, uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    struct vr_watching *watch = vr_watch_of(user);
    (void)stream;
    if (rounded_size(watch, device, &size_bytes)) (void)take_down(watch, address, size_bytes);
}

void vram_watch_one_handle(struct vram_driver *driver, struct vram_pool_options *options) {
    if (vr_watch_of(driver) == NULL || options == NULL) return;
    options->allocate = allocate_watched;
    options->deallocate = deallocate;
    options->user = driver;
}
