// Calls of stream-ordered pools, and sharing of pools between processes.
#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_pools.h"
#include "sim/streams/sim_checking.h"

// ---- Sharing of memory pools between processes. A pool is exported as a descriptor, a piece of it as 64 bytes that name its ticket in the
// descriptor's file.

static const char magic[8] = "vrampool";

// CUmemPoolPtrExportData.
struct export_data {
    char magic[8];
    uint64_t place, nonce; // of the piece's ticket
    char padding[40];
};
_Static_assert(sizeof(struct export_data) == 64, "exported data has 64 bytes");

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

// Writes a piece's ticket. It covers whole pages, which may also contain bytes of neighbours.
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

// Releases the pool's hold on the memory that it shares with other processes. Called when the program destroys the pool.
static void sim_pool_unshare(struct vr_sim *sim, struct vr_sim_pool *pool) {
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
    if (device == sim->options.device_count) return VR_CU_INVALID_DEVICE; // the program does not see that device
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

// Takes a reference to the ticket that the data names, if it still exists in the pool's file.
static vr_cu_result take_shared_piece(struct vr_sim *sim, uint32_t pool, const void *data, struct vr_sim_ticket *ticket, uint32_t *shared) {
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

// Importing a piece that is already open returns the same address; it must be freed once per import.
vr_cu_result vr_sim_mem_pool_import_pointer(struct vr_sim *sim, uint64_t *address, uint64_t pool, void *data) {
    const struct vr_sim_pool *found = vr_sim_slots_find(&sim->pools, pool);
    if (address == NULL || data == NULL || found == NULL || !found->imported) return VR_CU_INVALID_VALUE;
    const uint32_t index = vr_sim_slots_index(&sim->pools, found);
    struct vr_sim_ticket ticket;
    uint32_t shared;
    vr_cu_result result = take_shared_piece(sim, index, data, &ticket, &shared);
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

// Returns the import of another process's pool that starts at the address, or NULL.
static struct vr_sim_range *sim_pool_import_at(const struct vr_sim *sim, uint64_t address) {
    struct vr_sim_range *range = vr_sim_ranges_at(&sim->spaces, address);
    return range != NULL && range->kind == VR_SIM_POOL_IMPORT ? range : NULL;
}

static void sim_pool_import_close(struct vr_sim *sim, struct vr_sim_range *range) {
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
        if (vr_sim_pool_at(sim, i)->slot.live) sim_pool_unshare(sim, vr_sim_pool_at(sim, i));
}

// ---- The calls about memory pools.

// --- choice of pool -------------------------------------------------------------------------------------------------

static vr_cu_result default_pool(struct vr_sim *sim, uint32_t device, uint64_t *pool) {
    struct vr_sim_device *owner = &sim->devices[device];
    if (owner->default_pool == 0) {
        uint32_t index;
        const vr_cu_result result = vr_sim_pool_make(sim, device, &index);
        if (result != VR_CU_SUCCESS) return result;
        vr_sim_pool_at(sim, index)->standard = true;
        owner->default_pool = vr_sim_slots_handle(&sim->pools, index);
    }
    *pool = owner->default_pool;
    return VR_CU_SUCCESS;
}

static vr_cu_result current_pool(struct vr_sim *sim, uint32_t device, uint64_t *pool) {
    if (vr_sim_slots_find(&sim->pools, sim->devices[device].pool) == NULL) return default_pool(sim, device, pool);
    *pool = sim->devices[device].pool;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_device_get_default_mem_pool(struct vr_sim *sim, uint64_t *pool, int device) {
    if (pool == NULL) return VR_CU_INVALID_VALUE;
    return vr_sim_is_device(sim, device) ? default_pool(sim, (uint32_t)device, pool) : VR_CU_INVALID_DEVICE;
}

vr_cu_result vr_sim_device_get_mem_pool(struct vr_sim *sim, uint64_t *pool, int device) {
    if (pool == NULL) return VR_CU_INVALID_VALUE;
    return vr_sim_is_device(sim, device) ? current_pool(sim, (uint32_t)device, pool) : VR_CU_INVALID_DEVICE;
}

vr_cu_result vr_sim_device_set_mem_pool(struct vr_sim *sim, int device, uint64_t pool) {
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    const struct vr_sim_pool *found = vr_sim_slots_find(&sim->pools, pool);
    if (found == NULL || found->imported || found->device != (uint32_t)device) return VR_CU_INVALID_VALUE;
    sim->devices[device].pool = pool;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_pool_create(struct vr_sim *sim, uint64_t *pool, const struct vr_cu_pool_props *props) {
    if (pool == NULL || props == NULL || props->type != VR_CU_MEM_ALLOCATION_TYPE_PINNED) return VR_CU_INVALID_VALUE;
    if (props->location.type != VR_CU_MEM_LOCATION_TYPE_DEVICE) return VR_CU_NOT_SUPPORTED;
    if (!vr_sim_is_device(sim, props->location.id)) return VR_CU_INVALID_DEVICE;
    const int32_t known = sim->file >= 0 ? VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0; // without bytes there is nothing to share
    if ((props->handle_types & ~known) != 0) return VR_CU_NOT_SUPPORTED;
    uint32_t index;
    const vr_cu_result result = vr_sim_pool_make(sim, (uint32_t)props->location.id, &index);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_pool_at(sim, index)->handle_types = props->handle_types;
    vr_sim_pool_at(sim, index)->most_bytes = vr_round_down(props->most_bytes, VR_SIM_GRANULARITY);
    if (props->most_bytes != 0 && props->most_bytes < VR_SIM_GRANULARITY) vr_sim_pool_at(sim, index)->most_bytes = VR_SIM_GRANULARITY;
    sim->user_pools++;
    *pool = vr_sim_slots_handle(&sim->pools, index);
    return VR_CU_SUCCESS;
}

// Destroys a pool. Its allocations stay valid; its memory is released once all of them are freed.
vr_cu_result vr_sim_mem_pool_destroy(struct vr_sim *sim, uint64_t pool) {
    struct vr_sim_pool *found = vr_sim_slots_find(&sim->pools, pool);
    if (found == NULL || found->standard) return VR_CU_INVALID_VALUE;
    const uint32_t index = vr_sim_slots_index(&sim->pools, found);
    found->slot.named = false;
    sim->user_pools--;
    sim_pool_unshare(sim, found);
    vr_sim_pool_trim(sim, index, 0);
    vr_sim_pool_end_unused(sim, index);
    return VR_CU_SUCCESS;
}

// --- attributes and access ------------------------------------------------------------------------------------------

vr_cu_result vr_sim_mem_pool_trim_to(struct vr_sim *sim, uint64_t pool, uint64_t keep_bytes) {
    const struct vr_sim_pool *found = vr_sim_slots_find(&sim->pools, pool);
    if (found == NULL) return VR_CU_INVALID_VALUE;
    vr_sim_pool_trim(sim, vr_sim_slots_index(&sim->pools, found), keep_bytes);
    return VR_CU_SUCCESS;
}

static bool *flag_of(struct vr_sim_pool *pool, int attribute) {
    switch (attribute) {
    case VR_CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: return &pool->follow_events;
    case VR_CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: return &pool->opportunistic;
    case VR_CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return &pool->add_dependencies;
    default: return NULL;
    }
}

static uint64_t *amount_of(struct vr_sim_pool *pool, int attribute) {
    switch (attribute) {
    case VR_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return &pool->keep_bytes;
    case VR_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return &pool->reserved_bytes;
    case VR_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return &pool->reserved_high_bytes;
    case VR_CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return &pool->used_bytes;
    case VR_CU_MEMPOOL_ATTR_USED_MEM_HIGH: return &pool->used_high_bytes;
    default: return NULL;
    }
}

// Flags are of type int, sizes of type uint64_t.
vr_cu_result vr_sim_mem_pool_get_attribute(struct vr_sim *sim, uint64_t pool, int attribute, void *value) {
    struct vr_sim_pool *found = vr_sim_slots_find(&sim->pools, pool);
    if (found == NULL || value == NULL) return VR_CU_INVALID_VALUE;
    const bool *flag = flag_of(found, attribute);
    const uint64_t *amount = amount_of(found, attribute);
    const int number = flag != NULL && *flag;
    if (flag != NULL)
        memcpy(value, &number, sizeof number);
    else if (amount != NULL)
        memcpy(value, amount, sizeof *amount);
    return flag != NULL || amount != NULL ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

// Sets a size. A high-water mark can only be reset to the current value.
static vr_cu_result set_amount(struct vr_sim_pool *pool, int attribute, uint64_t amount) {
    switch (attribute) {
    case VR_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->keep_bytes = amount; return VR_CU_SUCCESS;
    case VR_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: pool->reserved_high_bytes = pool->reserved_bytes; break;
    case VR_CU_MEMPOOL_ATTR_USED_MEM_HIGH: pool->used_high_bytes = pool->used_bytes; break;
    default: return VR_CU_INVALID_VALUE;
    }
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_pool_set_attribute(struct vr_sim *sim, uint64_t pool, int attribute, void *value) {
    struct vr_sim_pool *found = vr_sim_slots_find(&sim->pools, pool);
    if (found == NULL || value == NULL) return VR_CU_INVALID_VALUE;
    bool *flag = flag_of(found, attribute);
    int number;
    uint64_t amount;
    if (flag != NULL) {
        memcpy(&number, value, sizeof number);
        *flag = number != 0;
        return VR_CU_SUCCESS;
    }
    memcpy(&amount, value, sizeof amount);
    const bool high = attribute == VR_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attribute == VR_CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    return high && amount != 0 ? VR_CU_INVALID_VALUE : set_amount(found, attribute, amount);
}

static vr_cu_result check_access(const struct vr_sim *sim, const struct vr_sim_pool *pool, const struct vr_cu_access_desc *access) {
    const bool none = access->flags == VR_CU_MEM_ACCESS_FLAGS_PROT_NONE;
    const bool known = none || access->flags == VR_CU_MEM_ACCESS_FLAGS_PROT_READ || access->flags == VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (access->location.type != VR_CU_MEM_LOCATION_TYPE_DEVICE || !known) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, access->location.id)) return VR_CU_INVALID_DEVICE;
    const uint32_t device = (uint32_t)access->location.id;
    if (device == pool->device) return access->flags == VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
    return none || vr_sim_are_peers(sim, device, pool->device) ? VR_CU_SUCCESS : VR_CU_INVALID_DEVICE;
}

// Changes either all entries or none.
vr_cu_result vr_sim_mem_pool_set_access(struct vr_sim *sim, uint64_t pool, const struct vr_cu_access_desc *access, uint64_t count) {
    struct vr_sim_pool *found = vr_sim_slots_find(&sim->pools, pool);
    if (found == NULL || access == NULL || count == 0) return VR_CU_INVALID_VALUE;
    for (uint64_t i = 0; i < count; i++) {
        const vr_cu_result result = check_access(sim, found, &access[i]);
        if (result != VR_CU_SUCCESS) return result;
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t bit = (uint64_t)1 << access[i].location.id;
        const bool read = access[i].flags != VR_CU_MEM_ACCESS_FLAGS_PROT_NONE;
        const bool write = access[i].flags == VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        found->read_mask = read ? found->read_mask | bit : found->read_mask & ~bit;
        found->write_mask = write ? found->write_mask | bit : found->write_mask & ~bit;
    }
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_pool_get_access(struct vr_sim *sim, int *flags, uint64_t pool, const struct vr_cu_location *location) {
    const struct vr_sim_pool *found = vr_sim_slots_find(&sim->pools, pool);
    if (found == NULL || flags == NULL || location == NULL || location->type != VR_CU_MEM_LOCATION_TYPE_DEVICE) return VR_CU_INVALID_VALUE;
    if (!vr_sim_is_device(sim, location->id)) return VR_CU_INVALID_DEVICE;
    const bool read = (found->read_mask >> location->id & 1) != 0, write = (found->write_mask >> location->id & 1) != 0;
    *flags = write ? VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE : read ? VR_CU_MEM_ACCESS_FLAGS_PROT_READ : VR_CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return VR_CU_SUCCESS;
}

// --- memory ---------------------------------------------------------------------------------------------------------

static vr_cu_result take_piece(struct vr_sim *sim, struct vr_sim_stream *queue, uint64_t pool, uint64_t size_bytes, uint64_t *address) {
    const struct vr_sim_pool *found = vr_sim_slots_find(&sim->pools, pool);
    if (found == NULL || found->imported) return VR_CU_INVALID_VALUE;
    if (queue->capture != 0) return vr_sim_capture_alloc(sim, queue, found->device, size_bytes, address);
    uint64_t end_ns;
    const uint32_t index = vr_sim_slots_index(&sim->pools, found);
    const vr_cu_result result = vr_sim_enqueue(sim, queue, 0, &end_ns);
    const vr_cu_result taken = result == VR_CU_SUCCESS ? vr_sim_pool_take(sim, index, queue, size_bytes, address) : result;
    if (VR_UNLIKELY(sim->checking != NULL) && taken == VR_CU_SUCCESS)
        vr_check_segment_on(sim->checking->check, *address, size_bytes, queue->serial, vr_sim_checking_place(sim, "cuMemAllocAsync"));
    return taken;
}

vr_cu_result vr_sim_mem_alloc_async(struct vr_sim *sim, uint64_t *address, uint64_t size_bytes, uint64_t stream) {
    if (address == NULL || size_bytes == 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *queue;
    vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS) return result;
    uint64_t pool;
    result = current_pool(sim, vr_sim_context_find(sim, queue->context)->device, &pool);
    return result == VR_CU_SUCCESS ? take_piece(sim, queue, pool, size_bytes, address) : result;
}

vr_cu_result vr_sim_mem_alloc_from_pool_async(struct vr_sim *sim, uint64_t *address, uint64_t size_bytes, uint64_t pool, uint64_t stream) {
    if (address == NULL || size_bytes == 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *queue;
    const vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    return result == VR_CU_SUCCESS ? take_piece(sim, queue, pool, size_bytes, address) : result;
}

// Frees in stream order. cuMemAlloc's memory can only be freed by cuMemFree.
vr_cu_result vr_sim_mem_free_async(struct vr_sim *sim, uint64_t address, uint64_t stream) {
    struct vr_sim_stream *queue;
    vr_cu_result result = vr_sim_stream_for_work(sim, stream, &queue);
    if (result != VR_CU_SUCCESS) return result;
    if (queue->capture != 0) return vr_sim_capture_free(sim, queue, address);
    struct vr_sim_piece *piece = vr_sim_piece_at(sim, address);
    struct vr_sim_range *imported = sim_pool_import_at(sim, address);
    if (piece == NULL && imported == NULL) return vr_sim_graph_memory_free(sim, address);
    struct vr_sim_point point = {.serial = queue->serial, .stream = vr_sim_slots_index(&sim->streams, queue)};
    result = vr_sim_enqueue(sim, queue, 0, &point.end_ns);
    if (result != VR_CU_SUCCESS) return result;
    point.work = queue->work;
    if (VR_UNLIKELY(sim->checking != NULL))
        vr_check_segment_end_on(sim->checking->check, address, queue->serial, vr_sim_checking_place(sim, "cuMemFreeAsync"));
    if (imported != NULL)
        sim_pool_import_close(sim, imported);
    else
        vr_sim_piece_free(sim, piece, &point);
    return VR_CU_SUCCESS;
}

bool vr_sim_pool_free_now(struct vr_sim *sim, uint64_t address, vr_cu_result *result) {
    struct vr_sim_piece *piece = vr_sim_piece_at(sim, address);
    *result = VR_CU_SUCCESS;
    if (piece == NULL) {
        struct vr_sim_range *imported = sim_pool_import_at(sim, address);
        if (imported != NULL) {
            if (!sim->options.manual_completion) vr_sim_wait_device(sim, vr_sim_pool_at(sim, imported->owner)->device);
            sim_pool_import_close(sim, imported);
            return true;
        }
        const struct vr_sim_range *range = vr_sim_ranges_at(&sim->spaces, address);
        if (range == NULL || range->kind != VR_SIM_GRAPH_MEMORY) return false;
        *result = vr_sim_graph_memory_free(sim, address);
        return true;
    }
    struct vr_sim_point now = {0};
    const struct vr_sim_context *context = vr_sim_context_find(sim, piece->context);
    if (!sim->options.manual_completion) {
        vr_sim_wait_device(sim, context->device);
    } else {
        // Without a wait, free as the legacy stream would, after all work of the blocking streams.
        struct vr_sim_stream *legacy = (struct vr_sim_stream *)(void *)vr_sim_slots_item(&sim->streams, context->legacy);
        *result = vr_sim_enqueue(sim, legacy, 0, &now.end_ns);
        if (*result != VR_CU_SUCCESS) return true;
        now = (struct vr_sim_point){.serial = legacy->serial, .work = legacy->work, .end_ns = now.end_ns, .stream = context->legacy};
    }
    if (VR_UNLIKELY(sim->checking != NULL)) {
        const uint64_t size_bytes = vr_sim_ranges_at(&sim->pooled, address)->size_bytes;
        vr_check_segment_end(sim->checking->check, address, size_bytes, true, vr_sim_checking_place(sim, "cuMemFree"));
    }
    vr_sim_piece_free(sim, piece, &now);
    return true;
}
