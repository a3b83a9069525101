// Sharing memory and events with other processes: IPC handles, and shareable handles of physical memory.
#include "sim/sim.h"
#include "sim/streams/sim_checking.h"
#include "sim/streams/sim_streams.h"

// ---- Handles of 64 bytes that name a process, its memory file, and a ticket in the file.

static const char magic[8] = "vramipc1";

struct handle {
    char magic[8];
    uint64_t process, place, seal;
    int32_t file;
    char padding[28];
};
_Static_assert(sizeof(struct handle) == sizeof(struct vr_cu_ipc_handle), "a handle has 64 bytes");

// Combines the ticket's nonce and the process: Linux lists a process's files under the id of each of its threads, too.
static uint64_t seal_of(const struct vr_sim_ticket *ticket, uint64_t process) { return vr_mix64(ticket->nonce ^ vr_mix64(process)); }

// *key: by which the checkers of all processes know the ticket's memory or event.
static vr_cu_result fill_handle(const struct vr_sim *sim, uint64_t place, enum vr_sim_ticket_kind kind, struct vr_cu_ipc_handle *handle,
                                uint64_t *key) {
    struct vr_sim_ticket ticket;
    const vr_cu_result result = vr_sim_ticket_read(sim->file, place, kind, &ticket);
    if (result != VR_CU_SUCCESS) return result;
    const uint64_t process = vr_os_process_id();
    struct handle made = {.process = process, .place = place, .seal = seal_of(&ticket, process), .file = sim->file};
    *key = ticket.nonce;
    memcpy(made.magic, magic, sizeof magic);
    memcpy(handle, &made, sizeof made);
    return VR_CU_SUCCESS;
}

// Makes a fabric handle (64 bytes) for the ticket of a physical allocation.
static vr_cu_result sim_fabric_handle(const struct vr_sim *sim, uint64_t ticket, void *handle) {
    struct vr_cu_ipc_handle made;
    uint64_t key;
    const vr_cu_result result = fill_handle(sim, ticket, VR_SIM_TICKET_PHYSICAL, &made, &key);
    if (result == VR_CU_SUCCESS) memcpy(handle, &made, sizeof made);
    return result;
}

// Opens the file that a handle names and checks that the ticket still belongs to the handle.
static vr_cu_result open_handle(const struct vr_sim *sim, const struct vr_cu_ipc_handle *handle, enum vr_sim_ticket_kind kind,
                                struct handle *named, int *file, uint64_t *key) {
    struct vr_sim_ticket ticket;
    memcpy(named, handle, sizeof *named);
    if (memcmp(named->magic, magic, sizeof magic) != 0) return VR_CU_INVALID_VALUE;
    if (sim->file < 0) return VR_CU_NOT_SUPPORTED;
    // An instance cannot open its own exports.
    if (named->process == vr_os_process_id() && named->file == sim->file) return VR_CU_INVALID_CONTEXT;
    if (vr_os_shared_open_of(named->process, named->file, file) != VRAM_OK) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_ticket_read(*file, named->place, kind, &ticket);
    *key = ticket.nonce;
    if (result == VR_CU_SUCCESS && named->seal == seal_of(&ticket, named->process)) return VR_CU_SUCCESS;
    vr_os_shared_close(*file);
    return VR_CU_INVALID_VALUE;
}

// Takes a reference to the ticket of a fabric handle, as vr_sim_shared_take(). The handle may be of this process, as a descriptor may.
static vr_cu_result sim_fabric_take(struct vr_sim *sim, const void *handle, uint32_t *index) {
    struct handle named;
    struct vr_sim_ticket ticket;
    int file;
    memcpy(&named, handle, sizeof named);
    if (memcmp(named.magic, magic, sizeof magic) != 0) return VR_CU_INVALID_VALUE;
    if (vr_os_shared_open_of(named.process, named.file, &file) != VRAM_OK) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_ticket_read(file, named.place, VR_SIM_TICKET_PHYSICAL, &ticket);
    if (result == VR_CU_SUCCESS && named.seal == seal_of(&ticket, named.process))
        return vr_sim_shared_take(sim, file, named.place, VR_SIM_TICKET_PHYSICAL, index);
    vr_os_shared_close(file);
    return VR_CU_INVALID_VALUE;
}

