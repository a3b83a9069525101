// on_contexts.c: contexts, whose end frees their memory, and the two queries that the limit changes.
#include "accounts.h"
#include "cache.h"
#include "preload.h"

int32_t pl_on_primary_ctx_retain(const struct pl_slot *slot, uint64_t *context, int32_t device) {
    // A known context is not measured again.
    PL_MEASURED((uint64_t *, int32_t), (context, device),
                (pl_primary_context((uint32_t)device, *context), pl_measure_context(&call, &measure, *context, (uint32_t)device)));
}

#define CREATED(parameters, arguments) PL_MEASURED(parameters, arguments, pl_measure_context(&call, &measure, *context, (uint32_t)device))

int32_t pl_on_ctx_create(const struct pl_slot *slot, uint64_t *context, uint32_t flags, int32_t device) {
    CREATED((uint64_t *, uint32_t, int32_t), (context, flags, device));
}

int32_t pl_on_ctx_create_with_affinity(const struct pl_slot *slot, uint64_t *context, void *affinities, int32_t count, uint32_t flags,
                                       int32_t device) {
    CREATED((uint64_t *, void *, int32_t, uint32_t, int32_t), (context, affinities, count, flags, device));
}

int32_t pl_on_ctx_create_with_params(const struct pl_slot *slot, uint64_t *context, void *params, uint32_t flags, int32_t device) {
    CREATED((uint64_t *, void *, uint32_t, int32_t), (context, params, flags, device));
}

int32_t pl_on_primary_ctx_release(const struct pl_slot *slot, int32_t device) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (int32_t), (device));
    const int32_t result = PL_REAL(slot, (int32_t), (device));
    pl_contexts_changed(); // even if the driver cannot report whether it ended
    uint32_t flags = 0;
    int32_t active = 1; // others may still retain it
    const struct pl_driver *driver = slot->driver;
    if (result == PL_SUCCESS && driver->primary_ctx_get_state != NULL &&
        driver->primary_ctx_get_state(device, &flags, &active) == PL_SUCCESS && active == 0)
        pl_context_gone(&call, pl_primary_context_of((uint32_t)device));
    pl_end(&call);
    return result;
}

int32_t pl_on_primary_ctx_reset(const struct pl_slot *slot, int32_t device) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (int32_t), (device));
    pl_cache_forget();
    const int32_t result = PL_REAL(slot, (int32_t), (device));
    if (result == PL_SUCCESS) pl_context_gone(&call, pl_primary_context_of((uint32_t)device));
    pl_end(&call);
    return result;
}

int32_t pl_on_ctx_destroy(const struct pl_slot *slot, uint64_t context) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint64_t), (context));
    const int32_t result = PL_REAL(slot, (uint64_t), (context));
    if (result == PL_SUCCESS) pl_context_gone(&call, context);
    pl_end(&call);
    return result;
}

// Sizes in the first interface end at 4 GiB.
static uint32_t narrow(uint64_t size) { return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size; }

int32_t pl_on_mem_get_info_v1(const struct pl_slot *slot, uint32_t *free_bytes, uint32_t *total_bytes) {
    const int32_t result = PL_REAL(slot, (uint32_t *, uint32_t *), (free_bytes, total_bytes));
    struct pl_call call;
    if (result != PL_SUCCESS || free_bytes == NULL || total_bytes == NULL || !pl_begin(slot, &call)) return result;
    uint64_t wide_free = *free_bytes, wide_total = *total_bytes;
    if (call.has_device) pl_limit_view(call.device, &wide_free, &wide_total);
    *free_bytes = narrow(wide_free);
    *total_bytes = narrow(wide_total);
    pl_end(&call);
    return result;
}

int32_t pl_on_mem_get_info(const struct pl_slot *slot, uint64_t *free_bytes, uint64_t *total_bytes) {
    const int32_t result = PL_REAL(slot, (uint64_t *, uint64_t *), (free_bytes, total_bytes));
    struct pl_call call;
    if (result != PL_SUCCESS || free_bytes == NULL || total_bytes == NULL || !pl_begin(slot, &call)) return result;
    if (call.has_device) pl_limit_view(call.device, free_bytes, total_bytes);
    pl_end(&call);
    return result;
}

int32_t pl_on_device_total_mem_v1(const struct pl_slot *slot, uint32_t *size, int32_t device) {
    const int32_t result = PL_REAL(slot, (uint32_t *, int32_t), (size, device));
    if (result != PL_SUCCESS || size == NULL || pl_depth > 0) return result;
    uint64_t wide = *size, unused = 0;
    pl_depth++;
    pl_limit_view((uint32_t)device, &unused, &wide);
    pl_depth--;
    *size = narrow(wide);
    return result;
}

int32_t pl_on_device_total_mem(const struct pl_slot *slot, uint64_t *size, int32_t device) {
    const int32_t result = PL_REAL(slot, (uint64_t *, int32_t), (size, device));
    if (result != PL_SUCCESS || size == NULL || pl_depth > 0) return result;
    uint64_t unused = 0;
    pl_depth++;
    pl_limit_view((uint32_t)device, &unused, size);
    pl_depth--;
    return result;
}
