// Streams, events and pools, and calls that are forwarded to the driver unchanged.
#include <stdatomic.h>

#include "runtime.h"

// ---- Streams, events and pools: calls that do not map to one driver call with the same arguments.

int cudaStreamCreate(uint64_t *stream) { RT_CALL(driver->stream_create(stream, 0)); }
int cudaStreamCreateWithFlags(uint64_t *stream, unsigned flags) { RT_CALL(driver->stream_create(stream, flags)); }
int cudaEventCreate(uint64_t *event) { RT_CALL(driver->event_create(event, 0)); }
int cudaEventCreateWithFlags(uint64_t *event, unsigned flags) { RT_CALL(driver->event_create(event, flags)); }

int cudaStreamCopyAttributes(uint64_t to, uint64_t from) { RT_CALL(driver->stream_copy_attributes(to, from)); }
int cudaStreamCopyAttributes_ptsz(uint64_t to, uint64_t from) {
    RT_CALL(driver->stream_copy_attributes(to == 0 ? RT_PER_THREAD : to, from == 0 ? RT_PER_THREAD : from));
}

// Callback for the nodes that a recapture created.
struct rt_recapture {
    void *function;
    void *argument;
};

RT_STREAM_CALL(cudaStreamBeginRecaptureToGraph, (void *stream, int mode, uint64_t graph, const struct rt_recapture *callback),
               driver->stream_begin_recapture(on, mode, graph, callback == NULL ? NULL : callback->function,
                                              callback == NULL ? NULL : callback->argument))

// The driver's `flags` parameter is wider.
int cudaMemPoolExportToShareableHandle(void *handle, uint64_t pool, int type, unsigned flags) {
    RT_CALL(driver->mem_pool_export(handle, pool, type, flags));
}

int cudaMemPoolImportFromShareableHandle(uint64_t *pool, void *handle, int type, unsigned flags) {
    RT_CALL(driver->mem_pool_import(pool, handle, type, flags));
}

int cudaGraphInstantiateWithParams_ptsz(uint64_t *exec, uint64_t graph, void *params) {
    int cudaGraphInstantiateWithParams(void *, uint64_t, void *);
    return cudaGraphInstantiateWithParams(exec, graph, params);
}

#if RT_MAJOR < 13
// cudaThread* calls are the old names of cudaDevice* calls.
int cudaThreadSynchronize(void) {
    int cudaDeviceSynchronize(void);
    return cudaDeviceSynchronize();
}

int cudaThreadExit(void) {
    int cudaDeviceReset(void);
    return cudaDeviceReset();
}

int cudaThreadSetLimit(int limit, size_t value) {
    int cudaDeviceSetLimit(int, size_t);
    return cudaDeviceSetLimit(limit, value);
}

int cudaThreadGetLimit(size_t *value, int limit) {
    int cudaDeviceGetLimit(void *, int);
    return cudaDeviceGetLimit(value, limit);
}

int cudaThreadSetCacheConfig(int config) {
    int cudaDeviceSetCacheConfig(int);
    return cudaDeviceSetCacheConfig(config);
}

int cudaThreadGetCacheConfig(int *config) {
    int cudaDeviceGetCacheConfig(void *);
    return cudaDeviceGetCacheConfig(config);
}

// All devices have supported doubles since CUDA 9.
int cudaSetDoubleForDevice(double *number) {
    (void)number;
    return RT_SUCCESS;
}
int cudaSetDoubleForHost(double *number) {
    (void)number;
    return RT_SUCCESS;
}
#endif

// ---- Calls that are forwarded to the driver unchanged: cudart_forward.def.

// clang-format off
#define HANDED_ON(prepare, parameters, symbol, version, arguments, answer)                  \
    {                                                                                       \
        static void *_Atomic slot;                                                          \
        int(*const call) parameters = (int(*) parameters)rt_forward(&slot, #symbol, version); \
        prepare                                                                             \
        RT_CALL(answer(((void)driver, call arguments)));                                    \
    }
#define PLAIN(error)  (error)
#define ON_OWN_STREAM if (stream == 0) stream = RT_PER_THREAD;
#define OF_KERNEL                                                                           \
    uint64_t kernel = 0;                                                                    \
    const int unknown = rt_kernel(function, &kernel);                                       \
    if (unknown != RT_SUCCESS) return rt_end(unknown);                                      \
    function = (const void *)(uintptr_t)kernel;

#define F(name, symbol, version, parameters, arguments) \
    int name parameters HANDED_ON(, parameters, symbol, version, arguments, PLAIN)
#define S(name, symbol, version, parameters, arguments)                                     \
    int name parameters HANDED_ON(, parameters, symbol, version, arguments, PLAIN)          \
    int RT_TWIN(name, _ptsz) parameters HANDED_ON(ON_OWN_STREAM, parameters, symbol, version, arguments, PLAIN)
#define K(name, symbol, version, parameters, arguments) \
    int name parameters HANDED_ON(OF_KERNEL, parameters, symbol, version, arguments, rt_kernel_error)
#include "cudart_forward.def"
// clang-format on