// --- memory ---------------------------------------------------------------------------------------------------------

vr_cu_result vr_sim_ipc_get_mem_handle(struct vr_sim *sim, struct vr_cu_ipc_handle *handle, uint64_t address) {
    struct vr_sim_range *range = vr_sim_ranges_at(&sim->spaces, address);
    if (handle == NULL || range == NULL || range->kind != VR_SIM_ALLOCATION) return VR_CU_INVALID_VALUE;
    if (sim->file < 0) return VR_CU_NOT_SUPPORTED;
    if (VR_UNLIKELY(sim->checking != NULL)) vr_check_written(sim->checking->check, 0); // by the other process, perhaps
    if (range->write_mask == 0) {
        struct vr_sim_ticket ticket = {
            .kind = VR_SIM_TICKET_ALLOCATION,
            .offset = range->read_mask,
            .size_bytes = vr_sim_back_span(sim, range),
            .within = sim->options.backed ? range->base - vr_sim_first_page(range->base) : 0,
            .device = sim->devices[vr_sim_context_find(sim, range->owner)->device].ordinal,
        };
        vr_cu_result result = vr_sim_back_share(sim, ticket.offset, ticket.size_bytes);
        if (result == VR_CU_SUCCESS) result = vr_sim_ticket_write(sim, &ticket, &range->write_mask);
        if (result != VR_CU_SUCCESS) return result;
    }
    uint64_t key;
    const vr_cu_result result = fill_handle(sim, range->write_mask, VR_SIM_TICKET_ALLOCATION, handle, &key);
    if (VR_UNLIKELY(sim->checking != NULL) && result == VR_CU_SUCCESS)
        vr_check_share(sim->checking->check, range->base, range->size_bytes, key, true);
    return result;
}

struct vr_sim_range *vr_sim_import_find(const struct vr_sim *sim, const struct vr_sim_range *like) {
    struct vr_sim_range *range = vr_sim_ranges_next(&sim->spaces, 0);
    for (; range != NULL; range = vr_sim_ranges_next(&sim->spaces, vr_sim_range_end(range)))
        if (range->kind == like->kind && range->owner == like->owner && range->read_mask == like->read_mask) return range;
    return NULL;
}

vr_cu_result vr_sim_import_place(struct vr_sim *sim, const struct vr_sim_range *like, uint64_t within, uint64_t beyond, uint64_t *address) {
    const struct vr_sim_shared *shared = &sim->shared[like->read_mask];
    const uint64_t size_bytes = shared->size_bytes;
    struct vr_sim_place place;
    vr_cu_result result = vr_sim_place_reservation(sim, size_bytes, 0, 0, &place);
    if (result == VR_CU_SUCCESS) result = vr_sim_back_place(sim, &place, false);
    if (result != VR_CU_SUCCESS) return result;
    const bool mapped = !sim->options.backed || vr_os_shared_map(vr_sim_shared_file(sim, (uint32_t)like->read_mask), shared->offset,
                                                                 size_bytes, place.address) == VRAM_OK;
    if (!mapped) result = VR_CU_OUT_OF_MEMORY;
    if (result == VR_CU_SUCCESS) result = vr_sim_back_protect(sim, place.address, size_bytes, true, true);
    struct vr_sim_range range = *like;
    range.base = place.address + within;
    range.span = size_bytes - within;
    range.size_bytes = size_bytes - within - beyond;
    range.write_mask = 1;
    if (result == VR_CU_SUCCESS && vr_sim_ranges_insert(&sim->spaces, &range) != VRAM_OK) result = VR_CU_OUT_OF_MEMORY;
    if (result != VR_CU_SUCCESS)
        vr_sim_back_remove(sim, place.address, size_bytes);
    else
        *address = range.base;
    return result;
}

