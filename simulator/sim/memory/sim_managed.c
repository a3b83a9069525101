// sim_managed.c: managed memory, the location of its pages, and advice about it.
#include "sim/memory/sim_managed.h"

#include "sim/streams/sim_checking.h"
#include "sim/streams/sim_guards.h"

#include <stdlib.h>

#include "sim/graphs/sim_graphs.h"

enum {
    ALLOC_NS_PER_MIB = 400,     // like cuMemAlloc: pages are allocated at first touch
    MIGRATE_NS_PER_MIB = 62500, // 16 GB/s, a PCIe 3.0 link of 16 lanes
    ADVICE_READ_MOSTLY = 1,     // the even number after each unsets it
    ADVICE_PREFERRED_LOCATION = 3,
    ADVICE_ACCESSED_BY = 5,
    ADVICE_MOST = 6,
};
static const uint64_t by_the_host = (uint64_t)1 << 63; // bit in accessed_by

static struct vr_sim_managed *managed_at(const struct vr_sim *sim, uint32_t index) {
    return (struct vr_sim_managed *)(void *)vr_sim_slots_item(&sim->managed, index);
}

// Returns the allocation that contains the whole range, or NULL.
static struct vr_sim_managed *managed_holding(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->hosts, address);
    if (range == NULL || range->kind != VR_SIM_HOST_MANAGED || size_bytes == 0) return NULL;
    return size_bytes <= vr_sim_range_end(range) - address ? managed_at(sim, (uint32_t)range->read_mask) : NULL;
}

bool vr_sim_is_managed(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    return managed_holding(sim, address, size_bytes) != NULL;
}

static uint64_t page_count(const struct vr_sim_managed *managed) {
    return (managed->size_bytes + VR_SIM_MANAGED_PAGE - 1) / VR_SIM_MANAGED_PAGE;
}

// Returns the length of a page; the last one ends with the allocation.
static uint64_t page_bytes(const struct vr_sim_managed *managed, uint64_t page) {
    const uint64_t left = managed->size_bytes - page * VR_SIM_MANAGED_PAGE;
    return left < VR_SIM_MANAGED_PAGE ? left : VR_SIM_MANAGED_PAGE;
}

static void move_off(struct vr_sim *sim, struct vr_sim_managed *managed, uint64_t page) {
    if (managed->places[page] == 0) return;
    sim->devices[managed->places[page] - 1].used_bytes -= page_bytes(managed, page);
    managed->places[page] = 0;
}

// Evicts in a fixed order, allocations by slot and pages from the first, so that every run is the same.
void vr_sim_managed_make_room(struct vr_sim *sim, uint32_t device, uint64_t size_bytes) {
    for (uint32_t i = 0; i < sim->managed.used; i++) {
        struct vr_sim_managed *managed = managed_at(sim, i);
        if (!managed->slot.live) continue;
        for (uint64_t page = 0; page < page_count(managed); page++) {
            if (vr_sim_has_room(&sim->devices[device], size_bytes)) return;
            if (managed->places[page] == device + 1) move_off(sim, managed, page);
        }
    }
}

uint64_t vr_sim_managed_bytes(const struct vr_sim *sim, uint32_t device) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < sim->managed.used; i++)
        for (uint64_t page = 0; managed_at(sim, i)->slot.live && page < page_count(managed_at(sim, i)); page++)
            if (managed_at(sim, i)->places[page] == device + 1) bytes += page_bytes(managed_at(sim, i), page);
    return bytes;
}

