// What devices are and can do.
#include <stdio.h>
#include <string.h>

#include "runtime.h"

// cudaDeviceProp of CUDA 13: what this runtime fills, at its place in 1008 bytes. tests/cudart compares the places with NVIDIA's header.
struct rt_device_prop {
    char name[256];
    char uuid[16];
    char luid[8];
    unsigned luid_device_node_mask;
    size_t total_global_mem;
    size_t shared_mem_per_block;
    int regs_per_block;
    int warp_size;
    size_t mem_pitch;
    int max_threads_per_block;
    int max_threads_dim[3];
    int max_grid_size[3];
    size_t total_const_mem;
    int major;
    int minor;
    size_t texture_alignment;
    size_t texture_pitch_alignment;
    int multi_processor_count;
    int integrated;
    int can_map_host_memory;
    char further[1008 - 396];
};
_Static_assert(sizeof(struct rt_device_prop) == 1008, "as large as CUDA 13's");

int cudaDriverGetVersion(int *version) {
    const struct rt_driver *driver = NULL;
    int error = version == NULL ? RT_INVALID_VALUE : RT_SUCCESS;
    if (error != RT_SUCCESS) return rt_end(error);
    if (rt_load(&driver) != RT_SUCCESS) {
        *version = 0; // no driver is no error here
        return RT_SUCCESS;
    }
    return rt_end(driver->driver_get_version(version));
}

int cudaRuntimeGetVersion(int *version) {
    if (version == NULL) return rt_end(RT_INVALID_VALUE);
    *version = RUNTIME_VERSION;
    return RT_SUCCESS;
}

// The runtime numbers attributes as the driver does.
int cudaDeviceGetAttribute(int *value, int attribute, int device) {
    const struct rt_driver *driver = NULL;
    const int error = rt_load(&driver);
    return rt_end(error != RT_SUCCESS ? error : driver->device_get_attribute(value, attribute, device));
}

static int attribute(const struct rt_driver *driver, int device, int number, int fallback) {
    int value = 0;
    return driver->device_get_attribute(&value, number, device) == RT_SUCCESS && value != 0 ? value : fallback;
}

int cudaGetDeviceProperties(void *properties, int device) {
    enum { MAX_THREADS = 1, WARP = 10, MULTIPROCESSORS = 16, MAP_HOST = 19, MAJOR = 75, MINOR = 76 };
    struct rt_device_prop prop = {.mem_pitch = 0x7fffffff,
                                  .max_threads_dim = {1024, 1024, 64},
                                  .max_grid_size = {0x7fffffff, 65535, 65535},
                                  .shared_mem_per_block = 48 << 10,
                                  .regs_per_block = 65536,
                                  .total_const_mem = 64 << 10,
                                  .texture_alignment = 512,
                                  .texture_pitch_alignment = 32};
    const struct rt_driver *driver = NULL;
    int error = rt_load(&driver);
    if (error == RT_SUCCESS && properties == NULL) error = RT_INVALID_VALUE;
    if (error == RT_SUCCESS) error = driver->device_get_name(prop.name, (int)sizeof prop.name, device);
    if (error == RT_SUCCESS) error = driver->device_total_mem(&prop.total_global_mem, device);
    if (error != RT_SUCCESS) return rt_end(error);
    (void)driver->device_get_uuid((unsigned char *)prop.uuid, device);
    prop.max_threads_per_block = attribute(driver, device, MAX_THREADS, 1024);
    prop.warp_size = attribute(driver, device, WARP, 32);
    prop.multi_processor_count = attribute(driver, device, MULTIPROCESSORS, 1);
    prop.can_map_host_memory = attribute(driver, device, MAP_HOST, 0);
    prop.major = attribute(driver, device, MAJOR, 0);
    prop.minor = attribute(driver, device, MINOR, 0);
    memcpy(properties, &prop, sizeof prop);
    return RT_SUCCESS;
}

int cudaDeviceGetPCIBusId(char *text, int length, int device) {
    const struct rt_driver *driver = NULL;
    int count = 0, error = rt_load(&driver);
    if (error == RT_SUCCESS) error = driver->device_get_count(&count);
    if (error == RT_SUCCESS && (device < 0 || device >= count)) error = RT_INVALID_DEVICE;
    if (error == RT_SUCCESS && (text == NULL || snprintf(text, (size_t)length, "0000:%02x:00.0", device + 1) >= length))
        error = RT_INVALID_VALUE;
    return rt_end(error);
}

int cudaDeviceSynchronize(void) { RT_CALL(driver->ctx_synchronize()); }
int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) { RT_CALL(driver->mem_get_info(free_bytes, total_bytes)); }
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { RT_CALL(driver->ctx_get_stream_priority_range(least, greatest)); }
int cudaDeviceCanAccessPeer(int *can, int device, int peer) { RT_CALL(driver->device_can_access_peer(can, device, peer)); }

// The peer's primary context, which access is set to.
static int peer_context(const struct rt_driver *driver, int peer, uint64_t *context) {
    const int error = driver->primary_ctx_retain(context, peer);
    return error;
}

int cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    uint64_t context = 0;
    RT_CALL((rt_error_ = peer_context(driver, peer, &context)) != RT_SUCCESS ? rt_error_ : driver->ctx_enable_peer_access(context, flags));
}

int cudaDeviceDisablePeerAccess(int peer) {
    uint64_t context = 0;
    RT_CALL((rt_error_ = peer_context(driver, peer, &context)) != RT_SUCCESS ? rt_error_ : driver->ctx_disable_peer_access(context));
}

int cudaDeviceGetDefaultMemPool(uint64_t *pool, int device) { RT_CALL(driver->device_get_default_mem_pool(pool, device)); }
int cudaDeviceGetMemPool(uint64_t *pool, int device) { RT_CALL(driver->device_get_mem_pool(pool, device)); }
int cudaDeviceSetMemPool(int device, uint64_t pool) { RT_CALL(driver->device_set_mem_pool(device, pool)); }

// Flags and limits change nothing on a device whose kernels do nothing; what was set is reported again.
static _Thread_local unsigned device_flags;
static size_t limits[16];

int cudaSetDeviceFlags(unsigned flags) {
    device_flags = flags;
    return RT_SUCCESS;
}

int cudaGetDeviceFlags(unsigned *flags) {
    if (flags == NULL) return rt_end(RT_INVALID_VALUE);
    *flags = device_flags;
    return RT_SUCCESS;
}

int cudaDeviceSetLimit(int limit, size_t value) {
    if (limit < 0 || limit >= 16) return rt_end(RT_INVALID_VALUE);
    limits[limit] = value;
    return RT_SUCCESS;
}

int cudaDeviceGetLimit(size_t *value, int limit) {
    if (limit < 0 || limit >= 16 || value == NULL) return rt_end(RT_INVALID_VALUE);
    *value = limits[limit];
    return RT_SUCCESS;
}

int cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version, unsigned long long flags, int *status) {
    enum { FOUND, NOT_FOUND };
    const struct rt_driver *driver = NULL;
    const int error = rt_load(&driver);
    if (error != RT_SUCCESS || symbol == NULL || function == NULL) return rt_end(error != RT_SUCCESS ? error : RT_INVALID_VALUE);
    *function = rt_driver_symbol(symbol, (int)version, flags);
    if (status != NULL) *status = *function == NULL ? NOT_FOUND : FOUND;
    return RT_SUCCESS;
}

int cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags, int *status) {
    return cudaGetDriverEntryPointByVersion(symbol, function, RUNTIME_VERSION, flags, status);
}
