// Copies of all shapes, memory that HIP names in its own way, and what an address is.
#include <string.h>

#include "driver/hip/hip_abi.h"
#include "sim/sim_abi.h"
#include "hip.h"

enum { NOT_INITIALIZED = 3, NOT_SUPPORTED = 801, INVALID_DIRECTION = 21, FIRST_WITH_UNREGISTERED = 60000000 };

static bool is_kind(int kind) { return kind >= 0 && kind <= VR_HIP_MEMCPY_DEFAULT; }

// Addresses say where they are, so that the devices named and the kind need not.
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

// Flags say whether host and device see each other's writes at once: here they always do.
int hipExtMallocWithFlags(uint64_t *address, uint64_t bytes, unsigned flags) {
    const struct hip_cuda *driver = hip_begin();
    return hip_end(driver == NULL ? NOT_INITIALIZED : driver->mem_alloc(address, bytes));
}

// --- what an address is ----------------------------------------------------------------------------------------------------------------

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

// Before ROCm 6 an address of no known memory was an error, and the types were one less.
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