// Moves pages to a device (-1: the host) and returns the bytes moved. Pages that do not fit on the device stay where they are.
static uint64_t move_managed(struct vr_sim *sim, struct vr_sim_managed *managed, uint64_t address, uint64_t size_bytes, int device) {
    const uint64_t first = (address - managed->address) / VR_SIM_MANAGED_PAGE;
    const uint64_t last = (address + size_bytes - 1 - managed->address) / VR_SIM_MANAGED_PAGE;
    uint64_t moved = 0;
    for (uint64_t page = first; page <= last; page++) {
        const uint64_t bytes = page_bytes(managed, page);
        if (managed->places[page] == device + 1) continue;
        if (device >= 0 && !vr_sim_has_room(&sim->devices[device], bytes)) vr_sim_managed_make_room(sim, (uint32_t)device, bytes);
        if (device >= 0 && !vr_sim_has_room(&sim->devices[device], bytes)) break;
        move_off(sim, managed, page);
        if (device >= 0) {
            sim->devices[device].used_bytes += bytes;
            managed->places[page] = (uint8_t)(device + 1);
        }
        moved += bytes;
    }
    return moved;
}

// --- allocation -----------------------------------------------------------------------------------------------------

static vr_cu_result keep_managed(struct vr_sim *sim, const struct vr_sim_managed *made) {
    uint32_t index;
    if (vr_sim_slots_take(&sim->managed, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_range range = {.base = made->address, .span = made->size_bytes, .size_bytes = made->size_bytes};
    range.kind = VR_SIM_HOST_MANAGED;
    range.owner = made->context;
    range.read_mask = index;
    if (vr_sim_ranges_insert(&sim->hosts, &range) != VRAM_OK) {
        vr_sim_slots_give(&sim->managed, index);
        return VR_CU_OUT_OF_MEMORY;
    }
    const struct vr_sim_slot slot = managed_at(sim, index)->slot;
    *managed_at(sim, index) = *made;
    managed_at(sim, index)->slot = slot;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_alloc_managed(struct vr_sim *sim, uint64_t *address, uint64_t size_bytes, unsigned flags) {
    if (address == NULL || size_bytes == 0 || (flags != VR_CU_MEM_ATTACH_GLOBAL && flags != VR_CU_MEM_ATTACH_HOST))
        return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS) return result;
    struct vr_sim_managed made = {.size_bytes = size_bytes, .by_host = flags == VR_CU_MEM_ATTACH_HOST};
    made.context = vr_sim_context_handle(sim, context);
    void *memory;
    if (size_bytes > VR_SIM_LIMIT || vr_os_reserve((size_t)size_bytes, &memory) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    made.address = (uint64_t)(uintptr_t)memory;
    made.places = calloc((size_t)page_count(&made), 1);
    result = made.places == NULL ? VR_CU_OUT_OF_MEMORY : keep_managed(sim, &made);
    if (result != VR_CU_SUCCESS) {
        free(made.places);
        vr_os_unreserve(memory, (size_t)size_bytes);
        return result;
    }
    if (VR_UNLIKELY(sim->checking != NULL)) {
        vr_check_segment(sim->checking->check, made.address, size_bytes, false, vr_sim_checking_place(sim, "cuMemAllocManaged"));
        vr_check_written(sim->checking->check, made.address); // by the host, perhaps
    }
    vr_sim_charge_bytes(sim, size_bytes, ALLOC_NS_PER_MIB);
    *address = made.address;
    return VR_CU_SUCCESS;
}

static void end_managed(struct vr_sim *sim, struct vr_sim_managed *managed) {
    if (VR_UNLIKELY(sim->guard_count != 0)) vr_sim_guards_end(sim, managed->address, managed->size_bytes);
    if (VR_UNLIKELY(sim->checking != NULL))
        vr_check_segment_end(sim->checking->check, managed->address, managed->size_bytes, true, vr_sim_checking_place(sim, "cuMemFree"));
    for (uint64_t page = 0; page < page_count(managed); page++) move_off(sim, managed, page);
    vr_sim_ranges_remove(&sim->hosts, managed->address);
    vr_os_unreserve((void *)(uintptr_t)managed->address, (size_t)managed->size_bytes);
    free(managed->places);
    vr_sim_slots_give(&sim->managed, vr_sim_slots_index(&sim->managed, managed));
}

bool vr_sim_managed_free(struct vr_sim *sim, uint64_t address, vr_cu_result *result) {
    struct vr_sim_managed *managed = managed_holding(sim, address, 1);
    if (managed == NULL) return false;
    *result = managed->address == address ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
    if (*result != VR_CU_SUCCESS) return true;
    if (!sim->options.manual_completion) vr_sim_wait_device(sim, vr_sim_context_find(sim, managed->context)->device);
    end_managed(sim, managed);
    return true;
}

void vr_sim_end_managed(struct vr_sim *sim, uint64_t context) {
    for (uint32_t i = 0; i < sim->managed.used; i++)
        if (managed_at(sim, i)->slot.live && (context == 0 || managed_at(sim, i)->context == context)) end_managed(sim, managed_at(sim, i));
}

// --- prefetch, advice -----------------------------------------------------------------------------------------------

static bool is_host(const struct vr_cu_location *location) { return location->type >= VR_CU_MEM_LOCATION_TYPE_HOST && location->type <= 4; }

static bool is_place(const struct vr_sim *sim, const struct vr_cu_location *location) {
    return is_host(location) || (location->type == VR_CU_MEM_LOCATION_TYPE_DEVICE && vr_sim_is_device(sim, location->id));
}

// Converts the location argument of the first versions of these calls, a device number.
static struct vr_cu_location location_of(int device) {
    if (device == VR_CU_DEVICE_CPU) return (struct vr_cu_location){.type = VR_CU_MEM_LOCATION_TYPE_HOST};
    return (struct vr_cu_location){.type = VR_CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

vr_cu_result vr_sim_mem_prefetch_async_v2(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, struct vr_cu_location location,
                                          unsigned flags, uint64_t stream) {
    struct vr_sim_stream *queue;
    vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS) return result;
    struct vr_sim_managed *managed = managed_holding(sim, address, size_bytes);
    if (flags != 0 || managed == NULL) return VR_CU_INVALID_VALUE;
    if (!is_place(sim, &location)) return VR_CU_INVALID_DEVICE;
    if (queue->capture != 0) return VR_CU_STREAM_CAPTURE_UNSUPPORTED;
    const uint64_t moved = move_managed(sim, managed, address, size_bytes, is_host(&location) ? VR_CU_DEVICE_CPU : location.id);
    managed->prefetched = location;
    const uint64_t cost_ns = sim->options.kernel_ns == 0 ? 0 : moved / VR_MIB * MIGRATE_NS_PER_MIB;
    return vr_sim_enqueue(sim, queue, cost_ns, NULL);
}

vr_cu_result vr_sim_mem_prefetch_async(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, int device, uint64_t stream) {
    return vr_sim_mem_prefetch_async_v2(sim, address, size_bytes, location_of(device), 0, stream);
}

// Stores advice for the whole allocation that contains the range.
vr_cu_result vr_sim_mem_advise_v2(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, int advice, struct vr_cu_location location) {
    struct vr_sim_managed *managed = managed_holding(sim, address, size_bytes);
    if (managed == NULL || advice < ADVICE_READ_MOSTLY || advice > ADVICE_MOST) return VR_CU_INVALID_VALUE;
    const bool set = advice % 2 != 0;
    if (advice <= ADVICE_READ_MOSTLY + 1) {
        managed->read_mostly = set;
        return VR_CU_SUCCESS;
    }
    if ((set || advice == ADVICE_ACCESSED_BY + 1) && !is_place(sim, &location)) return VR_CU_INVALID_DEVICE;
    const uint64_t bit = is_host(&location) ? by_the_host : (uint64_t)1 << (location.id & 63);
    if (advice <= ADVICE_PREFERRED_LOCATION + 1)
        managed->preferred = set ? location : (struct vr_cu_location){0, 0};
    else
        managed->accessed_by = set ? managed->accessed_by | bit : managed->accessed_by & ~bit;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_advise(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, int advice, int device) {
    return vr_sim_mem_advise_v2(sim, address, size_bytes, advice, location_of(device));
}

// Checks the arguments. Attaching memory to a stream has no effect: every stream may use it.
vr_cu_result vr_sim_stream_attach_mem_async(struct vr_sim *sim, uint64_t stream, uint64_t address, uint64_t size_bytes, unsigned flags) {
    enum { SINGLE = 4 };
    struct vr_sim_stream *queue;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_managed *managed = managed_holding(sim, address, 1);
    if (managed == NULL || managed->address != address || (size_bytes != 0 && size_bytes != managed->size_bytes))
        return VR_CU_INVALID_VALUE;
    return flags == VR_CU_MEM_ATTACH_GLOBAL || flags == VR_CU_MEM_ATTACH_HOST || flags == SINGLE ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

// --- attributes of ranges -------------------------------------------------------------------------------------------

enum range_attribute {
    READ_MOSTLY = 1,
    PREFERRED = 2,
    ACCESSED_BY = 3,
    PREFETCHED = 4,
    PREFERRED_TYPE,
    PREFERRED_ID,
    PREFETCHED_TYPE,
    PREFETCHED_ID
};

static int device_of_location(const struct vr_cu_location *location) {
    if (location->type == 0) return VR_CU_DEVICE_INVALID;
    return is_host(location) ? VR_CU_DEVICE_CPU : location->id;
}

// Lists the devices, then the host, and pads the program's list with "invalid".
static vr_cu_result accessed_by(const struct vr_sim_managed *managed, int32_t *list, uint64_t data_bytes) {
    const uint64_t count = data_bytes / sizeof *list;
    uint64_t used = 0;
    if (data_bytes == 0 || data_bytes % sizeof *list != 0) return VR_CU_INVALID_VALUE;
    for (int device = 0; device < 63 && used < count; device++)
        if ((managed->accessed_by >> device & 1) != 0) list[used++] = device;
    if ((managed->accessed_by & by_the_host) != 0 && used < count) list[used++] = VR_CU_DEVICE_CPU;
    while (used < count) list[used++] = VR_CU_DEVICE_INVALID;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_range_get_attribute(struct vr_sim *sim, void *data, uint64_t data_bytes, int attribute, uint64_t address,
                                            uint64_t size_bytes) {
    const struct vr_sim_managed *managed = managed_holding(sim, address, size_bytes);
    if (data == NULL || managed == NULL) return VR_CU_INVALID_VALUE;
    if (attribute == ACCESSED_BY) return accessed_by(managed, data, data_bytes);
    const int32_t values[] = {[READ_MOSTLY] = managed->read_mostly,
                              [PREFERRED] = device_of_location(&managed->preferred),
                              [PREFETCHED] = device_of_location(&managed->prefetched),
                              [PREFERRED_TYPE] = managed->preferred.type,
                              [PREFERRED_ID] = managed->preferred.id,
                              [PREFETCHED_TYPE] = managed->prefetched.type,
                              [PREFETCHED_ID] = managed->prefetched.id};
    if (attribute < READ_MOSTLY || attribute > PREFETCHED_ID || data_bytes != sizeof values[0]) return VR_CU_INVALID_VALUE;
    memcpy(data, &values[attribute], sizeof values[0]);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_range_get_attributes(struct vr_sim *sim, void **data, const uint64_t *data_bytes, const int *attributes,
                                             uint64_t count, uint64_t address, uint64_t size_bytes) {
    if (data == NULL || data_bytes == NULL || attributes == NULL || count == 0) return VR_CU_INVALID_VALUE;
    for (uint64_t i = 0; i < count; i++) {
        const vr_cu_result result = vr_sim_mem_range_get_attribute(sim, data[i], data_bytes[i], attributes[i], address, size_bytes);
        if (result != VR_CU_SUCCESS) return result;
    }
    return VR_CU_SUCCESS;
}
