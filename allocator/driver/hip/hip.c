// hip.c: implements the driver interface with AMD's runtime. HIP has the driver API's functions, most of them with the same arguments,
// structures and result numbers; the differences are translated here. libamdhip64 is loaded at run time. Structures and numbers are those
// of ROCm 6 and 7 (tests/hip compares them with HIP's headers where available).
#include <stdatomic.h>

#include "driver/driver.h"
#include "driver/hip/hip_abi.h"
#include "os/os.h"

// Optional functions, which came with CUDA 10 or later, may be missing from a release; a call then returns NOT_SUPPORTED. As in cuda.c.
enum { FIRST_OPTIONAL_VERSION = 10000, MOST_DEVICES = 64 };
// From this version on, the structures of virtual memory are CUDA's, and those of copies are the ones in hip_abi.h. HIP counts 10,000,000 *
// major + 100,000 * minor + patch.
#define FIRST_VIRTUAL_MEMORY_VERSION 60000000

// HIP's functions as declared in the table; translated ones have types of their own.
struct hip_functions {
// clang-format off
#define X(member, symbol, exported, version, parameters, arguments) vr_cu_result (*member) parameters;
#include "driver/calls.def"
#undef X
    // clang-format on
};

struct hip_own_functions {
    vr_cu_result (*device_synchronize)(void);
    vr_cu_result (*device_enable_peer_access)(int peer, unsigned flags);
    vr_cu_result (*device_disable_peer_access)(int peer);
    vr_cu_result (*memcpy_async)(uint64_t to, uint64_t from, uint64_t size_bytes, int kind, uint64_t stream);
    vr_cu_result (*stream_get_device)(uint64_t stream, int *device);
    vr_cu_result (*add_memcpy_node)(uint64_t *node, uint64_t graph, const uint64_t *dependencies, uint64_t count,
                                    const struct vr_hip_memcpy3d *copy, uint64_t context);
};

struct hip_driver {
    struct vram_driver head;
    struct hip_functions real;
    struct hip_own_functions own;
    int version;
    _Atomic(uint64_t) context[MOST_DEVICES]; // the primary context of a device; 0: not retained yet
};

static struct hip_driver *hip_of(struct vram_driver *self) { return (struct hip_driver *)(void *)self; }

// --- translated functions --------------------------------------------------------------------------------------------------