// The memory has a life of its own here, from its opening to its closing.
static void check_opened(struct vr_sim *sim, uint64_t address, uint64_t key) {
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->spaces, address);
    if (range == NULL) return;
    vr_check_segment(sim->checking->check, range->base, range->size_bytes, true, vr_sim_checking_place(sim, "cuIpcOpenMemHandle"));
    vr_check_share(sim->checking->check, range->base, range->size_bytes, key, false);
}

static vr_cu_result import_shared(struct vr_sim *sim, const struct vr_sim_context *context, uint32_t shared, uint64_t *address) {
    struct vr_sim_ticket ticket;
    const uint64_t handle = vr_sim_context_handle(sim, context);
    vr_cu_result result =
        vr_sim_ticket_read(vr_sim_shared_file(sim, shared), sim->shared[shared].ticket, VR_SIM_TICKET_ALLOCATION, &ticket);
    if (result != VR_CU_SUCCESS) return result;
    const uint32_t own = sim->devices[context->device].ordinal; // the exporting device need not be visible in this process
    if (ticket.device != own && !vr_sim_options_peers(&sim->options, own, ticket.device)) return VR_CU_PEER_ACCESS_UNSUPPORTED;
    const struct vr_sim_range like = {.kind = VR_SIM_IMPORT, .owner = handle, .read_mask = shared};
    struct vr_sim_range *known = vr_sim_import_find(sim, &like);
    if (known == NULL) {
        result = vr_sim_import_place(sim, &like, ticket.within, 0, address);
        if (VR_UNLIKELY(sim->checking != NULL) && result == VR_CU_SUCCESS) check_opened(sim, *address, ticket.nonce);
        return result;
    }
    known->write_mask++;
    *address = known->base;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ipc_open_mem_handle(struct vr_sim *sim, uint64_t *address, struct vr_cu_ipc_handle handle, unsigned flags) {
    if (address == NULL || flags != VR_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    struct handle named;
    int file;
    uint32_t shared;
    uint64_t key;
    result = open_handle(sim, &handle, VR_SIM_TICKET_ALLOCATION, &named, &file, &key);
    if (result == VR_CU_SUCCESS) result = vr_sim_shared_take(sim, file, named.place, VR_SIM_TICKET_ALLOCATION, &shared);
    if (result != VR_CU_SUCCESS) return result;
    result = import_shared(sim, context, shared, address);
    if (result != VR_CU_SUCCESS) vr_sim_shared_give(sim, shared);
    return result;
}

// Releases one reference to the entry per open.
void vr_sim_import_end(struct vr_sim *sim, const struct vr_sim_range *range) {
    const uint32_t shared = (uint32_t)range->read_mask;
    const uint64_t opens = range->write_mask;
    if (VR_UNLIKELY(sim->checking != NULL))
        vr_check_segment_end(sim->checking->check, range->base, range->size_bytes, true, vr_sim_checking_place(sim, "cuIpcCloseMemHandle"));
    vr_sim_back_remove(sim, range->base, range->span);
    vr_sim_ranges_remove(&sim->spaces, range->base);
    for (uint64_t i = 0; i < opens; i++) vr_sim_shared_give(sim, shared);
}

void vr_sim_import_close(struct vr_sim *sim, struct vr_sim_range *range) {
    if (range->write_mask == 1) {
        vr_sim_import_end(sim, range);
    } else {
        range->write_mask--;
        vr_sim_shared_give(sim, (uint32_t)range->read_mask);
    }
}

vr_cu_result vr_sim_ipc_close_mem_handle(struct vr_sim *sim, uint64_t address) {
    struct vr_sim_context *context;
    const vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    struct vr_sim_range *range = vr_sim_ranges_at(&sim->spaces, address);
    if (range == NULL || range->kind != VR_SIM_IMPORT) return VR_CU_INVALID_VALUE;
    vr_sim_import_close(sim, range);
    return VR_CU_SUCCESS;
}

void vr_sim_close_imports(struct vr_sim *sim, uint64_t context) {
    for (uint64_t next = 0;;) {
        const struct vr_sim_range *range = vr_sim_ranges_next(&sim->spaces, next);
        if (range == NULL) return;
        next = vr_sim_range_end(range);
        if (range->kind == VR_SIM_IMPORT && (context == 0 || range->owner == context)) vr_sim_import_end(sim, range);
    }
}

// --- events ---------------------------------------------------------------------------------------------------------

vr_cu_result vr_sim_ipc_get_event_handle(struct vr_sim *sim, struct vr_cu_ipc_handle *handle, uint64_t event) {
    struct vr_sim_event *found = vr_sim_slots_find(&sim->events, event);
    if (handle == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL || (found->flags & VR_CU_EVENT_INTERPROCESS) == 0) return VR_CU_INVALID_HANDLE;
    if (found->ticket == 0) {
        struct vr_sim_ticket ticket = {.kind = VR_SIM_TICKET_EVENT};
        const vr_cu_result result = vr_sim_ticket_write(sim, &ticket, &found->ticket);
        if (result != VR_CU_SUCCESS) return result;
    }
    const vr_cu_result result = fill_handle(sim, found->ticket, VR_SIM_TICKET_EVENT, handle, &found->key);
    if (VR_UNLIKELY(sim->checking != NULL) && result == VR_CU_SUCCESS)
        vr_check_share_event(sim->checking->check, found->key, found->recorded ? found->point : NULL);
    return result;
}

// A copy's bytes move during the call, and virtual clocks of two processes cannot be compared, so an event of another process counts as
// complete.
vr_cu_result vr_sim_ipc_open_event_handle(struct vr_sim *sim, uint64_t *event, struct vr_cu_ipc_handle handle) {
    if (event == NULL) return VR_CU_INVALID_VALUE;
    struct handle named;
    int file;
    uint64_t key;
    vr_cu_result result = open_handle(sim, &handle, VR_SIM_TICKET_EVENT, &named, &file, &key);
    if (result != VR_CU_SUCCESS) return result;
    vr_os_shared_close(file);
    result = vr_sim_event_create(sim, event, VR_CU_EVENT_INTERPROCESS | VR_CU_EVENT_DISABLE_TIMING);
    if (result != VR_CU_SUCCESS) return result;
    struct vr_sim_event *opened = vr_sim_slots_find(&sim->events, *event);
    opened->key = key;
    return VR_CU_SUCCESS;
}

// ---- Physical allocations as file descriptors, fabric handles and DMA buffers, and the properties of a handle.

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

// Returns the handle of the memory mapped at an address and adds a reference: each retain needs a release.
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
    if (fabric) return physical->shared != 0 ? VR_CU_NOT_SUPPORTED : sim_fabric_handle(sim, physical->ticket, shareable);
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
    if (device == sim->options.device_count) return VR_CU_INVALID_DEVICE; // the program does not see that device
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

// The descriptor stays the caller's. Imported memory does not count as used on the device.
vr_cu_result vr_sim_mem_import_from_shareable_handle(struct vr_sim *sim, uint64_t *handle, void *shareable, int handle_type) {
    if (handle == NULL) return VR_CU_INVALID_VALUE;
    const bool fabric = handle_type == VR_CU_MEM_HANDLE_TYPE_FABRIC && sim->options.network;
    if ((handle_type != VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && !fabric) || sim->file < 0) return VR_CU_NOT_SUPPORTED;
    uint32_t shared;
    vr_cu_result result =
        fabric ? sim_fabric_take(sim, shareable, &shared) : vr_sim_shared_take_descriptor(sim, shareable, VR_SIM_TICKET_PHYSICAL, &shared);
    if (result != VR_CU_SUCCESS) return result;
    result = take_physical(sim, shared, handle);
    if (result != VR_CU_SUCCESS) vr_sim_shared_give(sim, shared);
    return result;
}

// --- DMA buffers, for network cards, which are not simulated --------------------------------------------------------

// Returns the end of the object at an address if network cards can reach it, else 0. *device is that of the memory.
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
