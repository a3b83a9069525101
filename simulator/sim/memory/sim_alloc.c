// cuMemAlloc, and page-locked host memory.
#include "sim/graphs/sim_graphs.h"
#include "sim/memory/sim_managed.h"
#include "sim/memory/sim_pools.h"
#include "sim/streams/sim_callbacks.h"
#include "sim/streams/sim_checking.h"
#include "sim/streams/sim_guards.h"

// ---- Page-locked host memory. It is real memory in every mode of the simulator: the program writes to it.

enum {
    ALLOC_NS_PER_MIB = 332031,   // 0.34 s per GiB
    FREE_NS_PER_MIB = 97656,     // 0.1 s per GiB
    REGISTER_NS_PER_MIB = 58594, // 0.06 s per GiB, if the memory was touched before
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
    if (VR_UNLIKELY(sim->checking != NULL)) {
        vr_check_segment(sim->checking->check, host, size_bytes, false, vr_sim_checking_place(sim, "the allocation of pinned memory"));
        vr_check_written(sim->checking->check, host); // by the host, perhaps
    }
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

// Reports the free of pinned memory to the checker: the program must first wait for the copies that use it.
static void check_unpinned(struct vr_sim *sim, const struct vr_sim_range *range) {
    const struct vr_check_place place = vr_sim_checking_place(sim, "the free of pinned memory");
    const struct vr_check_access access = {.address = range->base, .size_bytes = range->size_bytes, .effect = VR_CHECK_WRITE};
    vr_check_host_use(sim->checking->check, place, &access);
    vr_check_segment_end(sim->checking->check, range->base, range->size_bytes, true, place);
}

static void remove_range(struct vr_sim *sim, const struct vr_sim_range *range) {
    if (VR_UNLIKELY(sim->guard_count != 0)) vr_sim_guards_end(sim, range->base, range->size_bytes);
    if (range->kind == VR_SIM_HOST_ALLOCATED) vr_os_unreserve((void *)(uintptr_t)range->base, (size_t)range->size_bytes);
    sim->pinned_bytes -= range->size_bytes;
    vr_sim_ranges_remove(&sim->hosts, range->base);
}

// Frees host memory. The address determines the context, so none need be current.
vr_cu_result vr_sim_mem_free_host(struct vr_sim *sim, uint64_t host) {
    vr_sim_callback_wait(sim, sim->callbacks.posted); // deferred copies may still use it
    const vr_cu_result result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_range *range = vr_sim_ranges_at(&sim->hosts, host);
    if (range == NULL || range->kind != VR_SIM_HOST_ALLOCATED) return VR_CU_INVALID_VALUE;
    if (VR_UNLIKELY(sim->checking != NULL)) check_unpinned(sim, range);
    if (!sim->options.manual_completion) vr_sim_wait_device(sim, vr_sim_context_find(sim, range->owner)->device);
    vr_sim_charge_bytes(sim, range->size_bytes, FREE_NS_PER_MIB);
    remove_range(sim, range);
    return VR_CU_SUCCESS;
}

// Returns the flags of the allocation.
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
    vr_sim_callback_wait(sim, sim->callbacks.posted); // deferred copies may still use it
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_range *range = vr_sim_ranges_at(&sim->hosts, host);
    if (range == NULL || range->kind != VR_SIM_HOST_REGISTERED) return VR_CU_HOST_MEMORY_NOT_REGISTERED;
    if (VR_UNLIKELY(sim->checking != NULL)) check_unpinned(sim, range);
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

// ---- cuMemAlloc and related calls.

vr_cu_result vr_sim_mem_get_info(struct vr_sim *sim, uint64_t *free_bytes, uint64_t *total_bytes) {
    if (free_bytes == NULL || total_bytes == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_device *device = &sim->devices[context->device];
    *total_bytes = device->memory_bytes;
    const uint64_t left = vr_sim_free_bytes(device), files = device->card->kind == VR_SIM_INTEGRATED ? sim->options.page_cache_bytes : 0;
    *free_bytes = files < left ? left - files : 0;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_mem_alloc(struct vr_sim *sim, uint64_t *address, uint64_t size_bytes) {
    if (address == NULL || size_bytes == 0) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS) return result;
    struct vr_sim_device *device = &sim->devices[context->device];
    if (!vr_sim_has_room(device, size_bytes)) vr_sim_managed_make_room(sim, context->device, size_bytes);
    if (!vr_sim_has_room(device, size_bytes)) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_place place;
    result = vr_sim_place_alloc(sim, context->device, size_bytes, &place);
    if (result == VR_CU_SUCCESS) result = vr_sim_back_place(sim, &place, true);
    if (result != VR_CU_SUCCESS) return result;
    struct vr_sim_range range = {.base = place.address, .span = place.span, .size_bytes = size_bytes, .kind = VR_SIM_ALLOCATION};
    range.owner = vr_sim_context_handle(sim, context);
    if (sim->file >= 0) result = vr_sim_back_fill(sim, place.address, place.span, &range.read_mask);
    if (result == VR_CU_SUCCESS && vr_sim_ranges_insert(&sim->spaces, &range) != VRAM_OK) result = VR_CU_OUT_OF_MEMORY;
    if (result != VR_CU_SUCCESS) {
        vr_sim_back_remove(sim, place.address, place.span);
        vr_sim_place_lost(sim, &place);
        return result;
    }
    device->used_bytes += size_bytes;
    vr_sim_charge_alloc(sim, device, size_bytes);
    if (VR_UNLIKELY(sim->checking != NULL))
        vr_check_segment(sim->checking->check, place.address, size_bytes, false, vr_sim_checking_place(sim, "cuMemAlloc"));
    *address = place.address;
    return VR_CU_SUCCESS;
}

static void free_range(struct vr_sim *sim, const struct vr_sim_range *range) {
    const uint32_t number = vr_sim_context_find(sim, range->owner)->device;
    struct vr_sim_device *device = &sim->devices[number];
    const uint64_t address = range->base, span = range->span;
    if (VR_UNLIKELY(sim->checking != NULL))
        vr_check_segment_end(sim->checking->check, address, span, true, vr_sim_checking_place(sim, "cuMemFree"));
    device->used_bytes -= range->size_bytes;
    vr_sim_charge_free(sim, device, range->size_bytes);
    vr_sim_back_remove(sim, range->base, range->span);
    if (sim->file >= 0) vr_sim_back_give(sim, range->write_mask, range->read_mask, vr_sim_back_span(sim, range));
    vr_sim_ranges_remove(&sim->spaces, address);
    vr_sim_place_freed(sim, number, address, span);
}

// Frees device memory. The address determines the context, so none need be current.
vr_cu_result vr_sim_mem_free(struct vr_sim *sim, uint64_t address) {
    vr_cu_result result = vr_sim_unsafe(sim);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_range *range = vr_sim_ranges_at(&sim->spaces, address);
    if (range == NULL || range->kind != VR_SIM_ALLOCATION) { // memory of pools and graphs is in ranges of other kinds
        if (vr_sim_pool_free_now(sim, address, &result)) return result;
        if (range == NULL && vr_sim_managed_free(sim, address, &result)) return result;
        if (VR_UNLIKELY(sim->checking != NULL))
            vr_check_refused_free(sim->checking->check, address, vr_sim_checking_place(sim, "cuMemFree"));
        return VR_CU_INVALID_VALUE;
    }
    // With manual completion, only explicit synchronization completes work; the implicit wait of cuMemFree does not.
    if (!sim->options.manual_completion) vr_sim_wait_device(sim, vr_sim_context_find(sim, range->owner)->device);
    free_range(sim, range);
    return VR_CU_SUCCESS;
}

void vr_sim_free_allocations(struct vr_sim *sim, uint64_t context) {
    for (uint64_t next = 0;;) {
        const struct vr_sim_range *range = vr_sim_ranges_next(&sim->spaces, next);
        if (range == NULL) return;
        next = vr_sim_range_end(range);
        if (range->kind == VR_SIM_ALLOCATION && (context == 0 || range->owner == context)) free_range(sim, range);
    }
}

vr_cu_result vr_sim_mem_get_address_range(struct vr_sim *sim, uint64_t *base, uint64_t *size_bytes, uint64_t address) {
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->spaces, address);
    if (range != NULL && range->kind == VR_SIM_RESERVATION) range = vr_sim_ranges_holding(&sim->mappings, address);
    if (range != NULL && range->kind == VR_SIM_CHUNK) range = vr_sim_ranges_holding(&sim->pooled, address);
    if (range == NULL) range = vr_sim_ranges_holding(&sim->hosts, address); // unified addressing
    if (range == NULL || address - range->base >= range->size_bytes) return VR_CU_NOT_FOUND;
    if (base != NULL) *base = range->base;
    if (size_bytes != NULL) *size_bytes = range->size_bytes;
    return VR_CU_SUCCESS;
}
