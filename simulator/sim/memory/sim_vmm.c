// Physical memory, its mappings, multicast objects, and inner memory.
#include "sim/memory/sim_memory.h"
#include "sim/sim.h"
#include "sim/streams/sim_checking.h"

// ---- Lifetime of physical allocations: as long as a handle, a mapping or a multicast binding refers to them. A multicast object that ends
// removes its bindings, and frees memory that only they kept.

// Returns the physical allocation in a slot; a mapping's owner is such a slot.
static struct vr_sim_physical *physical_at(const struct vr_sim *sim, uint64_t index) {
    return (struct vr_sim_physical *)(void *)vr_sim_slots_item(&sim->physicals, (uint32_t)index);
}

// Frees the allocation's bytes and slot. Only memory created here counts as used: multicast objects and imports do not.
static void free_physical(struct vr_sim *sim, struct vr_sim_physical *physical) {
    if (physical->shared == 0 && physical->team == 0) sim->devices[physical->device].used_bytes -= physical->size_bytes;
    vr_sim_back_discard(sim, physical);
    vr_sim_slots_give(&sim->physicals, vr_sim_slots_index(&sim->physicals, physical));
}

static bool is_in_use(const struct vr_sim_physical *physical) {
    return physical->slot.named || physical->mappings > 0 || physical->bindings > 0;
}

// Removes the binding at index `at` and moves the last one there. sim_unbind_all() removes all bindings of an object.
static void sim_unbind_at(struct vr_sim *sim, size_t at) {
    struct vr_sim_physical *memory = physical_at(sim, sim->bindings[at].memory);
    sim->bindings[at] = sim->bindings[--sim->binding_count];
    memory->bindings--;
    if (!is_in_use(memory)) free_physical(sim, memory); // memory has no bindings of its own to remove
}

static void sim_unbind_all(struct vr_sim *sim, uint32_t object) {
    for (size_t at = 0; at < sim->binding_count;) {
        if (sim->bindings[at].object == object)
            sim_unbind_at(sim, at);
        else
            at++;
    }
}

// Frees a physical allocation once it has no handle, mapping or binding.
static void sim_physical_collect(struct vr_sim *sim, struct vr_sim_physical *physical) {
    if (is_in_use(physical)) return;
    if (physical->team != 0) sim_unbind_all(sim, vr_sim_slots_index(&sim->physicals, physical));
    free_physical(sim, physical);
}

// ---- Inner memory, which the driver allocates for objects of a program.

vr_cu_result vr_sim_inner_alloc(struct vr_sim *sim, uint64_t context, uint64_t size_bytes, uint64_t *address) {
    const uint32_t number = vr_sim_context_find(sim, context)->device;
    struct vr_sim_device *device = &sim->devices[number];
    if (size_bytes > VR_SIM_LIMIT || !vr_sim_has_room(device, size_bytes)) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_place place = {0};
    vr_cu_result result = vr_sim_place_chunk(sim, number, size_bytes, &place);
    if (result == VR_CU_SUCCESS) result = vr_sim_back_place(sim, &place, true);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_range range = {.base = place.address,
                                       .span = place.span,
                                       .size_bytes = size_bytes,
                                       .kind = VR_SIM_INNER,
                                       .owner = context,
                                       .read_mask = vr_sim_back_keep(sim, place.span)};
    if (vr_sim_ranges_insert(&sim->spaces, &range) != VRAM_OK) {
        vr_sim_back_remove(sim, place.address, place.span);
        vr_sim_place_lost(sim, &place);
        return VR_CU_OUT_OF_MEMORY;
    }
    device->used_bytes += size_bytes;
    if (VR_UNLIKELY(sim->checking != NULL)) {
        vr_check_segment(sim->checking->check, place.address, size_bytes, false,
                         vr_sim_checking_place(sim, "the making of a module or array"));
        vr_check_written(sim->checking->check, place.address); // a module's variables have values
    }
    *address = place.address;
    return VR_CU_SUCCESS;
}

