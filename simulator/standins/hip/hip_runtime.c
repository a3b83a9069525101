// What HIP has beside the driver's functions: the current device, errors, properties, copies that say their kind, kernels that compute
// nothing.
#include <string.h>

#include "driver/hip/hip_abi.h"
#include "hip.h"

enum { NOT_INITIALIZED = 3, NOT_FOUND = 500 };

// --- devices ---------------------------------------------------------------------------------------------------------------------------
int hipInit(unsigned flags) { return hip_end(flags != 0 ? VR_CU_INVALID_VALUE : hip_driver() == NULL ? VR_CU_NO_DEVICE : 0); }
int hipSetDevice(int device) { return hip_end(hip_use_device(device)); }
int hipDriverGetVersion(int *version) {
    if (version == NULL) return hip_end(VR_CU_INVALID_VALUE);
    *version = standin_library_version;
    return 0;
}
int hipRuntimeGetVersion(int *version) { return hipDriverGetVersion(version); }

int hipGetDevice(int *device) {
    const struct hip_cuda *driver = hip_begin();
    if (driver == NULL) return hip_end(NOT_INITIALIZED);
    return hip_end(device == NULL ? VR_CU_INVALID_VALUE : driver->ctx_get_device(device));
}

static const struct {
    int hip, cuda;
} attributes[] = {
    {VR_HIP_MAX_THREADS_PER_BLOCK, VR_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {VR_HIP_WARP_SIZE, VR_CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {VR_HIP_CLOCK_RATE, VR_CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
    {VR_HIP_MULTIPROCESSOR_COUNT, VR_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {VR_HIP_INTEGRATED, VR_CU_DEVICE_ATTRIBUTE_INTEGRATED},
    {VR_HIP_CAN_MAP_HOST_MEMORY, VR_CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
    {VR_HIP_MAX_THREADS_PER_MULTIPROCESSOR, VR_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {VR_HIP_UNIFIED_ADDRESSING, VR_CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {VR_HIP_COMPUTE_CAPABILITY_MAJOR, VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {VR_HIP_COMPUTE_CAPABILITY_MINOR, VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {VR_HIP_MANAGED_MEMORY, VR_CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {VR_HIP_MEMORY_POOLS_SUPPORTED, VR_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {VR_HIP_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, VR_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
    {VR_HIP_HOST_REGISTER_SUPPORTED, VR_CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
};

int hipDeviceGetAttribute(int *value, int attribute, int device) {
    const struct hip_cuda *driver = hip_driver();
    if (driver == NULL) return hip_end(NOT_INITIALIZED);
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (attributes[i].hip == attribute) return hip_end(driver->device_get_attribute(value, attributes[i].cuda, device));
    return hip_end(VR_CU_INVALID_VALUE);
}

// Where members of hipDeviceProp_t lie: of ROCm 6 on, and of those before. -1: that one is not there.
enum { NEW_BYTES = 1472, NEW_TOTAL = 288, NEW_ARCHITECTURE = 1160, OLD_BYTES = 792, OLD_TOTAL = 256, OLD_ARCHITECTURE = 396 };
static const struct {
    int offset, old_offset, attribute;
} members[] = {
    {308, 276, VR_HIP_WARP_SIZE},
    {320, 280, VR_HIP_MAX_THREADS_PER_BLOCK},
    {348, 308, VR_HIP_CLOCK_RATE},
    {360, 328, VR_HIP_COMPUTE_CAPABILITY_MAJOR},
    {364, 332, VR_HIP_COMPUTE_CAPABILITY_MINOR},
    {388, 336, VR_HIP_MULTIPROCESSOR_COUNT},
    {396, 652, VR_HIP_INTEGRATED},
    {400, 388, VR_HIP_CAN_MAP_HOST_MEMORY},
    {604, -1, VR_HIP_UNIFIED_ADDRESSING},
    {624, 344, VR_HIP_MAX_THREADS_PER_MULTIPROCESSOR},
    {652, 772, VR_HIP_MANAGED_MEMORY},
    {744, -1, VR_HIP_MEMORY_POOLS_SUPPORTED},
};

// MI300's, by its numbers; what is no device of AMD's has no such name.
static int copy_architecture(char *into, int device) {
    static const char mi300[] = "gfx942:sramecc+:xnack-", other[] = "simulated";
    int major = 0, minor = 0;
    int result = hipDeviceGetAttribute(&major, VR_HIP_COMPUTE_CAPABILITY_MAJOR, device);
    if (result == 0) result = hipDeviceGetAttribute(&minor, VR_HIP_COMPUTE_CAPABILITY_MINOR, device);
    const bool is_mi300 = major == 9 && minor == 4;
    memcpy(into, is_mi300 ? mi300 : other, is_mi300 ? sizeof mi300 : sizeof other);
    return result;
}

static int put_properties(void *properties, int device, bool old) {
    enum { NAME_CAPACITY = 256 };
    const struct hip_cuda *driver = hip_driver();
    uint64_t bytes = 0;
    char made[NEW_BYTES] = "";
    if (driver == NULL) return hip_end(NOT_INITIALIZED);
    if (properties == NULL) return hip_end(VR_CU_INVALID_VALUE);
    int result = driver->device_get_name(made, NAME_CAPACITY, device);
    if (result == 0) result = driver->device_total_mem(&bytes, device);
    if (result == 0) result = copy_architecture(made + (old ? OLD_ARCHITECTURE : NEW_ARCHITECTURE), device);
    for (size_t i = 0; i < sizeof members / sizeof members[0] && result == 0; i++) {
        const int offset = old ? members[i].old_offset : members[i].offset;
        if (offset >= 0) result = hipDeviceGetAttribute((int *)(void *)(made + offset), members[i].attribute, device);
    }
    if (result != 0) return hip_end(result);
    memcpy(made + (old ? OLD_TOTAL : NEW_TOTAL), &bytes, sizeof bytes);
    memcpy(properties, made, old ? OLD_BYTES : NEW_BYTES);
    return 0;
}
int hipGetDevicePropertiesR0600(void *properties, int device) { return put_properties(properties, device, false); }
int hipGetDevicePropertiesR0000(void *properties, int device) { return put_properties(properties, device, true); }
// What programs of ROCm 5 call.
int hipGetDeviceProperties(void *properties, int device) { return put_properties(properties, device, true); }

int hipDeviceReset(void) {
    STANDIN_MISSING("hipDeviceReset");
    return hip_end(VR_CU_NOT_SUPPORTED);
}

// --- errors ----------------------------------------------------------------------------------------------------------------------------
int hipGetLastError(void) { return hip_last(true); }
int hipPeekAtLastError(void) { return hip_last(false); }

#define UNKNOWN "hipErrorUnknown"

const char *hipGetErrorName(int error) {
    static const struct {
        int number;
        const char *name;
    } names[] = {
        {0, "hipSuccess"},
        {VR_CU_INVALID_VALUE, "hipErrorInvalidValue"},
        {VR_CU_OUT_OF_MEMORY, "hipErrorOutOfMemory"},
        {VR_CU_NOT_INITIALIZED, "hipErrorNotInitialized"},
        {VR_CU_NO_DEVICE, "hipErrorNoDevice"},
        {VR_CU_INVALID_DEVICE, "hipErrorInvalidDevice"},
        {VR_CU_INVALID_CONTEXT, "hipErrorInvalidContext"},
        {VR_CU_INVALID_HANDLE, "hipErrorInvalidHandle"},
        {NOT_FOUND, "hipErrorNotFound"},
        {VR_CU_NOT_READY, "hipErrorNotReady"},
        {VR_CU_NOT_SUPPORTED, "hipErrorNotSupported"},
        {VR_CU_STREAM_CAPTURE_UNSUPPORTED, "hipErrorStreamCaptureUnsupported"},
        {VR_CU_STREAM_CAPTURE_INVALIDATED, "hipErrorStreamCaptureInvalidated"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == error) return names[i].name;
    return UNKNOWN;
}
const char *hipGetErrorString(int error) { return hipGetErrorName(error); }

// The driver's form: an error that is none has no text.
int hipDrvGetErrorName(int error, const char **text) {
    if (text == NULL) return VR_CU_INVALID_VALUE;
    *text = hipGetErrorName(error);
    if (strcmp(*text, UNKNOWN) != 0 || error == VR_CU_UNKNOWN) return 0;
    *text = NULL;
    return VR_CU_INVALID_VALUE;
}
int hipDrvGetErrorString(int error, const char **text) { return hipDrvGetErrorName(error, text); }

// --- memory ----------------------------------------------------------------------------------------------------------------------------
// A copy that the host waits for, in the order of the null stream.
int hipMemcpy(uint64_t to, uint64_t from, uint64_t bytes, int kind) {
    const struct hip_cuda *driver = hip_begin();
    if (driver == NULL) return hip_end(NOT_INITIALIZED);
    if (kind < 0 || kind > VR_HIP_MEMCPY_DEFAULT) return hip_end(21); // hipErrorInvalidMemcpyDirection
    const int result = bytes == 0 ? 0 : driver->memcpy_async(to, from, bytes, 0);
    return hip_end(result == 0 ? driver->stream_synchronize(0) : result);
}

int hipMemsetAsync(uint64_t to, int value, uint64_t bytes, uint64_t stream) {
    const struct hip_cuda *driver = hip_begin();
    if (driver == NULL) return hip_end(NOT_INITIALIZED);
    return hip_end(bytes == 0 ? 0 : driver->memset_d8_async(to, (uint8_t)value, bytes, stream));
}
int hipMemset(uint64_t to, int value, uint64_t bytes) { return hipMemsetAsync(to, value, bytes, 0); }
int hipMallocHost(uint64_t *host, uint64_t bytes) {
    const struct hip_cuda *driver = hip_begin();
    return hip_end(driver == NULL ? NOT_INITIALIZED : driver->mem_host_alloc(host, bytes, 0));
}
int hipFreeHost(uint64_t host) {
    const struct hip_cuda *driver = hip_begin();
    return hip_end(driver == NULL ? NOT_INITIALIZED : host == 0 ? 0 : driver->mem_free_host(host));
}

int hipStreamGetDevice(uint64_t stream, int *device); // hip_forward.c

// --- streams, events, kernels ------------------------------------------------------------------------------------------------------------
int hipStreamCreate(uint64_t *stream) {
    const struct hip_cuda *driver = hip_begin();
    return hip_end(driver == NULL ? NOT_INITIALIZED : driver->stream_create(stream, 0));
}
int hipGetStreamDeviceId(uint64_t stream) {
    int device = -1;
    return hipStreamGetDevice(stream, &device) == 0 ? device : -1;
}
int hipEventCreate(uint64_t *event) {
    const struct hip_cuda *driver = hip_begin();
    return hip_end(driver == NULL ? NOT_INITIALIZED : driver->event_create(event, 0));
}

struct hip_configuration {
    struct hip_extent grid, block;
    uint64_t shared_bytes, stream;
};
static _Thread_local struct hip_configuration pushed;

int __hipPushCallConfiguration(struct hip_extent grid, struct hip_extent block, uint64_t shared_bytes, uint64_t stream) {
    pushed = (struct hip_configuration){grid, block, shared_bytes, stream};
    return 0;
}
int __hipPopCallConfiguration(struct hip_extent *grid, struct hip_extent *block, uint64_t *shared_bytes, uint64_t *stream) {
    *grid = pushed.grid;
    *block = pushed.block;
    *shared_bytes = pushed.shared_bytes;
    *stream = pushed.stream;
    return 0;
}
int hipLaunchKernel(const void *function, struct hip_extent grid, struct hip_extent block, void **arguments, uint64_t shared_bytes,
                    uint64_t stream) {
    if (hip_begin() == NULL) return hip_end(NOT_INITIALIZED);
    return hip_end(function == NULL || grid.x == 0 || block.x == 0 ? VR_CU_INVALID_VALUE : standin_work(stream));
}

// A program's code is not looked at.
static void *code;
void **__hipRegisterFatBinary(const void *data) { return &code; }
void __hipUnregisterFatBinary(void **module) {}
void __hipRegisterFunction(void **module, const void *host, char *device, const char *name, unsigned most_threads, void *thread,
                           void *block, struct hip_extent *block_extent, struct hip_extent *grid_extent, int *warp) {}
void __hipRegisterVar(void **module, void *variable, char *host, char *device, int external, uint64_t bytes, int constant, int global) {}