static vr_cu_result own_device_get_attribute(struct vram_driver *self, int *value, int attribute, int device) {
    static const struct {
        int cuda, hip;
    } numbers[] = {
        {VR_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, VR_HIP_MAX_THREADS_PER_BLOCK},
        {VR_CU_DEVICE_ATTRIBUTE_WARP_SIZE, VR_HIP_WARP_SIZE},
        {VR_CU_DEVICE_ATTRIBUTE_CLOCK_RATE, VR_HIP_CLOCK_RATE},
        {VR_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, VR_HIP_MULTIPROCESSOR_COUNT},
        {VR_CU_DEVICE_ATTRIBUTE_INTEGRATED, VR_HIP_INTEGRATED},
        {VR_CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, VR_HIP_CAN_MAP_HOST_MEMORY},
        {VR_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, VR_HIP_MAX_THREADS_PER_MULTIPROCESSOR},
        {VR_CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, VR_HIP_UNIFIED_ADDRESSING},
        {VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, VR_HIP_COMPUTE_CAPABILITY_MAJOR},
        {VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, VR_HIP_COMPUTE_CAPABILITY_MINOR},
        {VR_CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, VR_HIP_MANAGED_MEMORY},
        {VR_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, VR_HIP_MEMORY_POOLS_SUPPORTED},
        {VR_CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, VR_HIP_HOST_REGISTER_SUPPORTED},
        {VR_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, VR_HIP_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
        // Pages of ROCm can be exported as file descriptors whenever there are pages.
        {VR_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, VR_HIP_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    };
    const struct hip_driver *driver = hip_of(self);
    for (size_t i = 0; i < VR_COUNT_OF(numbers); i++) {
        if (numbers[i].cuda != attribute) continue;
        if (numbers[i].hip == VR_HIP_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED && driver->version < FIRST_VIRTUAL_MEMORY_VERSION) break;
        return driver->real.device_get_attribute(value, numbers[i].hip, device);
    }
    return VR_CU_INVALID_VALUE; // like a driver that does not know the attribute
}

// Returns HIP's version, which was queried once.
static vr_cu_result own_driver_get_version(struct vram_driver *self, int *version) {
    *version = hip_of(self)->version;
    return VR_CU_SUCCESS;
}

static vr_cu_result own_primary_ctx_retain(struct vram_driver *self, uint64_t *context, int device) {
    struct hip_driver *driver = hip_of(self);
    const vr_cu_result result = driver->real.primary_ctx_retain(context, device);
    if (result == VR_CU_SUCCESS && device >= 0 && device < MOST_DEVICES) atomic_store(&driver->context[device], *context);
    return result;
}

// hipCtxSynchronize() is documented as not supported; the current device is that of the current context.
static vr_cu_result own_ctx_synchronize(struct vram_driver *self, int unused) {
    (void)unused;
    return hip_of(self)->own.device_synchronize();
}

// Returns the device of a primary context, or -1 if it was not retained here.
static int device_of(struct hip_driver *driver, uint64_t context) {
    for (int device = 0; device < MOST_DEVICES; device++)
        if (context != 0 && atomic_load(&driver->context[device]) == context) return device;
    return -1;
}

static vr_cu_result own_ctx_enable_peer_access(struct vram_driver *self, uint64_t peer, unsigned flags) {
    const int device = device_of(hip_of(self), peer);
    return device < 0 ? VR_CU_INVALID_CONTEXT : hip_of(self)->own.device_enable_peer_access(device, flags);
}

static vr_cu_result own_ctx_disable_peer_access(struct vram_driver *self, uint64_t peer) {
    const int device = device_of(hip_of(self), peer);
    return device < 0 ? VR_CU_INVALID_CONTEXT : hip_of(self)->own.device_disable_peer_access(device);
}

static vr_cu_result own_memcpy_async(struct vram_driver *self, uint64_t to, uint64_t from, uint64_t size_bytes, uint64_t stream) {
    return hip_of(self)->own.memcpy_async(to, from, size_bytes, VR_HIP_MEMCPY_DEFAULT, stream);
}

// Gets the primary context of the stream's device; HIP has no other contexts.
static vr_cu_result own_stream_get_ctx(struct vram_driver *self, uint64_t stream, uint64_t *context) {
    struct hip_driver *driver = hip_of(self);
    int device = 0;
    uint64_t found = 0;
    if (driver->own.stream_get_device == NULL) return VR_CU_NOT_SUPPORTED;
    const vr_cu_result result = driver->own.stream_get_device(stream, &device);
    if (result != VR_CU_SUCCESS) return result;
    if (device >= 0 && device < MOST_DEVICES) found = atomic_load(&driver->context[device]);
    if (found == 0) return VR_CU_INVALID_CONTEXT;
    *context = found;
    return VR_CU_SUCCESS;
}

static struct vr_hip_memcpy_side side_of(const struct vr_cu_memcpy_side *side) {
    return (struct vr_hip_memcpy_side){
        .x_bytes = side->x_bytes,
        .y = side->y,
        .z = side->z,
        .lod = side->lod,
        .memory_type = side->memory_type == VR_CU_MEMORY_TYPE_ARRAY     ? VR_HIP_MEMORY_TYPE_ARRAY
                       : side->memory_type == VR_CU_MEMORY_TYPE_UNIFIED ? VR_HIP_MEMORY_TYPE_UNIFIED
                                                                        : side->memory_type, // the numbers for host and device are equal
        .host = side->host,
        .device = side->device,
        .array = side->array,
        .pitch_bytes = side->pitch_bytes,
        .rows = side->rows,
    };
}

static vr_cu_result own_graph_add_memcpy_node(struct vram_driver *self, uint64_t *node, uint64_t graph, const uint64_t *dependencies,
                                              uint64_t count, const struct vr_cu_memcpy3d *copy, uint64_t context) {
    const struct hip_driver *driver = hip_of(self);
    if (driver->own.add_memcpy_node == NULL || driver->version < FIRST_VIRTUAL_MEMORY_VERSION) return VR_CU_NOT_SUPPORTED;
    const struct vr_hip_memcpy3d translated = {.from = side_of(&copy->from),
                                               .to = side_of(&copy->to),
                                               .width_bytes = copy->width_bytes,
                                               .rows = copy->rows,
                                               .planes = copy->planes};
    return driver->own.add_memcpy_node(node, graph, dependencies, count, &translated, context);
}

// Before ROCm 6 the properties of pages have another layout, so pages are not supported there.
#define SINCE_VIRTUAL_MEMORY(self, member, ...)                                                                                            \
    (hip_of(self)->version < FIRST_VIRTUAL_MEMORY_VERSION || hip_of(self)->real.member == NULL ? VR_CU_NOT_SUPPORTED                       \
                                                                                               : hip_of(self)->real.member(__VA_ARGS__))

static vr_cu_result own_mem_create(struct vram_driver *self, uint64_t *handle, uint64_t size_bytes,
                                   const struct vr_cu_allocation_prop *prop, uint64_t flags) {
    return SINCE_VIRTUAL_MEMORY(self, mem_create, handle, size_bytes, prop, flags);
}

static vr_cu_result own_mem_get_allocation_granularity(struct vram_driver *self, uint64_t *granularity,
                                                       const struct vr_cu_allocation_prop *prop, int option) {
    return SINCE_VIRTUAL_MEMORY(self, mem_get_allocation_granularity, granularity, prop, option);
}

static vr_cu_result own_mem_get_allocation_properties(struct vram_driver *self, struct vr_cu_allocation_prop *prop, uint64_t handle) {
    return SINCE_VIRTUAL_MEMORY(self, mem_get_allocation_properties, prop, handle);
}

// --- the table ---------------------------------------------------------------------------------------------------------------

// clang-format off
#define WITH_SELF(...) (struct vram_driver *self, __VA_ARGS__)
// The functions of translated rows are unused.
#define X(member, symbol, exported, version, parameters, arguments)                            \
    static __attribute__((unused)) vr_cu_result call_hip_##member WITH_SELF parameters {        \
        const struct hip_functions *real = &hip_of(self)->real;                                \
        return real->member == NULL ? VR_CU_NOT_SUPPORTED : real->member arguments;            \
    }
#include "driver/calls.def"
#undef X

static const struct vr_driver_calls calls = {
#define SAME(member, name) .member = call_hip_##member,
#define OWN(member, name) .member = own_##member,
#include "driver/hip/hip_calls.def"
#undef SAME
#undef OWN
};

// Rows of both tables, by the names of the members.
enum {
#define SAME(member, name) HIP_ROW_##member,
#define OWN(member, name) HIP_ROW_##member,
#include "driver/hip/hip_calls.def"
#undef SAME
#undef OWN
    HIP_ROW_COUNT,
};

static const struct hip_row {
    const char *name;
    int version; // of CUDA, to know which functions may be missing
    size_t offset; // in struct hip_functions
} rows[] = {
#define X(member, symbol, exported, since, parameters, arguments) \
    [HIP_ROW_##member] = {.version = (since), .offset = offsetof(struct hip_functions, member)},
#include "driver/calls.def"
#undef X
};

static const char *const hip_names[HIP_ROW_COUNT] = {
#define SAME(member, name) [HIP_ROW_##member] = #name,
#define OWN(member, name) [HIP_ROW_##member] = #name,
#include "driver/hip/hip_calls.def"
#undef SAME
#undef OWN
};
// clang-format on
_Static_assert(VR_COUNT_OF(rows) == HIP_ROW_COUNT, "every function of the seam has a row here");

static void find_symbol(void *library, const char *name, void *to) {
    void *function = vr_os_dlsym(library, name);
    memcpy(to, &function, sizeof function); // a data pointer as a function pointer; ISO C has no cast for it
}

static enum vram_status find_all(void *library, struct hip_driver *driver, struct vram_error *error) {
    for (size_t i = 0; i < HIP_ROW_COUNT; i++) {
        find_symbol(library, hip_names[i], (char *)&driver->real + rows[i].offset);
        if (vr_os_dlsym(library, hip_names[i]) == NULL && rows[i].version < FIRST_OPTIONAL_VERSION && i != HIP_ROW_stream_get_ctx)
            return vr_fail(error, VRAM_NO_DRIVER, VRAM_NO_OFFSET, "the HIP runtime lacks %s", hip_names[i]);
    }
    find_symbol(library, "hipDeviceSynchronize", &driver->own.device_synchronize);
    find_symbol(library, "hipDeviceEnablePeerAccess", &driver->own.device_enable_peer_access);
    find_symbol(library, "hipDeviceDisablePeerAccess", &driver->own.device_disable_peer_access);
    find_symbol(library, "hipMemcpyAsync", &driver->own.memcpy_async);
    find_symbol(library, "hipStreamGetDevice", &driver->own.stream_get_device);
    find_symbol(library, "hipDrvGraphAddMemcpyNode", &driver->own.add_memcpy_node);
    return VRAM_OK;
}

static enum vram_status start_hip(void *library, struct hip_driver *driver, struct vram_error *error) {
    vr_cu_result (*init)(unsigned flags);
    find_symbol(library, "hipInit", &init);
    if (init == NULL) return vr_fail(error, VRAM_NO_DRIVER, VRAM_NO_OFFSET, "the HIP runtime lacks hipInit");
    VR_TRY(find_all(library, driver, error));
    vr_cu_result result = init(0);
    if (result == VR_CU_SUCCESS) result = driver->real.driver_get_version(&driver->version);
    if (result == VR_CU_SUCCESS) return VRAM_OK;
    vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "hipInit: %s", vr_cu_result_name(result));
    if (error != NULL) error->driver_result = result;
    return VRAM_DRIVER;
}

static void destroy_hip_driver(struct vram_driver *driver) { free(driver); }

// Tries the newest release first; a distribution's file without a number last.
static void *open_library(const char **reason) {
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"};
    const char *path = vr_os_getenv("VRAM_LIBHIP");
    if (path != NULL && path[0] != '\0') return vr_os_dlopen(path, reason);
    void *library = NULL;
    for (size_t i = 0; i < VR_COUNT_OF(names) && library == NULL; i++) library = vr_os_dlopen(names[i], reason);
    return library;
}

enum vram_status vram_driver_hip(struct vram_driver **driver, struct vram_error *error) {
    if (driver == NULL) return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the pointer for the driver is NULL");
    if (sizeof(void *) != sizeof(uint64_t)) return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "HIP requires a 64-bit system");
    const char *reason = "";
    void *library = open_library(&reason);
    if (library == NULL) return vr_fail(error, VRAM_NO_DRIVER, VRAM_NO_OFFSET, "no HIP runtime found: %s", reason);
    struct hip_driver *made = calloc(1, sizeof *made);
    enum vram_status status =
        made == NULL ? vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory") : start_hip(library, made, error);
    if (status != VRAM_OK) {
        free(made);
        vr_os_dlclose(library);
        return status;
    }
    // The library stays loaded: after hipInit the runtime has threads of its own.
    made->head = (struct vram_driver){.calls = &calls, .destroy = destroy_hip_driver, .kind = "hip"};
    *driver = &made->head;
    return VRAM_OK;
}
