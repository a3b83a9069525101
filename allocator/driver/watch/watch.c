// A driver around another one that knows what memory is mapped where, and tells it.
#include "driver/watch/watch.h"

static const char watch_kind[] = "watch";

struct vr_watching *vr_watch_of(struct vram_driver *driver) {
    return driver != NULL && strcmp(driver->kind, watch_kind) == 0 ? (struct vr_watching *)(void *)driver : NULL;
}

// --- the table --------------------------------------------------------------------------------------------------------------------

bool vr_watch_has(const struct vr_watching *watch, uint32_t device, int attribute) {
    int value = 0;
    return vr_cu(watch->inner, device_get_attribute, &value, attribute, (int)device) == VR_CU_SUCCESS && value != 0;
}

size_t vr_watch_first(const struct vr_watching *watch, uint64_t address) {
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

static bool reserve(struct vr_watching *watch) {
    vr_mutex_lock(&watch->table);
    const bool room = VR_GROW(watch, mappings, watch->mapping_count + 1) == VRAM_OK;
    vr_mutex_unlock(&watch->table);
    return room;
}

// There is room.
static void insert(struct vr_watching *watch, const struct vram_mapping *mapping) {
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

// --- observers: under `order`, not under `table` ------------------------------------------------------------------------------------

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
    insert(watch, &mapping);
    notify_mapped(watch, mapping);
}

// What lies in [address, end) goes by `give`, after everybody was told.
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
    if (result == VR_CU_SUCCESS && !reserve(watch)) result = VR_CU_OUT_OF_MEMORY;
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
    if (result == VR_CU_SUCCESS && !reserve(watch)) result = VR_CU_OUT_OF_MEMORY;
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

// With a handle of the fabric where the device has such; a driver may still refuse them (no fabric manager, no permission): then without.
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

// --- all others: handed on -------------------------------------------------------------------------------------------------------------
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

// The table of calls is the driver's own: all that are handed on, but for those that are watched.
struct watch_driver {
    struct vr_watching watch;
    struct vr_driver_calls calls;
};

static uint64_t clock_of_inner(struct vram_driver *self) { return vr_watch_of(self)->inner->clock_ns(vr_watch_of(self)->inner); }
static bool host_of_inner(struct vram_driver *self, int device, uint64_t *bytes) {
    return vr_watch_of(self)->inner->host_available(vr_watch_of(self)->inner, device, bytes);
}

static void destroy(struct vram_driver *driver) {
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
        .destroy = destroy,
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

// --- questions and observers
// ---------------------------------------------------------------------------------------------------------------

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
