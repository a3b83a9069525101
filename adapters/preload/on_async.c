// on_async.c: stream-ordered memory from the driver's pools.
#include "cache.h"
#include "preload.h"

enum { POOL_RESERVED_CURRENT = 5, POINTER_DEVICE_ORDINAL = 9 };

// Returns whether the stream is being captured: these calls then make graph nodes instead of memory.
static bool is_capturing(const struct pl_slot *slot, uint64_t stream) {
    int32_t status = 0;
    const struct pl_driver *driver = slot->driver;
    if (slot->per_thread && driver->stream_is_capturing_ptsz != NULL)
        return driver->stream_is_capturing_ptsz(stream, &status) == PL_SUCCESS && status != 0;
    return driver->stream_is_capturing != NULL && driver->stream_is_capturing(stream, &status) == PL_SUCCESS && status != 0;
}

// Returns the stream as the recording identifies it: 2 is the thread's own default stream, as in the driver's handles.
static uint64_t stream_meant(const struct pl_slot *slot, uint64_t stream) { return slot->per_thread && stream == 0 ? 2 : stream; }

// Sets the device, because the stream may belong to another device than the current one.
static void find_device(struct pl_call *call, uint64_t address) {
    int32_t device = 0;
    if (call->slot->driver->pointer_attribute != NULL &&
        call->slot->driver->pointer_attribute(&device, POINTER_DEVICE_ORDINAL, address) == PL_SUCCESS && device >= 0)
        call->target = (uint32_t)device;
}

// Records how much the pool has reserved on the device. Pool 0 is the device's current pool.
static void look_at_pool(const struct pl_call *call, uint64_t pool, uint32_t device) {
    const struct pl_driver *driver = call->slot->driver;
    if (pool == 0 && (driver->device_get_mem_pool == NULL || driver->device_get_mem_pool(&pool, (int32_t)device) != PL_SUCCESS)) return;
    uint64_t reserved = 0;
    if (driver->pool_get_attribute == NULL || driver->pool_get_attribute(pool, POOL_RESERVED_CURRENT, &reserved) != PL_SUCCESS) return;
    pl_pool_holds(call, device, pool, reserved);
}

// Before a driver fails it releases the pools' unused memory, so the memory they still reserve helps to explain the failure.
static bool pool_matters(int32_t result) { return result == PL_SUCCESS || result == PL_OUT_OF_MEMORY; }

int32_t pl_on_mem_alloc_async(const struct pl_slot *slot, uint64_t *address, uint64_t size, uint64_t stream) {
    struct pl_call call;
    if (is_capturing(slot, stream) || !pl_begin(slot, &call))
        return PL_REAL(slot, (uint64_t *, uint64_t, uint64_t), (address, size, stream));
    call.stream = stream_meant(slot, stream);
    int32_t result = PL_OUT_OF_MEMORY;
    bool served = false;
    if (pl_charge(&call, PL_ASYNC, call.device, size)) {
        served = address != NULL && pl_cache_alloc(&call, size, call.stream, address, &result);
        if (!served) result = PL_REAL(slot, (uint64_t *, uint64_t, uint64_t), (address, size, stream));
    }
    if (result == PL_SUCCESS && !served) find_device(&call, *address);
    if (pool_matters(result) && !served) look_at_pool(&call, 0, call.target);
    pl_settle(&call, result, result == PL_SUCCESS ? *address : 0, size);
    return result;
}

int32_t pl_on_mem_alloc_from_pool(const struct pl_slot *slot, uint64_t *address, uint64_t size, uint64_t pool, uint64_t stream) {
    struct pl_call call;
    if (is_capturing(slot, stream) || !pl_begin(slot, &call))
        return PL_REAL(slot, (uint64_t *, uint64_t, uint64_t, uint64_t), (address, size, pool, stream));
    call.stream = stream_meant(slot, stream);
    call.pool = pool;
    int32_t result = PL_OUT_OF_MEMORY;
    if (pl_charge(&call, PL_ASYNC, call.device, size))
        result = PL_REAL(slot, (uint64_t *, uint64_t, uint64_t, uint64_t), (address, size, pool, stream));
    if (result == PL_SUCCESS) find_device(&call, *address);
    if (pool_matters(result)) look_at_pool(&call, pool, call.target);
    pl_settle(&call, result, result == PL_SUCCESS ? *address : 0, size);
    return result;
}

int32_t pl_on_mem_free_async(const struct pl_slot *slot, uint64_t address, uint64_t stream) {
    struct pl_call call;
    if (is_capturing(slot, stream) || !pl_begin_free(slot, &call)) return PL_REAL(slot, (uint64_t, uint64_t), (address, stream));
    call.stream = stream_meant(slot, stream);
    int32_t result;
    if (!pl_cache_free_async(&call, address, &result)) result = PL_REAL(slot, (uint64_t, uint64_t), (address, stream));
    if (result == PL_SUCCESS) pl_died(&call, PL_ASYNC, address);
    pl_end(&call);
    return result;
}

int32_t pl_on_mem_pool_trim_to(const struct pl_slot *slot, uint64_t pool, uint64_t keep) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint64_t, uint64_t), (pool, keep));
    const int32_t result = PL_REAL(slot, (uint64_t, uint64_t), (pool, keep));
    if (result == PL_SUCCESS) look_at_pool(&call, pool, call.device);
    pl_end(&call);
    return result;
}

int32_t pl_on_mem_pool_destroy(const struct pl_slot *slot, uint64_t pool) {
    struct pl_call call;
    if (!pl_begin(slot, &call)) return PL_REAL(slot, (uint64_t), (pool));
    const int32_t result = PL_REAL(slot, (uint64_t), (pool));
    if (result == PL_SUCCESS) pl_pool_holds(&call, call.device, pool, 0);
    pl_end(&call);
    return result;
}
