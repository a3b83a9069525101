// sim_host.c: page-locked host memory. The memory is real in every simulator: the program writes to it.
#include "sim/graphs/sim_graphs.h"
#include "sim/streams/sim_callbacks.h"

enum {
    ALLOC_NS_PER_MIB = 332031,   // 0.34 s per GiB
    FREE_NS_PER_MIB = 97656,     // 0.1 s per GiB
    REGISTER_NS_PER_MIB = 58594, // 0.06 s per GiB, of memory touched before
};

static vr_cu_result add_host_range(struct vr_sim *sim, uint64_t host, uint64_t size_bytes, enum vr_sim_host_kind kind, unsigned flags,
                                   const struct vr_sim_context *context) {
    struct vr_sim_range range = {.base = host, .span = size_bytes, .size_bytes = size_bytes, .kind = kind};
    const uint64_t most = sim->options.pinned_bytes;
    if (most != 0 && (sim->pinned_bytes > most || size_bytes > most - sim->pinned_bytes)) return VR_CU_OUT_OF_MEMORY;
    range.owner = vr_sim_context_handle(sim, context);
    range.read_mask = flags;
    if (vr_sim_ranges_insert(&sim->hosts, &range) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    sim->pinned_bytes += size_bytes;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_host_alloc(struct vr_sim *sim, uint64_t *host, uint64_t size_bytes, unsigned flags) {
    const unsigned known = VR_CU_MEM_HOST_ALLOC_PORTABLE | VR_CU_MEM_HOST_ALLOC_DEVICE_MAP | VR_CU_MEM_HOST_ALLOC_WRITE_COMBINED;
    if (host == NULL || size_bytes == 0 || (flags & ~known) != 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS) return result;
    void *memory;
    if (size_bytes > SIZE_MAX / 2 || vr_os_reserve((size_t)size_bytes, &memory) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    uint64_t base = (uint64_t)(uintptr_t)memory;
    result = add_host_range(sim, base, size_bytes, VR_SIM_HOST_ALLOCATED, flags, context);
    if (result != VR_CU_SUCCESS) {
        vr_os_unreserve(memory, (size_t)size_bytes);
        return result;
    }
    vr_sim_charge_bytes(sim, size_bytes, ALLOC_NS_PER_MIB);
    *host = base;
    return VR_CU_SUCCESS;
}

static void remove_range(struct vr_sim *sim, const struct vr_sim_range *range) {
    if (range->kind == VR_SIM_HOST_ALLOCATED) vr_os_unreserve((void *)(uintptr_t)range->base, (size_t)range->size_bytes);
    sim->pinned_bytes -= range->size_bytes;
    vr_sim_ranges_remove(&sim->hosts, range->base);
}

// The address says whose it is: no context need be current.
vr_cu_result vr_sim_mem_free_host(struct vr_sim *sim, uint64_t host) {
    vr_sim_callback_wait(sim, sim->callbacks.posted); // copies may have been left for later
    const vr_cu_result result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_range *range = vr_sim_ranges_at(&sim->hosts, host);
    if (range == NULL || range->kind != VR_SIM_HOST_ALLOCATED) return VR_CU_INVALID_VALUE;
    if (!sim->options.manual_completion) vr_sim_wait_device(sim, vr_sim_context_find(sim, range->owner)->device);
    vr_sim_charge_bytes(sim, range->size_bytes, FREE_NS_PER_MIB);
    remove_range(sim, range);
    return VR_CU_SUCCESS;
}

// As asked for.
vr_cu_result vr_sim_mem_host_get_flags(struct vr_sim *sim, unsigned *flags, uint64_t host) {
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->hosts, host);
    if (flags == NULL || range == NULL || range->kind != VR_SIM_HOST_ALLOCATED) return VR_CU_INVALID_VALUE;
    *flags = (unsigned)range->read_mask;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_host_register(struct vr_sim *sim, uint64_t host, uint64_t size_bytes, unsigned flags) {
    const unsigned known = VR_CU_MEM_HOST_REGISTER_PORTABLE | VR_CU_MEM_HOST_REGISTER_DEVICE_MAP;
    if (host == 0 || size_bytes == 0 || host > UINT64_MAX - size_bytes) return VR_CU_INVALID_VALUE;
    if ((flags & ~known) != 0) return VR_CU_NOT_SUPPORTED;
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS) return result;
    if (vr_sim_ranges_overlap(&sim->hosts, host, size_bytes) != NULL) return VR_CU_HOST_MEMORY_ALREADY_REGISTERED;
    result = add_host_range(sim, host, size_bytes, VR_SIM_HOST_REGISTERED, flags, context);
    if (result == VR_CU_SUCCESS) vr_sim_charge_bytes(sim, size_bytes, REGISTER_NS_PER_MIB);
    return result;
}

vr_cu_result vr_sim_mem_host_unregister(struct vr_sim *sim, uint64_t host) {
    vr_sim_callback_wait(sim, sim->callbacks.posted); // copies may have been left for later
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_range *range = vr_sim_ranges_at(&sim->hosts, host);
    if (range == NULL || range->kind != VR_SIM_HOST_REGISTERED) return VR_CU_HOST_MEMORY_NOT_REGISTERED;
    remove_range(sim, range);
    return VR_CU_SUCCESS;
}

void vr_sim_free_hosts(struct vr_sim *sim, uint64_t context) {
    for (uint64_t next = 0;;) {
        const struct vr_sim_range *range = vr_sim_ranges_next(&sim->hosts, next);
        if (range == NULL) return;
        next = vr_sim_range_end(range);
        if (range->kind != VR_SIM_HOST_MANAGED && (context == 0 || range->owner == context)) remove_range(sim, range);
    }
}
