// pointer_attributes.c: cuPointerGetAttribute and its kin, for the attributes that say what and where an address is.
#include "libcuda.h"
#include "driver/sim/graphs/sim_graphs.h"
#include "driver/sim/memory/sim_pools.h"

enum attribute {
    CONTEXT = 1,
    MEMORY_TYPE = 2,
    DEVICE_POINTER = 3,
    HOST_POINTER = 4,
    IS_MANAGED = 8,
    DEVICE_ORDINAL = 9,
    RANGE_START = 11,
    RANGE_SIZE = 12,
    MAPPED = 13,
};
enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };

// All that is known of an address.
struct facts {
    const struct vr_sim_range *range;
    uint64_t context; // 0: of none
    uint32_t device;
    bool on_host, managed;
};

static bool look_up(const struct vr_sim *sim, uint64_t address, struct facts *facts) {
    *facts = (struct facts){.range = vr_sim_ranges_holding(&sim->spaces, address)};
    if (facts->range != NULL && facts->range->kind == VR_SIM_RESERVATION) {
        facts->range = vr_sim_ranges_holding(&sim->mappings, address);
        if (facts->range == NULL) return false;
        const struct vr_sim_slot *physical = vr_sim_slots_item(&sim->physicals, (uint32_t)facts->range->owner);
        facts->device = ((const struct vr_sim_physical *)(const void *)physical)->device;
        return true;
    }
    if (facts->range != NULL && facts->range->kind == VR_SIM_CHUNK) {
        const struct vr_sim_piece *piece = vr_sim_piece_holding(sim, address);
        if (piece == NULL) return false;
        facts->device = vr_sim_pool_at(sim, piece->pool)->device;
        facts->range = vr_sim_ranges_at(&sim->pooled, piece->address);
        return true;
    }
    if (facts->range != NULL && facts->range->kind == VR_SIM_POOL_IMPORT) {
        facts->device = vr_sim_pool_at(sim, facts->range->owner)->device;
        return address - facts->range->base < facts->range->size_bytes;
    }
    if (facts->range != NULL && facts->range->kind == VR_SIM_GRAPH_MEMORY) {
        facts->device =
            ((const struct vr_sim_graph_memory *)(const void *)vr_sim_slots_item(&sim->graph_memories, (uint32_t)facts->range->owner))
                ->device;
        return true;
    }
    if (facts->range == NULL) {
        facts->range = vr_sim_ranges_holding(&sim->hosts, address);
        facts->on_host = true;
        if (facts->range != NULL && facts->range->kind == VR_SIM_HOST_MANAGED) facts->managed = true;
    }
    if (facts->range == NULL || address - facts->range->base >= facts->range->size_bytes) return false;
    facts->context = facts->range->owner;
    facts->device = vr_sim_context_find(sim, facts->context)->device;
    return true;
}

// *width: bytes that the caller's variable has.
static bool answer(const struct facts *facts, uint64_t address, enum attribute attribute, uint64_t *value, size_t *width) {
    *width = sizeof(uint32_t);
    switch (attribute) {
    case MEMORY_TYPE: *value = facts->on_host && !facts->managed ? TYPE_HOST : TYPE_DEVICE; return true;
    case DEVICE_ORDINAL: *value = facts->device; return true;
    case IS_MANAGED: *value = facts->managed; return true;
    case MAPPED: *value = 1; return true;
    default: break;
    }
    *width = sizeof(uint64_t);
    switch (attribute) {
    case CONTEXT: *value = facts->context; return true;
    case DEVICE_POINTER: *value = address; return true;
    case HOST_POINTER: *value = address; return facts->on_host;
    case RANGE_START: *value = facts->range->base; return true;
    case RANGE_SIZE: *value = facts->range->size_bytes; return true;
    default: return false;
    }
}

// An address that is of nobody has no value: zero.
static vr_cu_result put(struct vr_sim *sim, uint64_t address, int attribute, void *data, bool zero_unknown) {
    struct facts facts;
    uint64_t value = 0;
    size_t width = 0;
    vr_mutex_lock(&sim->lock);
    const bool found = look_up(sim, address, &facts);
    bool known = found && answer(&facts, address, (enum attribute)attribute, &value, &width);
    vr_mutex_unlock(&sim->lock);
    if (!known && zero_unknown) {
        const struct vr_sim_range nowhere = {0};
        const struct facts none = {.range = &nowhere, .on_host = true};
        known = answer(&none, 0, (enum attribute)attribute, &value, &width);
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
    return data == NULL ? VR_CU_INVALID_VALUE : put(sim, address, attribute, data, false);
}

// What this one cannot find is zero and no error.
vr_cu_result cuPointerGetAttributes(unsigned count, const int *attributes, void **values, uint64_t address) {
    struct vr_sim *sim;
    const vr_cu_result entered = vr_libcuda_enter(&sim);
    if (entered != VR_CU_SUCCESS) return entered;
    if (count == 0 || attributes == NULL || values == NULL) return VR_CU_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        const vr_cu_result result = values[i] == NULL ? VR_CU_INVALID_VALUE : put(sim, address, attributes[i], values[i], true);
        if (result != VR_CU_SUCCESS) return result;
    }
    return VR_CU_SUCCESS;
}

// The one attribute that can be set: whether copies of this memory wait for each other. Here they do.
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
