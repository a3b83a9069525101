// Devices and execution contexts.
#include <string.h>

#include "runtime.h"

// ---- Properties and attributes of devices.

int cudaDriverGetVersion(int *version) {
    const struct rt_driver *driver = NULL;
    if (version == NULL) return rt_end(RT_INVALID_VALUE);
    if (rt_load(&driver) != RT_SUCCESS) {
        *version = 0; // a missing driver is not an error here
        return RT_SUCCESS;
    }
    return rt_end(driver->driver_get_version(version));
}

int cudaRuntimeGetVersion(int *version) {
    if (version == NULL) return rt_end(RT_INVALID_VALUE);
    *version = RUNTIME_VERSION;
    return RT_SUCCESS;
}

// --- cudaDeviceProp -------------------------------------------------------------------------------------------------------------------
enum { LAYOUT_11, LAYOUT_12, LAYOUT_13, LAYOUTS };
enum { LARGEST = 1032 };
static const size_t layout_bytes[LAYOUTS] = {728, 1032, 1008};
// Members that are not attributes have the same offsets in all versions.
enum { AT_NAME = 0, AT_UUID = 256, AT_TOTAL = 288 }; // between UUID and total: the LUID of Windows, always 0

static const struct {
    short attribute;
    unsigned char bytes, count;
    short place[LAYOUTS];
} members[] = {
#define NO                                                            -1
#define P(member, bytes, count, attribute, place11, place12, place13) {attribute, bytes, count, {place11, place12, place13}},
#include "device_properties.def"
#undef P
#undef NO
};

// Stores attributes as members. An attribute that the driver does not know becomes 0, as with an older driver. Any other error is returned.
static int put_attributes(const struct rt_driver *driver, unsigned char *prop, int layout, int device) {
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        for (int n = 0; members[i].place[layout] >= 0 && n < members[i].count; n++) {
            int value = 0;
            const int error = driver->device_get_attribute(&value, members[i].attribute + n, device);
            if (error != RT_SUCCESS && error != RT_INVALID_VALUE) return error;
            if (error != RT_SUCCESS) value = 0;
            const size_t wide = (size_t)value;
            unsigned char *at = prop + members[i].place[layout] + n * members[i].bytes;
            memcpy(at, members[i].bytes == 8 ? (const void *)&wide : (const void *)&value, members[i].bytes);
        }
    }
    return RT_SUCCESS;
}

static int properties(const struct rt_driver *driver, void *answer, int layout, int device) {
    unsigned char prop[LARGEST] = {0};
    size_t total = 0;
    int error = answer == NULL ? RT_INVALID_VALUE : driver->device_get_name((char *)prop + AT_NAME, AT_UUID - AT_NAME, device);
    if (error == RT_SUCCESS) error = driver->device_total_mem(&total, device);
    if (error == RT_SUCCESS) error = driver->device_get_uuid(prop + AT_UUID, device);
    if (error != RT_SUCCESS) return error;
    memcpy(prop + AT_TOTAL, &total, sizeof total);
    error = put_attributes(driver, prop, layout, device);
    if (error == RT_SUCCESS) memcpy(answer, prop, layout_bytes[layout]);
    return error;
}

int cudaGetDeviceProperties(void *prop, int device) { RT_CALL(properties(driver, prop, RT_MAJOR >= 13 ? LAYOUT_13 : LAYOUT_11, device)); }
#if RT_MAJOR == 12
int cudaGetDeviceProperties_v2(void *prop, int device) { RT_CALL(properties(driver, prop, LAYOUT_12, device)); }
#endif

// Always chooses the first device.
static int choose_device(int *device, const void *wanted) {
    if (device == NULL || wanted == NULL) return RT_INVALID_VALUE;
    *device = 0;
    return RT_SUCCESS;
}

int cudaChooseDevice(int *device, const void *wanted) { RT_CALL(choose_device(device, wanted)); }

// CUDA sets the devices that a thread may use implicitly; this only selects the first one.
int cudaSetValidDevices(int *devices, int count) {
    const struct rt_driver *driver = NULL;
    int known = 0, error = rt_load(&driver);
    if (error == RT_SUCCESS) error = driver->device_get_count(&known);
    if (error == RT_SUCCESS && (count < 0 || (count > 0 && devices == NULL))) error = RT_INVALID_VALUE;
    for (int i = 0; i < count && error == RT_SUCCESS; i++)
        if (devices[i] < 0 || devices[i] >= known) error = RT_INVALID_DEVICE;
    int cudaSetDevice(int);
    return error == RT_SUCCESS && count > 0 ? cudaSetDevice(devices[0]) : rt_end(error);
}

