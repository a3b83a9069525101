// pointer_attributes.c: cuPointerGetAttribute and related calls.
#include "libcuda.h"
#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_pools.h"

enum attribute {
    CONTEXT = 1,
    MEMORY_TYPE = 2,
    DEVICE_POINTER = 3,
    HOST_POINTER = 4,
    BUFFER_ID = 7,
    IS_MANAGED = 8,
    DEVICE_ORDINAL = 9,
    IS_LEGACY_IPC_CAPABLE = 10,
    RANGE_START = 11,
    RANGE_SIZE = 12,
    MAPPED = 13,
    ALLOWED_HANDLE_TYPES = 14,
    IS_RDMA_CAPABLE = 15,
    ACCESS_FLAGS = 16,
    MEMPOOL_HANDLE = 17,
    MAPPING_SIZE = 18,
    MAPPING_BASE = 19,
};
enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };

// Everything known about an address.
struct facts {
    const struct vr_sim_range *range;
    uint64_t context; // 0: none
    uint32_t device;
    bool on_host, managed;
    bool legacy_ipc, rdma;
    int32_t handle_types;
    unsigned access; // CUmemAccess_flags of the current device
    uint64_t pool;   // handle, 0: none
};

static unsigned access_by(uint64_t read_mask, uint64_t write_mask, uint32_t device) {
    if ((write_mask >> device & 1) != 0) return VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return (read_mask >> device & 1) != 0 ? VR_CU_MEM_ACCESS_FLAGS_PROT_READ : VR_CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

static bool look_up_mapping(const struct vr_sim *sim, uint64_t address, uint32_t current, struct facts *facts) {
    facts->range = vr_sim_ranges_holding(&sim->mappings, address);
    if (facts->range == NULL) return false;
    const struct vr_sim_slot *slot = vr_sim_slots_item(&sim->physicals, (uint32_t)facts->range->owner);
    const struct vr_sim_physical *physical = (const struct vr_sim_physical *)(const void *)slot;
    facts->device = physical->device;
    facts->handle_types = physical->handle_types;
    facts->rdma = physical->rdma != 0;
    facts->access = access_by(facts->range->read_mask, facts->range->write_mask, current);
    return true;
}

static void describe_pool(const struct vr_sim *sim, uint32_t pool, uint32_t current, struct facts *facts) {
    const struct vr_sim_pool *found = vr_sim_pool_at(sim, pool);
    facts->device = found->device;
    facts->handle_types = found->handle_types;
    facts->pool = found->slot.named ? vr_sim_slots_handle(&sim->pools, pool) : 0;
    facts->access = access_by(found->read_mask, found->write_mask, current);
}

static bool look_up_pooled(const struct vr_sim *sim, uint64_t address, uint32_t current, struct facts *facts) {
    if (facts->range->kind == VR_SIM_POOL_IMPORT) {
        describe_pool(sim, (uint32_t)facts->range->owner, current, facts);
        return address - facts->range->base < facts->range->size_bytes;
    }
    const struct vr_sim_piece *piece = vr_sim_piece_holding(sim, address);
    if (piece == NULL) return false;
    describe_pool(sim, piece->pool, current, facts);
    facts->range = vr_sim_ranges_at(&sim->pooled, piece->address);
    return true;
}

// Handles an allocation or host memory.
static bool look_up_plain(const struct vr_sim *sim, uint64_t address, uint32_t current, struct facts *facts) {
    if (facts->range == NULL) {
        facts->range = vr_sim_ranges_holding(&sim->hosts, address);
        facts->on_host = true;
        if (facts->range != NULL && facts->range->kind == VR_SIM_HOST_MANAGED) facts->managed = true;
    }
    if (facts->range == NULL || address - facts->range->base >= facts->range->size_bytes) return false;
    facts->context = facts->range->owner;
    facts->device = vr_sim_context_find(sim, facts->context)->device;
    facts->legacy_ipc = !facts->on_host && facts->range->kind == VR_SIM_ALLOCATION && sim->file >= 0;
    const bool reached = facts->on_host || vr_sim_reaches(sim, current, facts->range);
    facts->access = reached ? VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE : VR_CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return true;
}

static bool look_up(struct vr_sim *sim, uint64_t address, struct facts *facts) {
    struct vr_sim_context *context;
    const uint32_t current = vr_sim_current(sim, &context) == VR_CU_SUCCESS ? context->device : 0;
    *facts = (struct facts){.range = vr_sim_ranges_holding(&sim->spaces, address)};
    const struct vr_sim_range *range = facts->range;
    if (range != NULL && range->kind == VR_SIM_RESERVATION) return look_up_mapping(sim, address, current, facts);
    if (range != NULL && (range->kind == VR_SIM_CHUNK || range->kind == VR_SIM_POOL_IMPORT))
        return look_up_pooled(sim, address, current, facts);
    if (range == NULL || range->kind != VR_SIM_GRAPH_MEMORY) return look_up_plain(sim, address, current, facts);
    const struct vr_sim_slot *slot = vr_sim_slots_item(&sim->graph_memories, (uint32_t)range->owner);
    facts->device = ((const struct vr_sim_graph_memory *)(const void *)slot)->device;
    facts->access = facts->device == current ? VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE : VR_CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return true;
}

// Returns an id that no other allocation has, even at the same address later. Ids of host memory are odd.
static uint64_t buffer_of(const struct facts *facts) { return facts->range->serial << 2 | (facts->pool != 0) << 1 | facts->on_host; }

// Gets an attribute. *width: size of the caller's variable in bytes.
static bool answer_attribute(const struct facts *facts, uint64_t address, enum attribute attribute, uint64_t *value, size_t *width) {
    *width = sizeof(uint32_t);
    switch (attribute) {
    case MEMORY_TYPE: *value = facts->on_host && !facts->managed ? TYPE_HOST : TYPE_DEVICE; return true;
    case DEVICE_ORDINAL: *value = facts->device; return true;
    case IS_MANAGED: *value = facts->managed; return true;
    case MAPPED: *value = 1; return true;
    case IS_LEGACY_IPC_CAPABLE: *value = facts->legacy_ipc; return true;
    case ALLOWED_HANDLE_TYPES: *value = (uint32_t)facts->handle_types; return true;
    case IS_RDMA_CAPABLE: *value = facts->rdma; return true;
    case ACCESS_FLAGS: *value = facts->access; return true;
    default: break;
    }
    *width = sizeof(uint64_t);
    switch (attribute) {
    case CONTEXT: *value = facts->context; return true;
    case DEVICE_POINTER: *value = address; return true;
    case HOST_POINTER: *value = address; return facts->on_host;
    case BUFFER_ID: *value = buffer_of(facts); return true;
    case MEMPOOL_HANDLE: *value = facts->pool; return true;
    case MAPPING_BASE:
    case RANGE_START: *value = facts->range->base; return true;
    case MAPPING_SIZE:
    case RANGE_SIZE: *value = facts->range->size_bytes; return true;
    default: return false;
    }
}

// Stores an attribute. If the address is unknown, stores zero if zero_unknown, otherwise fails.
static vr_cu_result put_pointer_attribute(struct vr_sim *sim, uint64_t address, int attribute, void *data, bool zero_unknown) {
    struct facts facts;
    uint64_t value = 0;
    size_t width = 0;
    vr_mutex_lock(&sim->lock);
    const bool found = look_up(sim, address, &facts);
    bool known = found && answer_attribute(&facts, address, (enum attribute)attribute, &value, &width);
    vr_mutex_unlock(&sim->lock);
    if (!known && zero_unknown) {
        const struct vr_sim_range nowhere = {0};
        const struct facts none = {.range = &nowhere, .on_host = true};
        known = answer_attribute(&none, 0, (enum attribute)attribute, &value, &width);
        value = 0;
    }
    if (!known) return VR_CU_INVALID_VALUE;
    uint32_t narrow = (uint32_t)value;
    memcpy(data, width == sizeof narrow ? (const void *)&narrow : (const void *)&value, width);
    return VR_CU_SUCCESS;
}

vr_cu_result cuPointerGetAttribute(void *data, int attribute, uint64_t address) {
    struct vr_sim *sim;
    const vr_cu_result entered = vr_libcuda_enter(&sim);
    if (entered != VR_CU_SUCCESS) return entered;
    return data == NULL ? VR_CU_INVALID_VALUE : put_pointer_attribute(sim, address, attribute, data, false);
}

// Unlike cuPointerGetAttribute, returns zero for unknown attributes instead of an error.
vr_cu_result cuPointerGetAttributes(unsigned count, const int *attributes, void **values, uint64_t address) {
    struct vr_sim *sim;
    const vr_cu_result entered = vr_libcuda_enter(&sim);
    if (entered != VR_CU_SUCCESS) return entered;
    if (count == 0 || attributes == NULL || values == NULL) return VR_CU_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        const vr_cu_result result =
            values[i] == NULL ? VR_CU_INVALID_VALUE : put_pointer_attribute(sim, address, attributes[i], values[i], true);
        if (result != VR_CU_SUCCESS) return result;
    }
    return VR_CU_SUCCESS;
}

// Accepts the only settable attribute, synchronous copies of this memory, which they always are here.
vr_cu_result cuPointerSetAttribute(const void *value, int attribute, uint64_t address) {
    enum { SYNC_MEMOPS = 6 };
    struct vr_sim *sim;
    const vr_cu_result entered = vr_libcuda_enter(&sim);
    if (entered != VR_CU_SUCCESS) return entered;
    if (value == NULL || attribute != SYNC_MEMOPS) return VR_CU_INVALID_VALUE;
    struct facts facts;
    vr_mutex_lock(&sim->lock);
    const bool known = look_up(sim, address, &facts);
    vr_mutex_unlock(&sim->lock);
    return known && !facts.on_host ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}
