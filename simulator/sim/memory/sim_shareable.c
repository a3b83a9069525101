// sim_shareable.c: physical allocations as file descriptors, as handles of the fabric and of DMA buffers, and what a handle says of itself.
#include "sim/sim.h"

static struct vr_sim_physical *find_physical(const struct vr_sim *sim, uint64_t handle) {
    return vr_sim_slots_find(&sim->physicals, handle);
}

vr_cu_result vr_sim_mem_get_allocation_properties(struct vr_sim *sim, struct vr_cu_allocation_prop *prop, uint64_t handle) {
    const struct vr_sim_physical *physical = find_physical(sim, handle);
    if (prop == NULL || physical == NULL || physical->team != 0) return VR_CU_INVALID_VALUE;
    *prop = (struct vr_cu_allocation_prop){
        .type = VR_CU_MEM_ALLOCATION_TYPE_PINNED,
        .requested_handle_types = physical->handle_types,
        .location = {VR_CU_MEM_LOCATION_TYPE_DEVICE, (int32_t)physical->device},
        .compression_type = physical->compress,
        .gpu_direct_rdma_capable = physical->rdma,
    };
    return VR_CU_SUCCESS;
}

// The handle of what is mapped there, once more: it must be released as often as it was descriptor.
vr_cu_result vr_sim_mem_retain_allocation_handle(struct vr_sim *sim, uint64_t *handle, uint64_t address) {
    const struct vr_sim_range *mapping = vr_sim_ranges_holding(&sim->mappings, address);
    if (handle == NULL || mapping == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_physical *physical = (struct vr_sim_physical *)(void *)vr_sim_slots_item(&sim->physicals, (uint32_t)mapping->owner);
    if (physical->references++ == 0) {
        physical->slot.named = true;
        sim->named_physicals++;
    }
    *handle = vr_sim_slots_handle(&sim->physicals, (uint32_t)mapping->owner);
    return VR_CU_SUCCESS;
}

static vr_cu_result write_ticket(struct vr_sim *sim, struct vr_sim_physical *physical) {
    struct vr_sim_ticket ticket = {
        .kind = VR_SIM_TICKET_PHYSICAL,
        .offset = physical->file_offset,
        .size_bytes = physical->size_bytes,
        .device = sim->devices[physical->device].ordinal,
        .handle_types = physical->handle_types,
        .rdma = physical->rdma,
        .compress = physical->compress,
        .beyond = (uint16_t)physical->team,
    };
    const vr_cu_result result = vr_sim_back_share(sim, ticket.offset, ticket.size_bytes);
    return result == VR_CU_SUCCESS ? vr_sim_ticket_write(sim, &ticket, &physical->ticket) : result;
}

vr_cu_result vr_sim_mem_export_to_shareable_handle(struct vr_sim *sim, void *shareable, uint64_t handle, int handle_type, uint64_t flags) {
    struct vr_sim_physical *physical = find_physical(sim, handle);
    if (shareable == NULL || physical == NULL || flags != 0) return VR_CU_INVALID_VALUE;
    const bool fabric = handle_type == VR_CU_MEM_HANDLE_TYPE_FABRIC && sim->options.network;
    if (handle_type != VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && !fabric) return VR_CU_NOT_SUPPORTED;
    if ((physical->handle_types & handle_type) == 0) return VR_CU_INVALID_VALUE;
    if (physical->ticket == 0) {
        const vr_cu_result result = write_ticket(sim, physical);
        if (result != VR_CU_SUCCESS) return result;
    }
    if (fabric) return physical->shared != 0 ? VR_CU_NOT_SUPPORTED : vr_sim_fabric_handle(sim, physical->ticket, shareable);
    int descriptor;
    const int file = physical->shared != 0 ? vr_sim_shared_file(sim, physical->shared - 1) : sim->file;
    const vr_cu_result result = vr_sim_ticket_descriptor(file, physical->ticket, &descriptor);
    if (result == VR_CU_SUCCESS) memcpy(shareable, &descriptor, sizeof descriptor);
    return result;
}

static vr_cu_result take_physical(struct vr_sim *sim, uint32_t shared, uint64_t *handle) {
    struct vr_sim_ticket ticket;
    const vr_cu_result result =
        vr_sim_ticket_read(vr_sim_shared_file(sim, shared), sim->shared[shared].ticket, VR_SIM_TICKET_PHYSICAL, &ticket);
    if (result != VR_CU_SUCCESS) return result;
    uint32_t index, device = 0;
    while (device < sim->options.device_count && sim->devices[device].ordinal != ticket.device) device++;
    if (device == sim->options.device_count) return VR_CU_INVALID_DEVICE; // the program does not see it
    if (vr_sim_slots_take(&sim->physicals, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_physical *physical = (struct vr_sim_physical *)(void *)vr_sim_slots_item(&sim->physicals, index);
    physical->device = device;
    physical->size_bytes = sim->shared[shared].size_bytes;
    physical->file_offset = sim->shared[shared].offset;
    physical->handle_types = ticket.handle_types;
    physical->rdma = ticket.rdma;
    physical->compress = ticket.compress;
    physical->team = ticket.beyond;
    physical->ticket = sim->shared[shared].ticket;
    physical->references = 1;
    physical->shared = shared + 1;
    sim->named_physicals++;
    *handle = vr_sim_slots_handle(&sim->physicals, index);
    return VR_CU_SUCCESS;
}

// The descriptor stays the caller's. Memory that is imported takes none of the device.
vr_cu_result vr_sim_mem_import_from_shareable_handle(struct vr_sim *sim, uint64_t *handle, void *shareable, int handle_type) {
    if (handle == NULL) return VR_CU_INVALID_VALUE;
    const bool fabric = handle_type == VR_CU_MEM_HANDLE_TYPE_FABRIC && sim->options.network;
    if ((handle_type != VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && !fabric) || sim->file < 0) return VR_CU_NOT_SUPPORTED;
    uint32_t shared;
    vr_cu_result result = fabric ? vr_sim_fabric_take(sim, shareable, &shared)
                                 : vr_sim_shared_take_descriptor(sim, shareable, VR_SIM_TICKET_PHYSICAL, &shared);
    if (result != VR_CU_SUCCESS) return result;
    result = take_physical(sim, shared, handle);
    if (result != VR_CU_SUCCESS) vr_sim_shared_give(sim, shared);
    return result;
}

// --- DMA buffers: for network cards, which are not simulated -----------------------------------------------------------------------------

// Where what is at an address ends, if network cards reach it; 0: they do not. *device is that of the memory.
static uint64_t reachable_until(const struct vr_sim *sim, uint64_t address, uint32_t *device) {
    const struct vr_sim_range *mapping = vr_sim_ranges_holding(&sim->mappings, address);
    if (mapping != NULL) {
        const struct vr_sim_physical *physical =
            (const struct vr_sim_physical *)(const void *)vr_sim_slots_item(&sim->physicals, (uint32_t)mapping->owner);
        *device = physical->device;
        return physical->rdma ? mapping->base + mapping->size_bytes : 0;
    }
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->spaces, address);
    if (range == NULL || range->kind != VR_SIM_ALLOCATION) return 0;
    *device = vr_sim_context_find(sim, range->owner)->device;
    return range->base + range->span;
}

vr_cu_result vr_sim_mem_get_handle_for_address_range(struct vr_sim *sim, void *handle, uint64_t address, uint64_t size_bytes,
                                                     int handle_type, uint64_t flags) {
    uint32_t first = 0, device = 0;
    if (!sim->options.network) return VR_CU_NOT_SUPPORTED;
    if (handle == NULL || handle_type != VR_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags > 1 || size_bytes == 0) return VR_CU_INVALID_VALUE;
    if (address % VR_SIM_PAGE_BYTES != 0 || size_bytes % VR_SIM_PAGE_BYTES != 0 || address > UINT64_MAX - size_bytes)
        return VR_CU_INVALID_VALUE;
    for (uint64_t at = address, end; at < address + size_bytes; at = end) {
        end = reachable_until(sim, at, &device);
        if (end == 0 || (at != address && device != first)) return VR_CU_INVALID_VALUE;
        first = device;
    }
    int descriptor;
    if (vr_os_shared_open(&descriptor) != VRAM_OK) return VR_CU_OPERATING_SYSTEM;
    memcpy(handle, &descriptor, sizeof descriptor);
    return VR_CU_SUCCESS;
}
