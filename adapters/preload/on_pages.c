// on_pages.c: virtual memory management: physical memory and its mappings. Address ranges alone are not memory.
#include "preload.h"
#include "vram/log.h"

enum { LOCATION_DEVICE = 1 };

int32_t pl_on_mem_create(const struct pl_slot *slot, uint64_t *handle, uint64_t size, const struct pl_allocation_prop *prop,
                         uint64_t flags) {
    struct pl_call call;
    if (!pl_begin(slot, &call))
        return PL_REAL(slot, (uint64_t *, uint64_t, const struct pl_allocation_prop *, uint64_t), (handle, size, prop, flags));
    const bool on_device = prop != NULL && prop->location_type == LOCATION_DEVICE && prop->location_id >= 0;
    int32_t result = PL_OUT_OF_MEMORY;
    if (pl_charge(&call, PL_PHYSICAL, on_device ? (uint32_t)prop->location_id : VRAM_LOG_HOST, size))
        result = PL_REAL(slot, (uint64_t *, uint64_t, const struct pl_allocation_prop *, uint64_t), (handle, size, prop, flags));
    pl_settle(&call, result, result == PL_SUCCESS ? *handle : 0, size);
    return result;
}

int32_t pl_on_mem_release(const struct pl_slot *slot, uint64_t handle) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint64_t), (handle));
    const int32_t result = PL_REAL(slot, (uint64_t), (handle));
    if (result == PL_SUCCESS) pl_released(&call, handle);
    pl_end(&call);
    return result;
}

int32_t pl_on_mem_retain_handle(const struct pl_slot *slot, uint64_t *handle, uint64_t address) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint64_t *, uint64_t), (handle, address));
    const int32_t result = PL_REAL(slot, (uint64_t *, uint64_t), (handle, address));
    if (result == PL_SUCCESS) pl_retained(*handle, address);
    pl_end(&call);
    return result;
}

int32_t pl_on_mem_map(const struct pl_slot *slot, uint64_t address, uint64_t size, uint64_t offset, uint64_t handle, uint64_t flags) {
    struct pl_call call;
    if (!pl_begin(slot, &call))
        return PL_REAL(slot, (uint64_t, uint64_t, uint64_t, uint64_t, uint64_t), (address, size, offset, handle, flags));
    const int32_t result = PL_REAL(slot, (uint64_t, uint64_t, uint64_t, uint64_t, uint64_t), (address, size, offset, handle, flags));
    if (result == PL_SUCCESS) pl_mapped(&call, address, size, handle);
    pl_end(&call);
    return result;
}

int32_t pl_on_mem_unmap(const struct pl_slot *slot, uint64_t address, uint64_t size) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint64_t, uint64_t), (address, size));
    const int32_t result = PL_REAL(slot, (uint64_t, uint64_t), (address, size));
    if (result == PL_SUCCESS) pl_unmapped(&call, address, size);
    pl_end(&call);
    return result;
}
