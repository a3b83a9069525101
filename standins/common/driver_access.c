// The driver as loaded: found once, a context made current where there is none, work and fills on its streams.
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "common.h"

static struct standin_driver loaded;
static bool is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int (*resolver)(const char *symbol, void **function, int version, uint64_t flags, int *status);

enum { NOT_INITIALIZED = 3, NOT_SUPPORTED = 801 };

static int absent(void) { return NOT_SUPPORTED; }

static void resolve(const char *symbol, int version, void *member) {
    void *function = NULL;
    if (resolver(symbol, &function, version, 0, NULL) != 0 || function == NULL) function = (void *)(uintptr_t)absent;
    memcpy(member, &function, sizeof function);
}

static void load(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = library == NULL ? NULL : dlsym(library, "cuGetProcAddress_v2");
    if (found == NULL) return;
    memcpy(&resolver, &found, sizeof resolver);
#define X(member, symbol, version, parameters) resolve(symbol, version, &loaded.member);
#include "common_driver.def"
#undef X
    is_loaded = loaded.init(0) == 0;
}

const struct standin_driver *standin_driver(void) {
    (void)pthread_once(&once, load);
    return is_loaded ? &loaded : NULL;
}

const struct standin_driver *standin_begin(void) {
    const struct standin_driver *driver = standin_driver();
    uint64_t context = 0;
    if (driver == NULL) return NULL;
    if (driver->ctx_get_current(&context) == 0 && context != 0) return driver;
    if (driver->primary_ctx_retain(&context, 0) != 0 || driver->ctx_set_current(context) != 0) return NULL;
    return driver;
}

// --- work ------------------------------------------------------------------------------------------------------------------------------
// One kernel without parameters, loaded once: a kernel of a library belongs to no context, so that it serves every device and survives
// a reset.
static const char code[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry standin_work()\n{\nret;\n}\n";
static uint64_t kernel;
static pthread_once_t kernel_once = PTHREAD_ONCE_INIT;

static void load_kernel(void) {
    uint64_t library = 0;
    if (loaded.library_load_data(&library, code, NULL, NULL, 0, NULL, NULL, 0) == 0)
        (void)loaded.library_get_kernel(&kernel, library, "standin_work");
}

static void nothing(void *unused) { (void)unused; }

int standin_work(uint64_t stream) {
    const struct standin_driver *driver = standin_begin();
    if (driver == NULL) return NOT_INITIALIZED;
    (void)pthread_once(&kernel_once, load_kernel);
    // A driver without libraries of kernels: a host function keeps the order and makes a node.
    if (kernel == 0) return driver->launch_host_func(stream, nothing, NULL);
    return driver->launch_kernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

int standin_zero(const void *address, size_t bytes, uint64_t stream) {
    const struct standin_driver *driver = standin_begin();
    if (driver == NULL) return NOT_INITIALIZED;
    return address == NULL || bytes == 0 ? 0 : driver->memset_d8_async((uint64_t)(uintptr_t)address, 0, bytes, stream);
}

int standin_result(void *result, size_t bytes, bool on_device, uint64_t stream) {
    const int error = standin_work(stream);
    if (error != 0 || result == NULL) return error;
    if (on_device) return standin_zero(result, bytes, stream);
    const int waited = standin_driver()->stream_synchronize(stream);
    if (waited == 0) memset(result, 0, bytes);
    return waited;
}

// --- memory and devices ----------------------------------------------------------------------------------------------------------------
bool standin_is_device(const void *address) {
    enum { MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE = 2 };
    const struct standin_driver *driver = standin_begin();
    unsigned type = 0, managed = 0;
    if (driver == NULL || driver->pointer_get_attribute(&type, MEMORY_TYPE, (uint64_t)(uintptr_t)address) != 0) return false;
    (void)driver->pointer_get_attribute(&managed, IS_MANAGED, (uint64_t)(uintptr_t)address);
    return type == DEVICE && managed == 0;
}

void *standin_take(size_t bytes) {
    const struct standin_driver *driver = bytes == 0 ? NULL : standin_begin();
    uint64_t address = 0;
    return driver != NULL && driver->mem_alloc(&address, bytes) == 0 ? (void *)(uintptr_t)address : NULL;
}

void standin_give(void *address) {
    const struct standin_driver *driver = address == NULL ? NULL : standin_begin();
    if (driver != NULL) (void)driver->mem_free((uint64_t)(uintptr_t)address);
}

int standin_capability(void) {
    enum { MAJOR = 75, MINOR = 76 };
    const struct standin_driver *driver = standin_begin();
    int device = 0, major = 0, minor = 0;
    if (driver == NULL || driver->ctx_get_device(&device) != 0 || driver->device_get_attribute(&major, MAJOR, device) != 0 ||
        driver->device_get_attribute(&minor, MINOR, device) != 0)
        return 0;
    return 10 * major + minor;
}