void vr_sim_inner_free(struct vr_sim *sim, uint64_t address) {
    const struct vr_sim_range *range = vr_sim_ranges_at(&sim->spaces, address);
    const uint32_t device = vr_sim_context_find(sim, range->owner)->device;
    const uint64_t span = range->span;
    if (VR_UNLIKELY(sim->checking != NULL))
        vr_check_segment_end(sim->checking->check, address, span, true, vr_sim_checking_place(sim, "the end of a module or array"));
    sim->devices[device].used_bytes -= range->size_bytes;
    vr_sim_back_drop(sim, range, range->base, range->span);
    vr_sim_back_remove(sim, range->base, range->span);
    vr_sim_ranges_remove(&sim->spaces, address);
    vr_sim_place_freed(sim, device, address, span);
}

// ---- Virtual memory management: physical allocations, reservations and mappings.

static bool is_granular(uint64_t value) { return value % VR_SIM_GRANULARITY == 0; }

// --- physical allocations -------------------------------------------------------------------------------------------

static vr_cu_result check_prop(const struct vr_sim *sim, const struct vr_cu_allocation_prop *prop) {
    if (prop == NULL || prop->type != VR_CU_MEM_ALLOCATION_TYPE_PINNED) return VR_CU_INVALID_VALUE;
    if (prop->location.type != VR_CU_MEM_LOCATION_TYPE_DEVICE) return VR_CU_NOT_SUPPORTED;
    if (prop->location.id < 0 || (uint32_t)prop->location.id >= sim->options.device_count) return VR_CU_INVALID_DEVICE;
    int32_t known = sim->file >= 0 ? VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0; // without bytes there is nothing to share
    if (known != 0 && sim->options.network) known |= VR_CU_MEM_HANDLE_TYPE_FABRIC;
    return (prop->requested_handle_types & ~known) == 0 ? VR_CU_SUCCESS : VR_CU_NOT_SUPPORTED;
}

vr_cu_result vr_sim_mem_get_allocation_granularity(struct vr_sim *sim, uint64_t *granularity, const struct vr_cu_allocation_prop *prop,
                                                   int option) {
    if (granularity == NULL || option < VR_CU_MEM_GRANULARITY_MINIMUM || option > VR_CU_MEM_GRANULARITY_RECOMMENDED)
        return VR_CU_INVALID_VALUE;
    vr_cu_result result = check_prop(sim, prop);
    if (result == VR_CU_SUCCESS) *granularity = VR_SIM_GRANULARITY;
    return result;
}

