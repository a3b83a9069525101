// HIP's runtime and its copies.
#include <string.h>

#include "driver/hip/hip_abi.h"
#include "hip.h"
#include "sim/sim_abi.h"

// ---- Functions that HIP has in addition to the driver's: current device, errors, properties, copies with a kind, and kernels, which are
// not executed.

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
} device_attributes[] = {
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
    for (size_t i = 0; i < sizeof device_attributes / sizeof device_attributes[0]; i++)
        if (device_attributes[i].hip == attribute) return hip_end(driver->device_get_attribute(value, device_attributes[i].cuda, device));
    return hip_end(VR_CU_INVALID_VALUE);
}

// Offsets of members of hipDeviceProp_t, since ROCm 6 and before. -1: the member does not exist.
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

// Recognizes MI300 by its compute capability; other devices have no AMD architecture name.
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
// The entry point of ROCm 5.
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

// The driver's variant: an unknown error has no text.
int hipDrvGetErrorName(int error, const char **text) {
    if (text == NULL) return VR_CU_INVALID_VALUE;
    *text = hipGetErrorName(error);
    if (strcmp(*text, UNKNOWN) != 0 || error == VR_CU_UNKNOWN) return 0;
    *text = NULL;
    return VR_CU_INVALID_VALUE;
}
int hipDrvGetErrorString(int error, const char **text) { return hipDrvGetErrorName(error, text); }

// --- memory ----------------------------------------------------------------------------------------------------------------------------
// Copies in the order of the null stream and waits for it.
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

int hipStreamGetDevice(uint64_t stream, int *device); // defined in hip_forward.c

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

// The program's code is not read.
static void *code;
void **__hipRegisterFatBinary(const void *data) { return &code; }
void __hipUnregisterFatBinary(void **module) {}
void __hipRegisterFunction(void **module, const void *host, char *device, const char *name, unsigned most_threads, void *thread,
                           void *block, struct hip_extent *block_extent, struct hip_extent *grid_extent, int *warp) {}
void __hipRegisterVar(void **module, void *variable, char *host, char *device, int external, uint64_t bytes, int constant, int global) {}

// ---- Copies of all shapes, memory calls with HIP's own names, and attributes of addresses.

enum { NOT_SUPPORTED = 801, INVALID_DIRECTION = 21, FIRST_WITH_UNREGISTERED = 60000000 };

static bool is_kind(int kind) { return kind >= 0 && kind <= VR_HIP_MEMCPY_DEFAULT; }

// Copies by address; the devices and the kind in the call are not needed.
static int copy_bytes(uint64_t to, uint64_t from, uint64_t bytes, uint64_t stream, bool waits) {
    const struct hip_cuda *driver = hip_begin();
    if (driver == NULL) return hip_end(NOT_INITIALIZED);
    const int result = bytes == 0 ? 0 : driver->memcpy_async(to, from, bytes, stream);
    return hip_end(result == 0 && waits ? driver->stream_synchronize(stream) : result);
}
int hipMemcpyWithStream(uint64_t to, uint64_t from, uint64_t bytes, int kind, uint64_t stream) {
    return is_kind(kind) ? copy_bytes(to, from, bytes, stream, true) : hip_end(INVALID_DIRECTION);
}
int hipMemcpyPeer(uint64_t to, int to_device, uint64_t from, int from_device, uint64_t bytes) {
    return copy_bytes(to, from, bytes, 0, true);
}
int hipMemcpyPeerAsync(uint64_t to, int to_device, uint64_t from, int from_device, uint64_t bytes, uint64_t stream) {
    return copy_bytes(to, from, bytes, stream, false);
}

static struct vr_cu_memcpy2d_side rows_at(uint64_t address, uint64_t pitch_bytes) {
    return (struct vr_cu_memcpy2d_side){
        .memory_type = VR_CU_MEMORY_TYPE_UNIFIED, .host = address, .device = address, .pitch_bytes = pitch_bytes};
}
static int copy_hip_rows(const char *symbol, uint64_t to, uint64_t to_pitch, uint64_t from, uint64_t from_pitch, uint64_t width,
                         uint64_t rows, int kind, uint64_t stream) {
    int (*function)(const struct vr_cu_memcpy2d *copy, uint64_t stream) = NULL;
    if (!is_kind(kind)) return hip_end(INVALID_DIRECTION);
    if (!hip_named(symbol, 12000, true, &function)) return hip_end(NOT_SUPPORTED);
    const struct vr_cu_memcpy2d made = {.to = rows_at(to, to_pitch), .from = rows_at(from, from_pitch), .width_bytes = width, .rows = rows};
    return hip_end(width == 0 || rows == 0 ? 0 : function(&made, stream));
}
int hipMemcpy2DAsync(uint64_t to, uint64_t to_pitch, uint64_t from, uint64_t from_pitch, uint64_t width, uint64_t rows, int kind,
                     uint64_t stream) {
    return copy_hip_rows("cuMemcpy2DAsync", to, to_pitch, from, from_pitch, width, rows, kind, stream);
}
int hipMemcpy2D(uint64_t to, uint64_t to_pitch, uint64_t from, uint64_t from_pitch, uint64_t width, uint64_t rows, int kind) {
    const int result = hipMemcpy2DAsync(to, to_pitch, from, from_pitch, width, rows, kind, 0);
    return result == 0 ? hip_end(hip_begin()->stream_synchronize(0)) : result;
}

// The flags control the coherence of host and device memory, which always holds here.
int hipExtMallocWithFlags(uint64_t *address, uint64_t bytes, unsigned flags) {
    const struct hip_cuda *driver = hip_begin();
    return hip_end(driver == NULL ? NOT_INITIALIZED : driver->mem_alloc(address, bytes));
}

// --- attributes of addresses ----------------------------------------------------------------------------------------

// hipPointerAttribute_t.
struct pointer_attributes {
    int type, device;
    uint64_t device_address, host_address;
    int managed;
    unsigned flags;
};

static bool ask_pointer(uint64_t address, int attribute, void *value) {
    int (*function)(void *data, int attribute, uint64_t address) = NULL;
    return hip_named("cuPointerGetAttribute", 12000, true, &function) && function(value, attribute, address) == 0;
}

// Before ROCm 6, an unknown address was an error, and type values were one lower.
int hipPointerGetAttributes(void *attributes, uint64_t address) {
    enum { TYPE = 2, DEVICE_ADDRESS = 3, HOST_ADDRESS = 4, MANAGED = 8, ORDINAL = 9, MANAGED_TYPE = 3 };
    const bool old = standin_library_version < FIRST_WITH_UNREGISTERED;
    struct pointer_attributes found = {.device = -1};
    unsigned type = 0, managed = 0;
    if (hip_begin() == NULL) return hip_end(NOT_INITIALIZED);
    if (attributes == NULL) return hip_end(VR_CU_INVALID_VALUE);
    const bool known = ask_pointer(address, TYPE, &type) && type != 0;
    if (!known && old) return hip_end(VR_CU_INVALID_VALUE);
    if (known) {
        (void)ask_pointer(address, DEVICE_ADDRESS, &found.device_address);
        (void)ask_pointer(address, HOST_ADDRESS, &found.host_address);
        (void)ask_pointer(address, MANAGED, &managed);
        (void)ask_pointer(address, ORDINAL, &found.device);
        found.managed = managed != 0;
        found.type = managed != 0 && !old ? MANAGED_TYPE : (int)type - old;
    }
    memcpy(attributes, &found, sizeof found);
    return 0;
}
