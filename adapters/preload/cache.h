// cache.h: serves device memory from our allocator, under --cache. Call only within a watched call.
#ifndef PL_CACHE_H
#define PL_CACHE_H

#include "config.h"
#include "preload.h"

// Serves the call if it can: returns true, with the driver's result code and the address. Returns false to let the driver serve it.
bool pl_cache_serve(const struct pl_call *call, uint64_t size, uint64_t stream, uint64_t *address, int32_t *result);
static inline bool pl_cache_alloc(const struct pl_call *call, uint64_t size, uint64_t stream, uint64_t *address, int32_t *result) {
    return pl_config()->caches && pl_cache_serve(call, size, stream, address, result);
}
// Free memory. Return false if it did not come from the allocator. pl_cache_free() waits for the device, as the driver does, because any
// stream may use the freed memory at once; pl_cache_free_async() orders by the call's stream.
bool pl_cache_take_back(const struct pl_call *call, uint64_t address, int32_t *result);
static inline bool pl_cache_free(const struct pl_call *call, uint64_t address, int32_t *result) {
    return pl_config()->caches && pl_cache_take_back(call, address, result);
}
bool pl_cache_free_async(const struct pl_call *call, uint64_t address, int32_t *result);
// Frees everything, before the device is reset.
void pl_cache_forget(void);
// Call in the child of a fork, where the allocator is the parent's.
void pl_cache_abandon(void);

#endif
