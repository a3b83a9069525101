// cache.h: under --cache, device memory comes from our allocator. All under a call that is being watched.
#ifndef PL_CACHE_H
#define PL_CACHE_H

#include "config.h"
#include "preload.h"

// Serves the call if it is to be served: true with the driver's code in *result, and the address. False: ask the driver.
bool pl_cache_serve(const struct pl_call *call, uint64_t size, uint64_t stream, uint64_t *address, int32_t *result);
static inline bool pl_cache_alloc(const struct pl_call *call, uint64_t size, uint64_t stream, uint64_t *address, int32_t *result) {
    return pl_config()->caches && pl_cache_serve(call, size, stream, address, result);
}
// The same for giving memory back: false for what did not come from here. The first waits for the device, as the driver does, for
// what was freed may be used at once by any stream; the second goes by the call's stream.
bool pl_cache_take_back(const struct pl_call *call, uint64_t address, int32_t *result);
static inline bool pl_cache_free(const struct pl_call *call, uint64_t address, int32_t *result) {
    return pl_config()->caches && pl_cache_take_back(call, address, result);
}
bool pl_cache_free_async(const struct pl_call *call, uint64_t address, int32_t *result);
// Gives everything back: the device is about to be reset.
void pl_cache_forget(void);
// In the child of a fork: the allocator is the parent's.
void pl_cache_abandon(void);

#endif