vr_cu_result vr_sim_mem_create(struct vr_sim *sim, uint64_t *handle, uint64_t size_bytes, const struct vr_cu_allocation_prop *prop,
                               uint64_t flags) {
    if (handle == NULL || size_bytes == 0 || !is_granular(size_bytes) || flags != 0) return VR_CU_INVALID_VALUE;
    vr_cu_result result = check_prop(sim, prop);
    if (result != VR_CU_SUCCESS) return result;
    struct vr_sim_device *device = &sim->devices[prop->location.id];
    if (!vr_sim_has_room(device, size_bytes)) return VR_CU_OUT_OF_MEMORY;
    uint32_t index;
    if (vr_sim_slots_take(&sim->physicals, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_physical *physical = physical_at(sim, index);
    physical->device = (uint32_t)prop->location.id;
    physical->size_bytes = size_bytes;
    physical->references = 1;
    physical->handle_types = prop->requested_handle_types;
    physical->rdma = prop->gpu_direct_rdma_capable;
    physical->compress = prop->compression_type;
    result = vr_sim_back_create(sim, physical);
    if (result != VR_CU_SUCCESS) {
        vr_sim_slots_give(&sim->physicals, index);
        return result;
    }
    device->used_bytes += size_bytes;
    sim->named_physicals++;
    vr_sim_charge_create(sim, size_bytes);
    *handle = vr_sim_slots_handle(&sim->physicals, index);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_release(struct vr_sim *sim, uint64_t handle) {
    struct vr_sim_physical *physical = vr_sim_slots_find(&sim->physicals, handle);
    if (physical == NULL) return VR_CU_INVALID_VALUE;
    if (--physical->references > 0) return VR_CU_SUCCESS;
    physical->slot.named = false;
    sim->named_physicals--;
    sim_physical_collect(sim, physical);
    return VR_CU_SUCCESS;
}

// --- reservations ---------------------------------------------------------------------------------------------------

vr_cu_result vr_sim_mem_address_reserve(struct vr_sim *sim, uint64_t *address, uint64_t size_bytes, uint64_t alignment, uint64_t hint,
                                        uint64_t flags) {
    if (address == NULL || size_bytes == 0 || !is_granular(size_bytes) || flags != 0) return VR_CU_INVALID_VALUE;
    if ((alignment != 0 && !vr_is_power_of_2(alignment)) || hint % VR_SIM_PAGE_BYTES != 0) return VR_CU_INVALID_VALUE;
    if (size_bytes >= VR_SIM_LIMIT || alignment >= VR_SIM_LIMIT) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_place place;
    vr_cu_result result = vr_sim_place_reservation(sim, size_bytes, alignment, hint, &place);
    if (result == VR_CU_SUCCESS) result = vr_sim_back_place(sim, &place, false);
    if (result != VR_CU_SUCCESS) return result;
    struct vr_sim_range range = {.base = place.address, .span = size_bytes, .size_bytes = size_bytes, .kind = VR_SIM_RESERVATION};
    if (vr_sim_ranges_insert(&sim->spaces, &range) != VRAM_OK) {
        vr_sim_back_remove(sim, place.address, place.span);
        return VR_CU_OUT_OF_MEMORY;
    }
    *address = place.address;
    return VR_CU_SUCCESS;
}

// Frees a reservation, which must be whole and without mappings.
vr_cu_result vr_sim_mem_address_free(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    const struct vr_sim_range *range = vr_sim_ranges_at(&sim->spaces, address);
    if (range == NULL || range->kind != VR_SIM_RESERVATION || range->size_bytes != size_bytes) return VR_CU_INVALID_VALUE;
    if (vr_sim_ranges_overlap(&sim->mappings, address, size_bytes) != NULL) return VR_CU_INVALID_VALUE;
    vr_sim_back_remove(sim, address, size_bytes);
    vr_sim_ranges_remove(&sim->spaces, address);
    return VR_CU_SUCCESS;
}

// --- mappings -------------------------------------------------------------------------------------------------------

// Maps a handle. The driver only supports offset 0.
vr_cu_result vr_sim_mem_map(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, uint64_t offset_bytes, uint64_t handle,
                            uint64_t flags) {
    if (size_bytes == 0 || !is_granular(address) || !is_granular(size_bytes) || offset_bytes != 0 || flags != 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_physical *physical = vr_sim_slots_find(&sim->physicals, handle);
    if (physical == NULL || size_bytes > physical->size_bytes) return VR_CU_INVALID_VALUE;
    const struct vr_sim_range *space = vr_sim_ranges_holding(&sim->spaces, address);
    if (space == NULL || space->kind != VR_SIM_RESERVATION || size_bytes > vr_sim_range_end(space) - address) return VR_CU_INVALID_VALUE;
    if (vr_sim_ranges_overlap(&sim->mappings, address, size_bytes) != NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_range range = {.base = address, .span = size_bytes, .size_bytes = size_bytes};
    range.owner = vr_sim_slots_index(&sim->physicals, physical);
    vr_cu_result result = vr_sim_back_map(sim, physical, address, size_bytes);
    if (result != VR_CU_SUCCESS) return result;
    if (vr_sim_ranges_insert(&sim->mappings, &range) != VRAM_OK) {
        (void)vr_sim_back_unmap(sim, address, size_bytes);
        return VR_CU_OUT_OF_MEMORY;
    }
    physical->mappings++;
    if (VR_UNLIKELY(sim->checking != NULL))
        vr_check_segment(sim->checking->check, address, size_bytes, true, vr_sim_checking_place(sim, "cuMemMap"));
    return VR_CU_SUCCESS;
}

// Returns the number of whole, adjacent mappings that make up [address, address + size_bytes), or 0 if they do not.
static uint64_t count_mappings(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    if (size_bytes == 0 || address >= VR_SIM_LIMIT || size_bytes > VR_SIM_LIMIT) return 0;
    uint64_t count = 0, at = address;
    while (at < address + size_bytes) {
        const struct vr_sim_range *mapping = vr_sim_ranges_at(&sim->mappings, at);
        if (mapping == NULL) return 0;
        at = vr_sim_range_end(mapping);
        count++;
    }
    return at == address + size_bytes ? count : 0;
}

static void remove_mapping(struct vr_sim *sim, const struct vr_sim_range *mapping) {
    struct vr_sim_physical *physical = physical_at(sim, mapping->owner);
    vr_sim_ranges_remove(&sim->mappings, mapping->base);
    physical->mappings--;
    sim_physical_collect(sim, physical);
}

vr_cu_result vr_sim_mem_unmap(struct vr_sim *sim, uint64_t address, uint64_t size_bytes) {
    uint64_t count = count_mappings(sim, address, size_bytes);
    if (count == 0) return VR_CU_INVALID_VALUE;
    vr_cu_result result = vr_sim_back_unmap(sim, address, size_bytes);
    if (result != VR_CU_SUCCESS) return result;
    for (uint64_t at = address; at < address + size_bytes;) {
        const struct vr_sim_range *mapping = vr_sim_ranges_at(&sim->mappings, at);
        at = vr_sim_range_end(mapping);
        remove_mapping(sim, mapping);
    }
    if (VR_UNLIKELY(sim->checking != NULL))
        vr_check_segment_end(sim->checking->check, address, size_bytes, false, vr_sim_checking_place(sim, "cuMemUnmap"));
    vr_sim_charge_unmap(sim, count);
    return VR_CU_SUCCESS;
}

static vr_cu_result check_access(const struct vr_sim *sim, const struct vr_cu_access_desc *access, uint64_t count) {
    if (access == NULL || count == 0 || count > VR_SIM_MAX_DEVICES) return VR_CU_INVALID_VALUE;
    for (uint64_t i = 0; i < count; i++) {
        int32_t flags = access[i].flags;
        bool known = flags == VR_CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == VR_CU_MEM_ACCESS_FLAGS_PROT_READ ||
                     flags == VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (!known) return VR_CU_INVALID_VALUE;
        if (access[i].location.type != VR_CU_MEM_LOCATION_TYPE_DEVICE) return VR_CU_NOT_SUPPORTED;
        if (access[i].location.id < 0 || (uint32_t)access[i].location.id >= sim->options.device_count) return VR_CU_INVALID_DEVICE;
    }
    return VR_CU_SUCCESS;
}

// Checks access rights. Access needs a peer of the memory's device, not enabled peer access; for a multicast object, one of its devices.
static bool can_have_access(const struct vr_sim *sim, const struct vr_sim_range *mapping, const struct vr_cu_access_desc *access,
                            uint64_t count) {
    const struct vr_sim_physical *physical = physical_at(sim, mapping->owner);
    const uint32_t owner = physical->device;
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t device = (uint32_t)access[i].location.id;
        if (access[i].flags == VR_CU_MEM_ACCESS_FLAGS_PROT_NONE) continue;
        if (physical->team != 0 && (physical->members >> device & 1) == 0) return false;
        if (physical->team == 0 && device != owner && !vr_sim_are_peers(sim, device, owner)) return false;
    }
    return true;
}

vr_cu_result vr_sim_mem_set_access(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, const struct vr_cu_access_desc *access,
                                   uint64_t count) {
    vr_cu_result result = check_access(sim, access, count);
    if (result != VR_CU_SUCCESS) return result;
    if (count_mappings(sim, address, size_bytes) == 0) return VR_CU_INVALID_VALUE;
    for (uint64_t at = address; at < address + size_bytes;) {
        const struct vr_sim_range *mapping = vr_sim_ranges_at(&sim->mappings, at);
        if (!can_have_access(sim, mapping, access, count)) return VR_CU_INVALID_DEVICE;
        at = vr_sim_range_end(mapping);
    }
    for (uint64_t at = address; at < address + size_bytes;) {
        struct vr_sim_range *mapping = vr_sim_ranges_at(&sim->mappings, at);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t bit = (uint64_t)1 << access[i].location.id;
            bool read = access[i].flags != VR_CU_MEM_ACCESS_FLAGS_PROT_NONE;
            bool write = access[i].flags == VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            mapping->read_mask = read ? mapping->read_mask | bit : mapping->read_mask & ~bit;
            mapping->write_mask = write ? mapping->write_mask | bit : mapping->write_mask & ~bit;
        }
        result = vr_sim_back_protect(sim, mapping->base, mapping->span, mapping->read_mask != 0, mapping->write_mask != 0);
        if (result != VR_CU_SUCCESS) return result;
        at = vr_sim_range_end(mapping);
    }
    vr_sim_charge_set_access(sim, size_bytes, count);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_get_access(struct vr_sim *sim, uint64_t *flags, const struct vr_cu_location *location, uint64_t address) {
    if (flags == NULL || location == NULL) return VR_CU_INVALID_VALUE;
    const struct vr_cu_access_desc asked = {.location = *location};
    const vr_cu_result result = check_access(sim, &asked, 1);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_range *mapping = vr_sim_ranges_holding(&sim->mappings, address);
    if (mapping == NULL) return VR_CU_INVALID_VALUE;
    const uint64_t bit = (uint64_t)1 << location->id;
    *flags = VR_CU_MEM_ACCESS_FLAGS_PROT_NONE;
    if ((mapping->read_mask & bit) != 0) *flags = VR_CU_MEM_ACCESS_FLAGS_PROT_READ;
    if ((mapping->write_mask & bit) != 0) *flags = VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return VR_CU_SUCCESS;
}

void vr_sim_free_vmm(struct vr_sim *sim) {
    const struct vr_sim_range *range;
    while ((range = vr_sim_ranges_next(&sim->mappings, 0)) != NULL) remove_mapping(sim, range);
    while ((range = vr_sim_ranges_next(&sim->spaces, 0)) != NULL) { // only reservations are left
        vr_sim_back_remove(sim, range->base, range->span);
        vr_sim_ranges_remove(&sim->spaces, range->base);
    }
    for (uint32_t i = 0; i < sim->physicals.used; i++)
        if (physical_at(sim, i)->slot.live && physical_at(sim, i)->team != 0) sim_unbind_all(sim, i);
    for (uint32_t i = 0; i < sim->physicals.used; i++) { // handles never released
        struct vr_sim_physical *physical = physical_at(sim, i);
        if (!physical->slot.live) continue;
        physical->slot.named = false;
        sim_physical_collect(sim, physical);
    }
}

// ---- Multicast objects: address ranges for the memory of several devices at once. An object is a handle like that of memory: it is
// mapped, exported and released the same way, but takes no memory. Data written through it stays in the object and does not reach the bound
// memory. The driver blocks in a bind or a mapping until every device was added; here both return at once, because a process cannot see
// which devices other processes add.

// As on H100: granularity of objects and offsets, and the recommended one.
#define MINIMUM     (2 * VR_MIB)
#define RECOMMENDED (512 * VR_MIB)

static bool is_multicast_granular(uint64_t value) { return value % MINIMUM == 0; }

static struct vr_sim_physical *object_of(const struct vr_sim *sim, uint64_t handle) {
    struct vr_sim_physical *physical = vr_sim_slots_find(&sim->physicals, handle);
    return physical != NULL && physical->team != 0 ? physical : NULL;
}

static bool any_has_multicast(const struct vr_sim *sim) {
    bool any = false;
    for (uint32_t i = 0; i < sim->options.device_count; i++) any = any || vr_sim_has_multicast(sim, i);
    return any;
}

// --- objects --------------------------------------------------------------------------------------------------------

static vr_cu_result check_multicast_prop(const struct vr_sim *sim, const struct vr_cu_multicast_prop *prop) {
    if (prop == NULL || prop->device_count == 0 || prop->device_count > UINT16_MAX || prop->flags != 0) return VR_CU_INVALID_VALUE;
    uint64_t known = sim->file >= 0 ? VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
    if (known != 0 && sim->options.network) known |= VR_CU_MEM_HANDLE_TYPE_FABRIC;
    return any_has_multicast(sim) && (prop->handle_types & ~known) == 0 ? VR_CU_SUCCESS : VR_CU_NOT_SUPPORTED;
}

vr_cu_result vr_sim_multicast_get_granularity(struct vr_sim *sim, uint64_t *granularity, const struct vr_cu_multicast_prop *prop,
                                              int option) {
    const bool known = option == VR_CU_MULTICAST_GRANULARITY_MINIMUM || option == VR_CU_MULTICAST_GRANULARITY_RECOMMENDED;
    if (granularity == NULL || !known) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = check_multicast_prop(sim, prop);
    if (result == VR_CU_SUCCESS) *granularity = option == VR_CU_MULTICAST_GRANULARITY_MINIMUM ? MINIMUM : RECOMMENDED;
    return result;
}

vr_cu_result vr_sim_multicast_create(struct vr_sim *sim, uint64_t *handle, const struct vr_cu_multicast_prop *prop) {
    vr_cu_result result = handle == NULL ? VR_CU_INVALID_VALUE : check_multicast_prop(sim, prop);
    if (result != VR_CU_SUCCESS) return result;
    if (prop->size_bytes == 0 || prop->size_bytes >= VR_SIM_LIMIT || !is_multicast_granular(prop->size_bytes)) return VR_CU_INVALID_VALUE;
    uint32_t index;
    if (vr_sim_slots_take(&sim->physicals, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_physical *object = physical_at(sim, index);
    object->size_bytes = prop->size_bytes;
    object->references = 1;
    object->handle_types = (int32_t)prop->handle_types;
    object->team = prop->device_count;
    result = vr_sim_back_create(sim, object);
    if (result != VR_CU_SUCCESS) {
        vr_sim_slots_give(&sim->physicals, index);
        return result;
    }
    sim->named_physicals++;
    *handle = vr_sim_slots_handle(&sim->physicals, index);
    return VR_CU_SUCCESS;
}

static uint32_t count_of(uint64_t members) {
    uint32_t count = 0;
    for (; members != 0; members &= members - 1) count++;
    return count;
}

vr_cu_result vr_sim_multicast_add_device(struct vr_sim *sim, uint64_t handle, int device) {
    struct vr_sim_physical *object = object_of(sim, handle);
    if (object == NULL) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    if (!vr_sim_has_multicast(sim, (uint32_t)device)) return VR_CU_NOT_SUPPORTED;
    const uint64_t bit = (uint64_t)1 << device;
    if ((object->members & bit) != 0 || count_of(object->members) >= object->team) return VR_CU_INVALID_VALUE;
    object->members |= bit;
    return VR_CU_SUCCESS;
}

// --- bindings -------------------------------------------------------------------------------------------------------

static bool lies_in(uint64_t offset, uint64_t size_bytes, uint64_t whole) { return size_bytes <= whole && offset <= whole - size_bytes; }

// Returns the index of the first binding, from `from` on, of the device's memory within [offset, offset + size_bytes) of the object;
// binding_count if nothing matches.
static size_t bound_from(const struct vr_sim *sim, size_t from, uint32_t object, uint32_t device, uint64_t offset, uint64_t size_bytes) {
    for (; from < sim->binding_count; from++) {
        const struct vr_sim_binding *binding = &sim->bindings[from];
        const bool apart = binding->offset_bytes >= offset + size_bytes || offset >= binding->offset_bytes + binding->size_bytes;
        if (binding->object == object && physical_at(sim, binding->memory)->device == device && !apart) break;
    }
    return from;
}

// Binds memory to an object. `device` must own the memory; -1: any device.
static vr_cu_result bind_multicast(struct vr_sim *sim, uint64_t handle, int device, uint64_t offset, struct vr_sim_physical *memory,
                                   uint64_t memory_offset, uint64_t size_bytes, uint64_t flags) {
    struct vr_sim_physical *object = object_of(sim, handle);
    if (object == NULL || memory == NULL || memory->team != 0 || flags != 0) return VR_CU_INVALID_VALUE;
    if (size_bytes == 0 || !is_multicast_granular(size_bytes) || !is_multicast_granular(offset) || !is_multicast_granular(memory_offset))
        return VR_CU_INVALID_VALUE;
    if (!lies_in(offset, size_bytes, object->size_bytes) || !lies_in(memory_offset, size_bytes, memory->size_bytes))
        return VR_CU_INVALID_VALUE;
    const bool is_member = (object->members >> memory->device & 1) != 0;
    if (!is_member || (device >= 0 && (uint32_t)device != memory->device)) return VR_CU_INVALID_DEVICE;
    if ((object->handle_types != 0 || object->shared != 0) && memory->handle_types == 0) return VR_CU_INVALID_VALUE;
    const uint32_t index = vr_sim_slots_index(&sim->physicals, object);
    if (bound_from(sim, 0, index, memory->device, offset, size_bytes) < sim->binding_count) return VR_CU_INVALID_VALUE;
    if (VR_GROW(sim, bindings, sim->binding_count + 1) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    sim->bindings[sim->binding_count++] = (struct vr_sim_binding){
        .object = index, .memory = vr_sim_slots_index(&sim->physicals, memory), .offset_bytes = offset, .size_bytes = size_bytes};
    memory->bindings++;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_multicast_bind_mem(struct vr_sim *sim, uint64_t object, uint64_t offset, uint64_t memory, uint64_t memory_offset,
                                       uint64_t size_bytes, uint64_t flags) {
    return bind_multicast(sim, object, -1, offset, vr_sim_slots_find(&sim->physicals, memory), memory_offset, size_bytes, flags);
}

vr_cu_result vr_sim_multicast_bind_mem_on(struct vr_sim *sim, uint64_t object, int device, uint64_t offset, uint64_t memory,
                                          uint64_t memory_offset, uint64_t size_bytes, uint64_t flags) {
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    return bind_multicast(sim, object, device, offset, vr_sim_slots_find(&sim->physicals, memory), memory_offset, size_bytes, flags);
}

// Binds the memory mapped at an address; mappings begin at the start of a handle. Memory of pools cannot be bound here.
static vr_cu_result bind_address(struct vr_sim *sim, uint64_t object, int device, uint64_t offset, uint64_t address, uint64_t size_bytes,
                                 uint64_t flags) {
    const struct vr_sim_range *mapping = vr_sim_ranges_holding(&sim->mappings, address);
    if (mapping == NULL) return vr_sim_ranges_holding(&sim->spaces, address) == NULL ? VR_CU_INVALID_VALUE : VR_CU_NOT_SUPPORTED;
    if (!lies_in(address - mapping->base, size_bytes, mapping->size_bytes)) return VR_CU_INVALID_VALUE;
    return bind_multicast(sim, object, device, offset, physical_at(sim, mapping->owner), address - mapping->base, size_bytes, flags);
}

vr_cu_result vr_sim_multicast_bind_addr(struct vr_sim *sim, uint64_t object, uint64_t offset, uint64_t address, uint64_t size_bytes,
                                        uint64_t flags) {
    return bind_address(sim, object, -1, offset, address, size_bytes, flags);
}

vr_cu_result vr_sim_multicast_bind_addr_on(struct vr_sim *sim, uint64_t object, int device, uint64_t offset, uint64_t address,
                                           uint64_t size_bytes, uint64_t flags) {
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    return bind_address(sim, object, device, offset, address, size_bytes, flags);
}

vr_cu_result vr_sim_multicast_unbind(struct vr_sim *sim, uint64_t handle, int device, uint64_t offset, uint64_t size_bytes) {
    const struct vr_sim_physical *object = object_of(sim, handle);
    if (object == NULL || size_bytes == 0 || !is_multicast_granular(offset) || !is_multicast_granular(size_bytes))
        return VR_CU_INVALID_VALUE;
    if (!lies_in(offset, size_bytes, object->size_bytes)) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device) || (object->members >> device & 1) == 0) return VR_CU_INVALID_DEVICE;
    const uint32_t index = vr_sim_slots_index(&sim->physicals, object);
    for (size_t at = 0; (at = bound_from(sim, at, index, (uint32_t)device, offset, size_bytes)) < sim->binding_count;)
        sim_unbind_at(sim, at);
    return VR_CU_SUCCESS;
}
