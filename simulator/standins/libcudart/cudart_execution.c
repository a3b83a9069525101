// Execution contexts: green ones, and that of a whole device, whose handle is its primary context's.
#include "runtime.h"

bool rt_is_green(const struct rt_driver *driver, uint64_t execution, uint64_t *context) {
    uint64_t found = 0;
    const bool green = driver->ctx_from_green_ctx(&found, execution) == RT_SUCCESS;
    *context = green ? found : execution;
    return green;
}

// The driver's call for either kind.
#define EITHER(of_green, of_context) (rt_is_green(driver, execution, &context) ? driver->of_green : driver->of_context)

int cudaDeviceGetExecutionCtx(uint64_t *execution, int device) {
    RT_CALL(((void)driver, execution == NULL ? RT_INVALID_VALUE : rt_primary(device, execution)));
}

// The runtime has no flags here; the driver wants to be told of the default stream.
int cudaGreenCtxCreate(uint64_t *execution, uint64_t description, int device, unsigned flags) {
    enum { DEFAULT_STREAM = 1 };
    RT_CALL(flags != 0 ? RT_INVALID_VALUE : driver->green_ctx_create(execution, description, device, DEFAULT_STREAM));
}

int cudaExecutionCtxGetDevice(int *device, uint64_t execution) {
    uint64_t context;
    RT_CALL((rt_is_green(driver, execution, &context), driver->ctx_get_device_of(device, context)));
}

int cudaExecutionCtxGetDevResource(uint64_t execution, void *resource, int type) {
    uint64_t context;
    RT_CALL(EITHER(green_ctx_get_dev_resource(execution, resource, type), ctx_get_dev_resource(context, resource, type)));
}

int cudaExecutionCtxGetId(uint64_t execution, uint64_t *id) {
    uint64_t context;
    RT_CALL(EITHER(green_ctx_get_id(execution, id), ctx_get_id(context, id)));
}

int cudaExecutionCtxRecordEvent(uint64_t execution, uint64_t event) {
    uint64_t context;
    RT_CALL(EITHER(green_ctx_record_event(execution, event), ctx_record_event(context, event)));
}

int cudaExecutionCtxWaitEvent(uint64_t execution, uint64_t event) {
    uint64_t context;
    RT_CALL(EITHER(green_ctx_wait_event(execution, event), ctx_wait_event(context, event)));
}

// All that the context has to do, of which a green one's is a part.
int cudaExecutionCtxSynchronize(uint64_t execution) {
    uint64_t context;
    RT_CALL((rt_is_green(driver, execution, &context), driver->ctx_synchronize_of(context)));
}

// A device's goes with its primary context.
int cudaExecutionCtxDestroy(uint64_t execution) {
    uint64_t context;
    RT_CALL(rt_is_green(driver, execution, &context) ? driver->green_ctx_destroy(execution) : RT_INVALID_VALUE);
}

// One of a green context waits for no other by itself, whatever the flags say.
static int make_stream(const struct rt_driver *driver, uint64_t *stream, uint64_t execution, unsigned flags, int priority) {
    enum { NON_BLOCKING = 1 };
    uint64_t context, before = 0;
    if (stream == NULL || (flags & ~(unsigned)NON_BLOCKING) != 0) return RT_INVALID_VALUE;
    if (rt_is_green(driver, execution, &context)) return driver->green_ctx_stream_create(stream, execution, NON_BLOCKING, priority);
    (void)driver->ctx_get_current(&before);
    int error = driver->ctx_set_current(context);
    if (error != RT_SUCCESS) return error;
    error = driver->stream_create_with_priority(stream, flags, priority);
    (void)driver->ctx_set_current(before);
    return error;
}

int cudaExecutionCtxStreamCreate(uint64_t *stream, uint64_t execution, unsigned flags, int priority) {
    RT_CALL(make_stream(driver, stream, execution, flags, priority));
}
