// sim_multicast.c: multicast objects: a range of addresses for the memory of several devices at once. An object is a handle as
// memory has one, and is mapped, exported and released as memory is; it takes none. What is written through it stays in the object: it does
// not reach the memory that is bound. The driver waits in a bind or a mapping until every device was added; here both are done at once, as
// a process cannot see whom the others add.
#include "sim/sim.h"

// As on H100: what objects and offsets are multiples of, and what is fastest.
#define MINIMUM     (2 * VR_MIB)
#define RECOMMENDED (512 * VR_MIB)

static bool is_granular(uint64_t value) { return value % MINIMUM == 0; }

static struct vr_sim_physical *multicast_physical_at(const struct vr_sim *sim, uint32_t index) {
    return (struct vr_sim_physical *)(void *)vr_sim_slots_item(&sim->physicals, index);
}

static struct vr_sim_physical *object_of(const struct vr_sim *sim, uint64_t handle) {
    struct vr_sim_physical *physical = vr_sim_slots_find(&sim->physicals, handle);
    return physical != NULL && physical->team != 0 ? physical : NULL;
}

static bool any_has_multicast(const struct vr_sim *sim) {
    bool any = false;
    for (uint32_t i = 0; i < sim->options.device_count; i++) any = any || vr_sim_has_multicast(sim, i);
    return any;
}

// --- the object -----------------------------------------------------------------------------------------------------

static vr_cu_result check_prop(const struct vr_sim *sim, const struct vr_cu_multicast_prop *prop) {
    if (prop == NULL || prop->device_count == 0 || prop->device_count > UINT16_MAX || prop->flags != 0) return VR_CU_INVALID_VALUE;
    uint64_t known = sim->file >= 0 ? VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
    if (known != 0 && sim->options.network) known |= VR_CU_MEM_HANDLE_TYPE_FABRIC;
    return any_has_multicast(sim) && (prop->handle_types & ~known) == 0 ? VR_CU_SUCCESS : VR_CU_NOT_SUPPORTED;
}

vr_cu_result vr_sim_multicast_get_granularity(struct vr_sim *sim, uint64_t *granularity, const struct vr_cu_multicast_prop *prop,
                                              int option) {
    const bool known = option == VR_CU_MULTICAST_GRANULARITY_MINIMUM || option == VR_CU_MULTICAST_GRANULARITY_RECOMMENDED;
    if (granularity == NULL || !known) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = check_prop(sim, prop);
    if (result == VR_CU_SUCCESS) *granularity = option == VR_CU_MULTICAST_GRANULARITY_MINIMUM ? MINIMUM : RECOMMENDED;
    return result;
}

vr_cu_result vr_sim_multicast_create(struct vr_sim *sim, uint64_t *handle, const struct vr_cu_multicast_prop *prop) {
    vr_cu_result result = handle == NULL ? VR_CU_INVALID_VALUE : check_prop(sim, prop);
    if (result != VR_CU_SUCCESS) return result;
    if (prop->size_bytes == 0 || prop->size_bytes >= VR_SIM_LIMIT || !is_granular(prop->size_bytes)) return VR_CU_INVALID_VALUE;
    uint32_t index;
    if (vr_sim_slots_take(&sim->physicals, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_physical *object = multicast_physical_at(sim, index);
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

// --- what is bound --------------------------------------------------------------------------------------------------

static bool lies_in(uint64_t offset, uint64_t size_bytes, uint64_t whole) { return size_bytes <= whole && offset <= whole - size_bytes; }

// The first binding of memory of the device within [offset, offset + size_bytes) of the object, from `from` on; the count for none.
static size_t bound_from(const struct vr_sim *sim, size_t from, uint32_t object, uint32_t device, uint64_t offset, uint64_t size_bytes) {
    for (; from < sim->binding_count; from++) {
        const struct vr_sim_binding *binding = &sim->bindings[from];
        const bool apart = binding->offset_bytes >= offset + size_bytes || offset >= binding->offset_bytes + binding->size_bytes;
        if (binding->object == object && multicast_physical_at(sim, binding->memory)->device == device && !apart) break;
    }
    return from;
}

// `device`: whose memory it must be; -1: any.
static vr_cu_result bind_multicast(struct vr_sim *sim, uint64_t handle, int device, uint64_t offset, struct vr_sim_physical *memory,
                                   uint64_t memory_offset, uint64_t size_bytes, uint64_t flags) {
    struct vr_sim_physical *object = object_of(sim, handle);
    if (object == NULL || memory == NULL || memory->team != 0 || flags != 0) return VR_CU_INVALID_VALUE;
    if (size_bytes == 0 || !is_granular(size_bytes) || !is_granular(offset) || !is_granular(memory_offset)) return VR_CU_INVALID_VALUE;
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

// What is mapped at an address, which is from the start of a handle. Memory of pools is not bound here.
static vr_cu_result bind_address(struct vr_sim *sim, uint64_t object, int device, uint64_t offset, uint64_t address, uint64_t size_bytes,
                                 uint64_t flags) {
    const struct vr_sim_range *mapping = vr_sim_ranges_holding(&sim->mappings, address);
    if (mapping == NULL) return vr_sim_ranges_holding(&sim->spaces, address) == NULL ? VR_CU_INVALID_VALUE : VR_CU_NOT_SUPPORTED;
    if (!lies_in(address - mapping->base, size_bytes, mapping->size_bytes)) return VR_CU_INVALID_VALUE;
    return bind_multicast(sim, object, device, offset, multicast_physical_at(sim, (uint32_t)mapping->owner), address - mapping->base,
                          size_bytes, flags);
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
    if (object == NULL || size_bytes == 0 || !is_granular(offset) || !is_granular(size_bytes)) return VR_CU_INVALID_VALUE;
    if (!lies_in(offset, size_bytes, object->size_bytes)) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, device) || (object->members >> device & 1) == 0) return VR_CU_INVALID_DEVICE;
    const uint32_t index = vr_sim_slots_index(&sim->physicals, object);
    for (size_t at = 0; (at = bound_from(sim, at, index, (uint32_t)device, offset, size_bytes)) < sim->binding_count;)
        vr_sim_unbind_at(sim, at);
    return VR_CU_SUCCESS;
}
