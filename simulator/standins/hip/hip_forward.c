// Loading of the driver, and HIP functions with the same arguments and results as the driver's, from the tables in allocator/driver/hip.
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "driver/hip/hip_abi.h"
#include "hip.h"

enum { NOT_SUPPORTED = 801, NOT_INITIALIZED = 3, NOT_READY = 600, MOST_DEVICES = 64 };

static struct hip_cuda cuda;
static int (*resolver)(const char *symbol, void **function, int version, uint64_t flags, int *status);
static bool is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards `primary`
static uint64_t primary[MOST_DEVICES];                    // contexts, retained once and never released

static _Thread_local int last;

static void load_runtime(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = library == NULL ? NULL : dlsym(library, "cuGetProcAddress_v2");
    if (found == NULL) return;
    memcpy(&resolver, &found, sizeof resolver);
    // clang-format off
#define X(member, symbol, exported, version, parameters, arguments)                                              \
    if (resolver(#symbol, &found, version, 0, NULL) == 0 && found != NULL) memcpy(&cuda.member, &found, sizeof found);
#include "driver/calls.def"
#undef X
    // clang-format on
    is_loaded = true;
}

const struct hip_cuda *hip_driver(void) {
    if (standin_driver() == NULL) return NULL; // initializes the driver
    (void)pthread_once(&once, load_runtime);
    return is_loaded ? &cuda : NULL;
}

bool hip_named(const char *symbol, int version, bool context, void *function) {
    void *found = NULL;
    if ((context ? hip_begin() : hip_driver()) == NULL || resolver(symbol, &found, version, 0, NULL) != 0 || found == NULL) return false;
    memcpy(function, &found, sizeof found);
    return true;
}

int hip_use_device(int device) {
    const struct hip_cuda *driver = hip_driver();
    int count = 0, result = driver == NULL ? NOT_INITIALIZED : driver->device_get_count(&count);
    if (result == 0 && (device < 0 || device >= count || device >= MOST_DEVICES)) result = VR_CU_INVALID_DEVICE;
    if (result != 0) return result;
    (void)pthread_mutex_lock(&mutex);
    if (primary[device] == 0) result = driver->primary_ctx_retain(&primary[device], device);
    const uint64_t context = primary[device];
    (void)pthread_mutex_unlock(&mutex);
    return result == 0 ? driver->ctx_set_current(context) : result;
}

const struct hip_cuda *hip_begin(void) {
    const struct hip_cuda *driver = hip_driver();
    uint64_t context = 0;
    if (driver == NULL) return NULL;
    if (driver->ctx_get_current(&context) == 0 && context != 0) return driver;
    return hip_use_device(0) == 0 ? driver : NULL;
}

int hip_end(int result) {
    if (result != 0 && result != NOT_READY) last = result;
    return result;
}

int hip_last(bool forget) {
    const int result = last;
    if (forget) last = 0;
    return result;
}

// Calls that query or select devices do not create a context.
static bool needs_context(const char *symbol) { return strncmp(symbol, "cuDevice", 8) != 0 && strncmp(symbol, "cuCtx", 5) != 0; }

// clang-format off
#define X(member, symbol, exported, version, parameters, arguments)                                                \
    static __attribute__((used)) int forward_##member parameters {                                                 \
        const struct hip_cuda *driver = needs_context(#symbol) ? hip_begin() : hip_driver();                       \
        if (driver == NULL) return hip_end(NOT_INITIALIZED);                                                       \
        return hip_end(driver->member == NULL ? NOT_SUPPORTED : driver->member arguments);                         \
    }
#include "driver/calls.def"
#undef X
// clang-format on

#define SAME(member, name) extern __typeof__(forward_##member) name __attribute__((alias("forward_" #member)));
#define OWN(member, name)
#include "driver/hip/hip_calls.def"
#undef SAME
#undef OWN

// clang-format off
#define S(name, symbol, version, context, parameters, arguments)                                                   \
    int name parameters {                                                                                          \
        int (*function) parameters = NULL;                                                                         \
        return hip_end(hip_named(#symbol, version, context, &function) ? function arguments : NOT_SUPPORTED);      \
    }
#include "hip_same.def"
#undef S
// clang-format on

// Virtual memory calls use CUDA's structures since ROCm 6; earlier versions are not supported.
enum { FIRST_VIRTUAL_MEMORY_VERSION = 60000000 };
#define SINCE_VIRTUAL_MEMORY(...) (standin_library_version < FIRST_VIRTUAL_MEMORY_VERSION ? hip_end(NOT_SUPPORTED) : (__VA_ARGS__))

int hipMemCreate(uint64_t *handle, uint64_t bytes, const struct vr_cu_allocation_prop *properties, uint64_t flags) {
    return SINCE_VIRTUAL_MEMORY(forward_mem_create(handle, bytes, properties, flags));
}
int hipMemGetAllocationGranularity(uint64_t *granularity, const struct vr_cu_allocation_prop *properties, int option) {
    return SINCE_VIRTUAL_MEMORY(forward_mem_get_allocation_granularity(granularity, properties, option));
}
int hipMemGetAllocationPropertiesFromHandle(struct vr_cu_allocation_prop *properties, uint64_t handle) {
    return SINCE_VIRTUAL_MEMORY(forward_mem_get_allocation_properties(properties, handle));
}

int hipDeviceSynchronize(void) {
    const struct hip_cuda *driver = hip_begin();
    return hip_end(driver == NULL ? NOT_INITIALIZED : driver->ctx_synchronize(0));
}
int hipMemcpyAsync(uint64_t to, uint64_t from, uint64_t bytes, int kind, uint64_t stream) {
    return forward_memcpy_async(to, from, bytes, stream);
}
int hipDevicePrimaryCtxRetain(uint64_t *context, int device) { return forward_primary_ctx_retain(context, device); }

// Gets the context of another device, which HIP identifies by number.
static int peer_context(int device, uint64_t *context) {
    const struct hip_cuda *driver = hip_begin();
    uint64_t own = 0;
    if (driver == NULL) return NOT_INITIALIZED;
    int result = driver->ctx_get_current(&own);
    if (result == 0) result = hip_use_device(device);
    if (result == 0) result = driver->ctx_get_current(context);
    (void)driver->ctx_set_current(own);
    return result;
}
int hipDeviceEnablePeerAccess(int device, unsigned flags) {
    uint64_t context = 0;
    const int result = peer_context(device, &context);
    return result != 0 ? hip_end(result) : forward_ctx_enable_peer_access(context, flags);
}
int hipDeviceDisablePeerAccess(int device) {
    uint64_t context = 0;
    const int result = peer_context(device, &context);
    return result != 0 ? hip_end(result) : forward_ctx_disable_peer_access(context);
}
int hipStreamGetDevice(uint64_t stream, int *device) {
    const struct hip_cuda *driver = hip_begin();
    uint64_t own = 0, context = 0;
    if (driver == NULL) return hip_end(NOT_INITIALIZED);
    if (device == NULL) return hip_end(VR_CU_INVALID_VALUE);
    int result = driver->stream_get_ctx(stream, &context);
    (void)driver->ctx_get_current(&own);
    if (result == 0) result = driver->ctx_set_current(context);
    if (result == 0) result = driver->ctx_get_device(device);
    (void)driver->ctx_set_current(own);
    return hip_end(result);
}

// Converts one side of a graph's copy: the driver's structure has one more field, and other values for arrays.
static struct vr_cu_memcpy_side side_of_hip_copy(const struct vr_hip_memcpy_side *side) {
    return (struct vr_cu_memcpy_side){
        .x_bytes = side->x_bytes,
        .y = side->y,
        .z = side->z,
        .lod = side->lod,
        .memory_type = side->memory_type == VR_HIP_MEMORY_TYPE_ARRAY     ? VR_CU_MEMORY_TYPE_ARRAY
                       : side->memory_type == VR_HIP_MEMORY_TYPE_UNIFIED ? VR_CU_MEMORY_TYPE_UNIFIED
                                                                         : side->memory_type,
        .host = side->host,
        .device = side->device,
        .array = side->array,
        .pitch_bytes = side->pitch_bytes,
        .rows = side->rows,
    };
}
int hipDrvGraphAddMemcpyNode(uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count,
                             const struct vr_hip_memcpy3d *copy, uint64_t context) {
    if (copy == NULL) return hip_end(VR_CU_INVALID_VALUE);
    const struct vr_cu_memcpy3d translated = {.from = side_of_hip_copy(&copy->from),
                                              .to = side_of_hip_copy(&copy->to),
                                              .width_bytes = copy->width_bytes,
                                              .rows = copy->rows,
                                              .planes = copy->planes};
    return forward_graph_add_memcpy_node(node, graph, dependencies, count, &translated, context);
}
