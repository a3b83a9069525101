// The driver: found and initialized once, contexts made current, errors remembered.
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "runtime.h"

static struct rt_driver loaded;
static int load_error = RT_INSUFFICIENT_DRIVER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int (*resolver)(const char *symbol, void **function, int version, uint64_t flags, int *status);
static pthread_mutex_t contexts_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t contexts[RT_MOST_DEVICES]; // primary contexts that this runtime holds; guarded by contexts_mutex

static _Thread_local int last_error;
static _Thread_local int current_device;

void *rt_driver_symbol(const char *symbol, int version, uint64_t flags) {
    void *function = NULL;
    if (resolver == NULL || resolver(symbol, &function, version, flags, NULL) != 0) return NULL;
    return function;
}

// A function the driver does not have answers so.
static int absent(void) { return RT_NOT_SUPPORTED; }

static void resolve(const char *symbol, int version, void *member) {
    void *function = rt_driver_symbol(symbol, version, 0);
    if (function == NULL) function = (void *)(uintptr_t)absent;
    memcpy(member, &function, sizeof function);
}

static void load(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) return;
    void *function = dlsym(library, "cuGetProcAddress_v2");
    if (function == NULL) return;
    memcpy(&resolver, &function, sizeof resolver);
#define X(member, symbol, version, parameters) resolve(symbol, version, &loaded.member);
#include "cudart_driver.def"
#undef X
    load_error = loaded.init(0);
}

int rt_load(const struct rt_driver **driver) {
    (void)pthread_once(&once, load);
    if (load_error == RT_SUCCESS) *driver = &loaded;
    return load_error;
}

int rt_device(void) {
    const struct rt_driver *driver = NULL;
    int device;
    // A context that the program made current by the driver decides.
    uint64_t context = 0;
    if (rt_load(&driver) == RT_SUCCESS && driver->ctx_get_current(&context) == RT_SUCCESS && context != 0 &&
        driver->ctx_get_device(&device) == RT_SUCCESS)
        return device;
    return current_device;
}

static int make_current(const struct rt_driver *driver, int device) {
    (void)pthread_mutex_lock(&contexts_mutex);
    int error = contexts[device] != 0 ? RT_SUCCESS : driver->primary_ctx_retain(&contexts[device], device);
    const uint64_t context = contexts[device];
    (void)pthread_mutex_unlock(&contexts_mutex);
    return error != RT_SUCCESS ? error : driver->ctx_set_current(context);
}

int rt_begin(const struct rt_driver **driver) {
    uint64_t context = 0;
    int error = rt_load(driver);
    if (error == RT_SUCCESS) error = (*driver)->ctx_get_current(&context);
    return error == RT_SUCCESS && context == 0 ? make_current(*driver, current_device) : error;
}

int rt_end(int error) {
    if (error != RT_SUCCESS && error != RT_NOT_READY) last_error = error;
    return error;
}

// --- devices of threads -------------------------------------------------------------------------------------------------------
int cudaGetDeviceCount(int *count) {
    const struct rt_driver *driver = NULL;
    int error = rt_load(&driver);
    if (error == RT_SUCCESS) error = count == NULL ? RT_INVALID_VALUE : driver->device_get_count(count);
    if (error == RT_SUCCESS && *count == 0) error = RT_NO_DEVICE;
    return rt_end(error);
}

int cudaGetDevice(int *device) {
    const struct rt_driver *driver = NULL;
    const int error = rt_load(&driver);
    if (error == RT_SUCCESS && device != NULL) *device = rt_device();
    return rt_end(error == RT_SUCCESS && device == NULL ? RT_INVALID_VALUE : error);
}

int cudaSetDevice(int device) {
    const struct rt_driver *driver = NULL;
    int count = 0, error = rt_load(&driver);
    if (error == RT_SUCCESS) error = driver->device_get_count(&count);
    if (error == RT_SUCCESS && (device < 0 || device >= count || device >= RT_MOST_DEVICES)) error = RT_INVALID_DEVICE;
    if (error == RT_SUCCESS) error = make_current(driver, device);
    if (error == RT_SUCCESS) current_device = device;
    return rt_end(error);
}

int cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
    (void)device_flags;
    (void)flags;
    const struct rt_driver *driver = NULL;
    uint64_t before = 0;
    int error = rt_load(&driver);
    if (error == RT_SUCCESS && (device < 0 || device >= RT_MOST_DEVICES)) error = RT_INVALID_DEVICE;
    if (error == RT_SUCCESS) error = driver->ctx_get_current(&before);
    if (error == RT_SUCCESS) error = make_current(driver, device);
    if (error == RT_SUCCESS) error = driver->ctx_set_current(before);
    return rt_end(error);
}

int cudaDeviceReset(void) {
    const struct rt_driver *driver = NULL;
    int error = rt_load(&driver);
    if (error != RT_SUCCESS) return rt_end(error);
    const int device = rt_device();
    (void)pthread_mutex_lock(&contexts_mutex);
    contexts[device] = 0;
    (void)pthread_mutex_unlock(&contexts_mutex);
    error = driver->primary_ctx_reset(device);
    if (error == RT_SUCCESS) error = driver->ctx_set_current(0);
    return rt_end(error);
}

// --- errors -----------------------------------------------------------------------------------------------------------------------
int cudaGetLastError(void) {
    const int error = last_error;
    last_error = RT_SUCCESS;
    return error;
}

int cudaPeekAtLastError(void) { return last_error; }

static const struct {
    int error;
    const char *name, *text;
} own_errors[] = {
    {RT_SUCCESS, "cudaSuccess", "no error"},
    {RT_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument"},
    {RT_MEMORY_ALLOCATION, "cudaErrorMemoryAllocation", "out of memory"},
    {RT_INVALID_SYMBOL, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {RT_INVALID_MEMCPY_DIRECTION, "cudaErrorInvalidMemcpyDirection", "invalid copy direction"},
    {RT_INSUFFICIENT_DRIVER, "cudaErrorInsufficientDriver", "the driver is missing or too old for this runtime"},
    {RT_MISSING_CONFIGURATION, "cudaErrorMissingConfiguration", "a launch without its configuration"},
    {RT_INVALID_DEVICE_FUNCTION, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {RT_NO_DEVICE, "cudaErrorNoDevice", "there is no device"},
    {RT_INVALID_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {RT_NOT_READY, "cudaErrorNotReady", "not ready"},
    {RT_NOT_SUPPORTED, "cudaErrorNotSupported", "not supported"},
};

const char *cudaGetErrorName(int error) {
    const struct rt_driver *driver = NULL;
    const char *name = NULL;
    for (size_t i = 0; i < sizeof own_errors / sizeof own_errors[0]; i++)
        if (own_errors[i].error == error) return own_errors[i].name;
    return rt_load(&driver) == RT_SUCCESS && driver->get_error_name(error, &name) == RT_SUCCESS && name != NULL ? name : "cudaErrorUnknown";
}

const char *cudaGetErrorString(int error) {
    const struct rt_driver *driver = NULL;
    const char *text = NULL;
    for (size_t i = 0; i < sizeof own_errors / sizeof own_errors[0]; i++)
        if (own_errors[i].error == error) return own_errors[i].text;
    return rt_load(&driver) == RT_SUCCESS && driver->get_error_string(error, &text) == RT_SUCCESS && text != NULL ? text : "unknown error";
}