// --- peers ------------------------------------------------------------------------------------------------------------------------------
int cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    uint64_t context = 0;
    RT_CALL((rt_error_ = rt_primary(peer, &context)) != RT_SUCCESS ? rt_error_ : driver->ctx_enable_peer_access(context, flags));
}

int cudaDeviceDisablePeerAccess(int peer) {
    uint64_t context = 0;
    RT_CALL((rt_error_ = rt_primary(peer, &context)) != RT_SUCCESS ? rt_error_ : driver->ctx_disable_peer_access(context));
}

// --- driver entry points --------------------------------------------------------------------------------------------
static int entry_point(const char *symbol, void **function, unsigned version, uint64_t flags, int *status) {
    enum { FOUND, NOT_FOUND };
    const struct rt_driver *driver = NULL;
    const int error = rt_load(&driver);
    if (error != RT_SUCCESS || symbol == NULL || function == NULL) return error != RT_SUCCESS ? error : RT_INVALID_VALUE;
    *function = rt_driver_symbol(symbol, (int)version, flags);
    if (status != NULL) *status = *function == NULL ? NOT_FOUND : FOUND;
    return RT_SUCCESS;
}

enum { OWN_STREAM = 2 }; // flag of programs with the per-thread default stream

int cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version, unsigned long long flags, int *status) {
    return rt_end(entry_point(symbol, function, version, flags, status));
}

int cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function, unsigned version, unsigned long long flags, int *status) {
    return rt_end(entry_point(symbol, function, version, flags == 0 ? OWN_STREAM : flags, status));
}

#if RT_MAJOR == 11
// In this version, a missing function is an error.
static int entry_point_11(const char *symbol, void **function, uint64_t flags) {
    const int error = entry_point(symbol, function, RUNTIME_VERSION, flags, NULL);
    return error == RT_SUCCESS && *function == NULL ? RT_SYMBOL_NOT_FOUND : error;
}

int cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags) {
    return rt_end(entry_point_11(symbol, function, flags));
}

int cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function, unsigned long long flags) {
    return rt_end(entry_point_11(symbol, function, flags == 0 ? OWN_STREAM : flags));
}
#else
int cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags, int *status) {
    return rt_end(entry_point(symbol, function, RUNTIME_VERSION, flags, status));
}

int cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function, unsigned long long flags, int *status) {
    return rt_end(entry_point(symbol, function, RUNTIME_VERSION, flags == 0 ? OWN_STREAM : flags, status));
}
#endif

// ---- Execution contexts: green contexts, and the context of a whole device, whose handle is that of its primary context.

bool rt_is_green(const struct rt_driver *driver, uint64_t execution, uint64_t *context) {
    uint64_t found = 0;
    const bool green = driver->ctx_from_green_ctx(&found, execution) == RT_SUCCESS;
    *context = green ? found : execution;
    return green;
}

// Selects the driver's call for either kind of context.
#define EITHER(of_green, of_context) (rt_is_green(driver, execution, &context) ? driver->of_green : driver->of_context)

int cudaDeviceGetExecutionCtx(uint64_t *execution, int device) {
    RT_CALL(((void)driver, execution == NULL ? RT_INVALID_VALUE : rt_primary(device, execution)));
}

// The runtime's flags must be 0; the driver requires its default-stream flag.
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

// Waits for all work of the context; for a green context, of its primary context.
int cudaExecutionCtxSynchronize(uint64_t execution) {
    uint64_t context;
    RT_CALL((rt_is_green(driver, execution, &context), driver->ctx_synchronize_of(context)));
}

// Destroys a green context. A device's context is destroyed with its primary context.
int cudaExecutionCtxDestroy(uint64_t execution) {
    uint64_t context;
    RT_CALL(rt_is_green(driver, execution, &context) ? driver->green_ctx_destroy(execution) : RT_INVALID_VALUE);
}

// A stream in a green context is always non-blocking.
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
