// sim_ipc.c: handles of 64 bytes, which name a process, its memory file, and a ticket in it.
#include "sim/streams/sim_streams.h"

static const char magic[8] = "vramipc1";

struct handle {
    char magic[8];
    uint64_t process, place, seal;
    int32_t file;
    char padding[28];
};
_Static_assert(sizeof(struct handle) == sizeof(struct vr_cu_ipc_handle), "a handle has 64 bytes");

// The ticket's nonce and the process as one: the system finds a process's files under the number of each of its threads, too.
static uint64_t seal_of(const struct vr_sim_ticket *ticket, uint64_t process) { return vr_mix64(ticket->nonce ^ vr_mix64(process)); }

static vr_cu_result fill_handle(const struct vr_sim *sim, uint64_t place, enum vr_sim_ticket_kind kind, struct vr_cu_ipc_handle *handle) {
    struct vr_sim_ticket ticket;
    const vr_cu_result result = vr_sim_ticket_read(sim->file, place, kind, &ticket);
    if (result != VR_CU_SUCCESS) return result;
    const uint64_t process = vr_os_process_id();
    struct handle made = {.process = process, .place = place, .seal = seal_of(&ticket, process), .file = sim->file};
    memcpy(made.magic, magic, sizeof magic);
    memcpy(handle, &made, sizeof made);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_fabric_handle(const struct vr_sim *sim, uint64_t ticket, void *handle) {
    struct vr_cu_ipc_handle made;
    const vr_cu_result result = fill_handle(sim, ticket, VR_SIM_TICKET_PHYSICAL, &made);
    if (result == VR_CU_SUCCESS) memcpy(handle, &made, sizeof made);
    return result;
}

// Opens the file that a handle names and checks that the ticket is still the handle's.
static vr_cu_result open_handle(const struct vr_sim *sim, const struct vr_cu_ipc_handle *handle, enum vr_sim_ticket_kind kind,
                                struct handle *named, int *file) {
    struct vr_sim_ticket ticket;
    memcpy(named, handle, sizeof *named);
    if (memcmp(named->magic, magic, sizeof magic) != 0) return VR_CU_INVALID_VALUE;
    if (sim->file < 0) return VR_CU_NOT_SUPPORTED;
    // What the instance itself exported cannot be opened in it.
    if (named->process == vr_os_process_id() && named->file == sim->file) return VR_CU_INVALID_CONTEXT;
    if (vr_os_shared_open_of(named->process, named->file, file) != VRAM_OK) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_ticket_read(*file, named->place, kind, &ticket);
    if (result == VR_CU_SUCCESS && named->seal == seal_of(&ticket, named->process)) return VR_CU_SUCCESS;
    vr_os_shared_close(*file);
    return VR_CU_INVALID_VALUE;
}

// Of this very process, too, as a descriptor is.
vr_cu_result vr_sim_fabric_take(struct vr_sim *sim, const void *handle, uint32_t *index) {
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
    return fill_handle(sim, range->write_mask, VR_SIM_TICKET_ALLOCATION, handle);
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

static vr_cu_result import_shared(struct vr_sim *sim, const struct vr_sim_context *context, uint32_t shared, uint64_t *address) {
    struct vr_sim_ticket ticket;
    const uint64_t handle = vr_sim_context_handle(sim, context);
    vr_cu_result result =
        vr_sim_ticket_read(vr_sim_shared_file(sim, shared), sim->shared[shared].ticket, VR_SIM_TICKET_ALLOCATION, &ticket);
    if (result != VR_CU_SUCCESS) return result;
    const uint32_t own = sim->devices[context->device].ordinal; // the other one need not be seen here
    if (ticket.device != own && !vr_sim_options_peers(&sim->options, own, ticket.device)) return VR_CU_PEER_ACCESS_UNSUPPORTED;
    const struct vr_sim_range like = {.kind = VR_SIM_IMPORT, .owner = handle, .read_mask = shared};
    struct vr_sim_range *known = vr_sim_import_find(sim, &like);
    if (known == NULL) return vr_sim_import_place(sim, &like, ticket.within, 0, address);
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
    result = open_handle(sim, &handle, VR_SIM_TICKET_ALLOCATION, &named, &file);
    if (result == VR_CU_SUCCESS) result = vr_sim_shared_take(sim, file, named.place, VR_SIM_TICKET_ALLOCATION, &shared);
    if (result != VR_CU_SUCCESS) return result;
    result = import_shared(sim, context, shared, address);
    if (result != VR_CU_SUCCESS) vr_sim_shared_give(sim, shared);
    return result;
}

// Every open takes part in the entry once.
void vr_sim_import_end(struct vr_sim *sim, const struct vr_sim_range *range) {
    const uint32_t shared = (uint32_t)range->read_mask;
    const uint64_t opens = range->write_mask;
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
    return fill_handle(sim, found->ticket, VR_SIM_TICKET_EVENT, handle);
}

// Bytes move when a call is made, and virtual clocks of two processes cannot be compared: what another process recorded is complete.
vr_cu_result vr_sim_ipc_open_event_handle(struct vr_sim *sim, uint64_t *event, struct vr_cu_ipc_handle handle) {
    if (event == NULL) return VR_CU_INVALID_VALUE;
    struct handle named;
    int file;
    const vr_cu_result result = open_handle(sim, &handle, VR_SIM_TICKET_EVENT, &named, &file);
    if (result != VR_CU_SUCCESS) return result;
    vr_os_shared_close(file);
    return vr_sim_event_create(sim, event, VR_CU_EVENT_INTERPROCESS | VR_CU_EVENT_DISABLE_TIMING);
}
