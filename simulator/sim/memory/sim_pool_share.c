// sim_pool_share.c: memory pools in several processes. A pool is exported as a descriptor, a piece of it as 64 bytes that name its ticket
// in the file of the descriptor.
#include "sim/memory/sim_pools.h"

static const char magic[8] = "vrampool";

// CUmemPoolPtrExportData.
struct export_data {
    char magic[8];
    uint64_t place, nonce; // of the piece's ticket
    char padding[40];
};
_Static_assert(sizeof(struct export_data) == 64, "what is exported has 64 bytes");

// --- the owner's side -----------------------------------------------------------------------------------------------

vr_cu_result vr_sim_mem_pool_export_to_shareable_handle(struct vr_sim *sim, void *shareable, uint64_t pool, int handle_type,
                                                        uint64_t flags) {
    struct vr_sim_pool *found = vr_sim_slots_find(&sim->pools, pool);
    if (shareable == NULL || found == NULL || flags != 0) return VR_CU_INVALID_VALUE;
    if (found->imported || (found->handle_types & handle_type) == 0) return VR_CU_INVALID_VALUE;
    if (handle_type != VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return VR_CU_NOT_SUPPORTED;
    vr_cu_result result = VR_CU_SUCCESS;
    if (found->ticket == 0) {
        struct vr_sim_ticket ticket = {
            .kind = VR_SIM_TICKET_POOL, .device = sim->devices[found->device].ordinal, .handle_types = found->handle_types};
        result = vr_sim_ticket_write(sim, &ticket, &found->ticket);
    }
    int descriptor;
    if (result == VR_CU_SUCCESS) result = vr_sim_ticket_descriptor(sim->file, found->ticket, &descriptor);
    if (result == VR_CU_SUCCESS) memcpy(shareable, &descriptor, sizeof descriptor);
    return result;
}

// Whole pages: a neighbour's bytes may be on them.
static vr_cu_result write_ticket(struct vr_sim *sim, struct vr_sim_piece *piece) {
    const uint64_t place = vr_sim_piece_place(sim, piece), offset = vr_round_down(place, VR_SIM_PAGE_BYTES);
    const uint64_t end = place + vr_sim_ranges_at(&sim->pooled, piece->address)->size_bytes, last = vr_round_up(end, VR_SIM_PAGE_BYTES);
    struct vr_sim_ticket ticket = {
        .kind = VR_SIM_TICKET_PIECE,
        .offset = offset,
        .size_bytes = last - offset,
        .within = place - offset,
        .beyond = (uint16_t)(last - end),
        .device = sim->devices[vr_sim_pool_at(sim, piece->pool)->device].ordinal,
    };
    const vr_cu_result result = vr_sim_back_share(sim, place, piece->size_bytes);
    return result == VR_CU_SUCCESS ? vr_sim_ticket_write(sim, &ticket, &piece->ticket) : result;
}

vr_cu_result vr_sim_mem_pool_export_pointer(struct vr_sim *sim, void *data, uint64_t address) {
    struct vr_sim_piece *piece = vr_sim_piece_at(sim, address);
    if (data == NULL || piece == NULL || vr_sim_pool_at(sim, piece->pool)->handle_types == 0) return VR_CU_INVALID_VALUE;
    vr_cu_result result = piece->ticket == 0 ? write_ticket(sim, piece) : VR_CU_SUCCESS;
    struct vr_sim_ticket ticket;
    if (result == VR_CU_SUCCESS) result = vr_sim_ticket_read(sim->file, piece->ticket, VR_SIM_TICKET_PIECE, &ticket);
    if (result != VR_CU_SUCCESS) return result;
    struct export_data made = {.place = piece->ticket, .nonce = ticket.nonce};
    memcpy(made.magic, magic, sizeof magic);
    memcpy(data, &made, sizeof made);
    return VR_CU_SUCCESS;
}

void vr_sim_pool_unshare(struct vr_sim *sim, struct vr_sim_pool *pool) {
    if (pool->ticket != 0) vr_sim_ticket_end(sim, pool->ticket, 0, 0);
    if (pool->shared != 0) vr_sim_shared_give(sim, pool->shared - 1);
    pool->ticket = 0;
    pool->shared = 0;
}

// --- the importer's side --------------------------------------------------------------------------------------------

static vr_cu_result take_pool(struct vr_sim *sim, uint32_t shared, uint64_t *pool) {
    struct vr_sim_ticket ticket;
    vr_cu_result result = vr_sim_ticket_read(vr_sim_shared_file(sim, shared), sim->shared[shared].ticket, VR_SIM_TICKET_POOL, &ticket);
    if (result != VR_CU_SUCCESS) return result;
    uint32_t index, device = 0;
    while (device < sim->options.device_count && sim->devices[device].ordinal != ticket.device) device++;
    if (device == sim->options.device_count) return VR_CU_INVALID_DEVICE; // the program does not see it
    result = vr_sim_pool_make(sim, device, &index);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_pool_at(sim, index)->shared = shared + 1;
    vr_sim_pool_at(sim, index)->imported = true;
    sim->user_pools++;
    *pool = vr_sim_slots_handle(&sim->pools, index);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_pool_import_from_shareable_handle(struct vr_sim *sim, uint64_t *pool, void *shareable, int handle_type,
                                                          uint64_t flags) {
    if (pool == NULL || flags != 0) return VR_CU_INVALID_VALUE;
    if (handle_type != VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || sim->file < 0) return VR_CU_NOT_SUPPORTED;
    uint32_t shared;
    vr_cu_result result = vr_sim_shared_take_descriptor(sim, shareable, VR_SIM_TICKET_POOL, &shared);
    if (result != VR_CU_SUCCESS) return result;
    result = take_pool(sim, shared, pool);
    if (result != VR_CU_SUCCESS) vr_sim_shared_give(sim, shared);
    return result;
}

// The ticket that the data names, if it is still there, in the file of the pool.
static vr_cu_result take_piece(struct vr_sim *sim, uint32_t pool, const void *data, struct vr_sim_ticket *ticket, uint32_t *shared) {
    struct export_data named;
    memcpy(&named, data, sizeof named);
    if (memcmp(named.magic, magic, sizeof magic) != 0) return VR_CU_INVALID_VALUE;
    const int file = vr_sim_shared_file(sim, vr_sim_pool_at(sim, pool)->shared - 1);
    const vr_cu_result result = vr_sim_ticket_read(file, named.place, VR_SIM_TICKET_PIECE, ticket);
    if (result != VR_CU_SUCCESS) return result;
    const bool own = ticket->nonce == named.nonce && ticket->device == sim->devices[vr_sim_pool_at(sim, pool)->device].ordinal;
    if (!own) return VR_CU_INVALID_VALUE;
    int again;
    if (vr_os_shared_reopen(file, &again) != VRAM_OK) return VR_CU_OPERATING_SYSTEM;
    return vr_sim_shared_take(sim, again, named.place, VR_SIM_TICKET_PIECE, shared);
}

// A piece that is open already is at the same address, and must be freed as often as it was imported.
vr_cu_result vr_sim_mem_pool_import_pointer(struct vr_sim *sim, uint64_t *address, uint64_t pool, void *data) {
    const struct vr_sim_pool *found = vr_sim_slots_find(&sim->pools, pool);
    if (address == NULL || data == NULL || found == NULL || !found->imported) return VR_CU_INVALID_VALUE;
    const uint32_t index = vr_sim_slots_index(&sim->pools, found);
    struct vr_sim_ticket ticket;
    uint32_t shared;
    vr_cu_result result = take_piece(sim, index, data, &ticket, &shared);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_range like = {.kind = VR_SIM_POOL_IMPORT, .owner = index, .read_mask = shared};
    struct vr_sim_range *known = vr_sim_import_find(sim, &like);
    if (known != NULL) {
        known->write_mask++;
        *address = known->base;
    } else {
        result = vr_sim_import_place(sim, &like, ticket.within, ticket.beyond, address);
    }
    if (result == VR_CU_SUCCESS)
        vr_sim_pool_at(sim, index)->imports++;
    else
        vr_sim_shared_give(sim, shared);
    return result;
}

struct vr_sim_range *vr_sim_pool_import_at(const struct vr_sim *sim, uint64_t address) {
    struct vr_sim_range *range = vr_sim_ranges_at(&sim->spaces, address);
    return range != NULL && range->kind == VR_SIM_POOL_IMPORT ? range : NULL;
}

void vr_sim_pool_import_close(struct vr_sim *sim, struct vr_sim_range *range) {
    const uint32_t pool = (uint32_t)range->owner;
    vr_sim_import_close(sim, range);
    vr_sim_pool_at(sim, pool)->imports--;
    vr_sim_pool_end_unused(sim, pool);
}

static void end_pieces(struct vr_sim *sim, uint32_t device) {
    for (uint64_t next = 0;;) {
        const struct vr_sim_range *range = vr_sim_ranges_next(&sim->spaces, next);
        if (range == NULL) return;
        next = vr_sim_range_end(range);
        if (range->kind != VR_SIM_POOL_IMPORT) continue;
        const uint32_t pool = (uint32_t)range->owner;
        if (device != UINT32_MAX && vr_sim_pool_at(sim, pool)->device != device) continue;
        vr_sim_pool_at(sim, pool)->imports -= range->write_mask;
        vr_sim_import_end(sim, range);
        vr_sim_pool_end_unused(sim, pool);
    }
}

void vr_sim_pool_imports_end(struct vr_sim *sim, uint32_t device) {
    end_pieces(sim, device);
    if (device != UINT32_MAX) return;
    for (uint32_t i = 0; i < sim->pools.used; i++)
        if (vr_sim_pool_at(sim, i)->slot.live) vr_sim_pool_unshare(sim, vr_sim_pool_at(sim, i));
}
