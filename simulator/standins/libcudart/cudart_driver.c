// The driver below the runtime, and the last error of each thread.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime.h"

// ---- The driver, loaded and initialized once, and the contexts made current for threads.

static struct rt_driver loaded;
static int load_error = RT_INSUFFICIENT_DRIVER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int (*resolver)(const char *symbol, void **function, int version, uint64_t flags, int *status);
static int device_count;
static pthread_mutex_t contexts_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t contexts[RT_MOST_DEVICES]; // primary contexts retained by this runtime; guarded by contexts_mutex
static unsigned flags_of[RT_MOST_DEVICES]; // flags of cudaSetDeviceFlags(); guarded by contexts_mutex

static _Thread_local int current_device;

void *rt_driver_symbol(const char *symbol, int version, uint64_t flags) {
    void *function = NULL;
    if (resolver == NULL || resolver(symbol, &function, version, flags, NULL) != 0) return NULL;
    return function;
}

// Called instead of functions that the driver lacks.
static int runtime_absent(void) { return RT_NOT_SUPPORTED; }

static void *resolve_function(const char *symbol, int version) {
    void *function = rt_driver_symbol(symbol, version, 0);
    return function != NULL ? function : (void *)(uintptr_t)runtime_absent;
}

static void load_libcuda(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) return;
    void *function = dlsym(library, "cuGetProcAddress_v2");
    if (function == NULL) return;
    memcpy(&resolver, &function, sizeof resolver);
#define X(member, symbol, version, parameters)                                                                                             \
    function = resolve_function(symbol, version);                                                                                          \
    memcpy(&loaded.member, &function, sizeof function);
#include "cudart_driver.def"
#undef X
    load_error = loaded.init(0);
    if (load_error == RT_SUCCESS) load_error = loaded.device_get_count(&device_count);
}

int rt_load(const struct rt_driver **driver) {
    (void)pthread_once(&once, load_libcuda);
    if (load_error == RT_SUCCESS) *driver = &loaded;
    return load_error;
}

void *rt_forward(void *_Atomic *slot, const char *symbol, int version) {
    void *function = atomic_load_explicit(slot, memory_order_relaxed);
    if (function != NULL) return function;
    (void)pthread_once(&once, load_libcuda);
    function = resolve_function(symbol, version);
    atomic_store_explicit(slot, function, memory_order_relaxed);
    return function;
}

// --- contexts ---------------------------------------------------------------------------------------------------------------------
// Returns the thread's device; a context that the program made current through the driver takes precedence.
int rt_device(void) {
    const struct rt_driver *driver = NULL;
    int device;
    return rt_load(&driver) == RT_SUCCESS && driver->ctx_get_device(&device) == RT_SUCCESS ? device : current_device;
}

int rt_primary(int device, uint64_t *context) {
    const struct rt_driver *driver = NULL;
    int error = rt_load(&driver);
    if (error == RT_SUCCESS && (device < 0 || device >= device_count || device >= RT_MOST_DEVICES)) error = RT_INVALID_DEVICE;
    if (error != RT_SUCCESS) return error;
    (void)pthread_mutex_lock(&contexts_mutex);
    if (contexts[device] == 0) error = driver->primary_ctx_retain(&contexts[device], device);
    if (error == RT_SUCCESS) *context = contexts[device];
    (void)pthread_mutex_unlock(&contexts_mutex);
    return error;
}

static int make_current(const struct rt_driver *driver, int device) {
    uint64_t context = 0;
    const int error = rt_primary(device, &context);
    return error != RT_SUCCESS ? error : driver->ctx_set_current(context);
}

int rt_begin(const struct rt_driver **driver) {
    uint64_t context = 0;
    int error = rt_load(driver);
    if (error == RT_SUCCESS) error = (*driver)->ctx_get_current(&context);
    return error == RT_SUCCESS && context == 0 ? make_current(*driver, current_device) : error;
}

// Makes the device's primary context current if the error says that it is needed and possible. If that fails, the original error stays.
bool rt_again(int error) {
    const struct rt_driver *driver = NULL;
    uint64_t context = 0;
    if ((error != RT_INVALID_CONTEXT && error != RT_CONTEXT_IS_DESTROYED) || rt_load(&driver) != RT_SUCCESS) return false;
    const bool current = driver->ctx_get_current(&context) == RT_SUCCESS && context != 0;
    if (current && error != RT_CONTEXT_IS_DESTROYED) return false;
    return make_current(driver, current_device) == RT_SUCCESS;
}

// --- devices of threads -------------------------------------------------------------------------------------------------------
int cudaGetDeviceCount(int *count) {
    const struct rt_driver *driver = NULL;
    int error = count == NULL ? RT_INVALID_VALUE : rt_load(&driver);
    if (count != NULL) *count = error == RT_SUCCESS ? device_count : 0;
    if (error == RT_SUCCESS && device_count == 0) error = RT_NO_DEVICE;
    return rt_end(error);
}

