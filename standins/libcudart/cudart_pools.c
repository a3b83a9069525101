// Memory in stream order, from the driver's pools.
#include "runtime.h"

static int give(const struct rt_driver *driver, void **pointer, size_t bytes, uint64_t pool, bool from_pool, uint64_t stream) {
    uint64_t address = 0;
    if (pointer == NULL) return RT_INVALID_VALUE;
    const int error =
        from_pool ? driver->mem_alloc_from_pool_async(&address, bytes, pool, stream) : driver->mem_alloc_async(&address, bytes, stream);
    if (error == RT_SUCCESS) *pointer = (void *)(uintptr_t)address;
    return error;
}

RT_STREAM_CALL(cudaMallocAsync, (void **pointer, size_t bytes, void *stream), give(driver, pointer, bytes, 0, false, on))
RT_STREAM_CALL(cudaMallocFromPoolAsync, (void **pointer, size_t bytes, uint64_t pool, void *stream),
               give(driver, pointer, bytes, pool, true, on))
RT_STREAM_CALL(cudaFreeAsync, (void *pointer, void *stream), driver->mem_free_async((uint64_t)(uintptr_t)pointer, on))

int cudaMemPoolCreate(uint64_t *pool, const void *properties) { RT_CALL(driver->mem_pool_create(pool, properties)); }
int cudaMemPoolDestroy(uint64_t pool) { RT_CALL(driver->mem_pool_destroy(pool)); }
int cudaMemPoolTrimTo(uint64_t pool, size_t keep_bytes) { RT_CALL(driver->mem_pool_trim_to(pool, keep_bytes)); }
int cudaMemPoolSetAttribute(uint64_t pool, int attribute, void *value) { RT_CALL(driver->mem_pool_set_attribute(pool, attribute, value)); }
int cudaMemPoolGetAttribute(uint64_t pool, int attribute, void *value) { RT_CALL(driver->mem_pool_get_attribute(pool, attribute, value)); }
int cudaMemPoolSetAccess(uint64_t pool, const void *access, size_t count) { RT_CALL(driver->mem_pool_set_access(pool, access, count)); }
int cudaMemPoolGetAccess(int *flags, uint64_t pool, void *location) { RT_CALL(driver->mem_pool_get_access(flags, pool, location)); }