int cudaGetDevice(int *device) {
    const struct rt_driver *driver = NULL;
    const int error = rt_load(&driver);
    if (error == RT_SUCCESS && device != NULL) *device = rt_device();
    return rt_end(error == RT_SUCCESS && device == NULL ? RT_INVALID_VALUE : error);
}

// With CUDA 11, selecting a device does not create its primary context; since CUDA 12 it does.
static int set_device(const struct rt_driver *driver, int device) {
    bool make = RT_MAJOR > 11;
    if (!make) {
        (void)pthread_mutex_lock(&contexts_mutex);
        make = contexts[device] != 0;
        (void)pthread_mutex_unlock(&contexts_mutex);
    }
    return make ? make_current(driver, device) : driver->ctx_set_current(0);
}

int cudaSetDevice(int device) {
    const struct rt_driver *driver = NULL;
    int error = rt_load(&driver);
    if (error == RT_SUCCESS && (device < 0 || device >= device_count || device >= RT_MOST_DEVICES)) error = RT_INVALID_DEVICE;
    if (error == RT_SUCCESS) error = set_device(driver, device);
    if (error == RT_SUCCESS) current_device = device;
    return rt_end(error);
}

static int keep_flags(const struct rt_driver *driver, int device, unsigned flags) {
    (void)pthread_mutex_lock(&contexts_mutex);
    flags_of[device] = flags;
    (void)pthread_mutex_unlock(&contexts_mutex);
    const int error = driver->primary_ctx_set_flags(device, flags);
    return error == RT_NOT_SUPPORTED ? RT_SUCCESS : error; // how a thread waits has no effect here
}

int cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
    enum { FLAGS_ARE_VALID = 1 };
    const struct rt_driver *driver = NULL;
    uint64_t context = 0;
    int error = (flags & ~(unsigned)FLAGS_ARE_VALID) != 0 ? RT_INVALID_VALUE : rt_primary(device, &context);
    if (error == RT_SUCCESS) error = rt_load(&driver);
    if (error == RT_SUCCESS && (flags & FLAGS_ARE_VALID) != 0) error = keep_flags(driver, device, device_flags);
    return rt_end(error);
}

enum { FLAGS_KNOWN = 0x9f, MAP_HOST = 8 }; // of cudaSetDeviceFlags(): scheduling, mapped host memory, local memory, synchronous copies

int cudaSetDeviceFlags(unsigned flags) {
    const struct rt_driver *driver = NULL;
    int error = (flags & ~(unsigned)FLAGS_KNOWN) != 0 ? RT_INVALID_VALUE : rt_load(&driver);
    if (error == RT_SUCCESS) error = keep_flags(driver, rt_device(), flags);
    return rt_end(error);
}

int cudaGetDeviceFlags(unsigned *flags) {
    const struct rt_driver *driver = NULL;
    const int error = flags == NULL ? RT_INVALID_VALUE : rt_load(&driver);
    if (error != RT_SUCCESS) return rt_end(error);
    const int device = rt_device();
    (void)pthread_mutex_lock(&contexts_mutex);
    *flags = flags_of[device] | MAP_HOST; // always on with unified addressing
    (void)pthread_mutex_unlock(&contexts_mutex);
    return RT_SUCCESS;
}

int cudaDeviceReset(void) {
    const struct rt_driver *driver = NULL;
    int error = rt_load(&driver);
    if (error != RT_SUCCESS) return rt_end(error);
    const int device = rt_device();
    (void)pthread_mutex_lock(&contexts_mutex);
    const bool held = contexts[device] != 0;
    contexts[device] = 0;
    (void)pthread_mutex_unlock(&contexts_mutex);
    error = driver->primary_ctx_reset(device);
    if (held) (void)driver->primary_ctx_release(device);
    if (error == RT_SUCCESS) error = driver->ctx_set_current(0);
    return rt_end(error);
}

// ---- Last error of each thread; names and texts of errors.

static _Thread_local int last_error;

int rt_end(int error) {
    if (error != RT_SUCCESS && error != RT_NOT_READY) last_error = error;
    return error;
}

int cudaGetLastError(void) {
    const int error = last_error;
    last_error = RT_SUCCESS;
    return error;
}

int cudaPeekAtLastError(void) { return last_error; }

// All enumerations of the facts, including errors.
static const struct {
    const char *kind, *name;
    int value, since;
} values[] = {
#define V(kind, name, value, first, last) {#kind, #name, value, first},
#include "../facts/cudart_values.def"
#undef V
};

static const struct {
    int error;
    const char *text;
} texts[] = {
#define T(error, text) {error, text},
#include "../facts/cudart_texts.def"
#undef T
};

static const char unknown[] = "unrecognized error code";

const char *cudaGetErrorName(int error) {
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (values[i].value == error && values[i].since / 1000 <= RT_MAJOR && strcmp(values[i].kind, "cudaError") == 0)
            return values[i].name;
    return unknown;
}

const char *cudaGetErrorString(int error) {
    if (cudaGetErrorName(error) == unknown) return unknown;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].error == error) return texts[i].text;
    return cudaGetErrorName(error);
}
