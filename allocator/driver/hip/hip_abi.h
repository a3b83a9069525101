// hip_abi.h: numbers and structures of HIP (ROCm 6 and 7) that differ from the CUDA driver API's. Facts of HIP's headers; tests/hip
// compares them where the headers are available.
#ifndef VR_DRIVER_HIP_HIP_ABI_H
#define VR_DRIVER_HIP_HIP_ABI_H

#include <stdint.h>

// hipDeviceAttribute_t.
enum {
    VR_HIP_CAN_MAP_HOST_MEMORY = 3,
    VR_HIP_CLOCK_RATE = 5,
    VR_HIP_INTEGRATED = 16,
    VR_HIP_COMPUTE_CAPABILITY_MAJOR = 23,
    VR_HIP_MANAGED_MEMORY = 24,
    VR_HIP_MAX_THREADS_PER_BLOCK = 56,
    VR_HIP_MAX_THREADS_PER_MULTIPROCESSOR = 57,
    VR_HIP_COMPUTE_CAPABILITY_MINOR = 61,
    VR_HIP_MULTIPROCESSOR_COUNT = 63,
    VR_HIP_UNIFIED_ADDRESSING = 85,
    VR_HIP_WARP_SIZE = 87,
    VR_HIP_MEMORY_POOLS_SUPPORTED = 88,
    VR_HIP_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 89,
    VR_HIP_HOST_REGISTER_SUPPORTED = 90,
};

enum {
    VR_HIP_MEMCPY_DEFAULT = 4, // hipMemcpyKind: inferred from the addresses
    // hipMemoryType
    VR_HIP_MEMORY_TYPE_HOST = 1,
    VR_HIP_MEMORY_TYPE_DEVICE = 2,
    VR_HIP_MEMORY_TYPE_ARRAY = 10,
    VR_HIP_MEMORY_TYPE_UNIFIED = 11,
};

// One side of a HIP_MEMCPY3D, 80 bytes: without the driver API's reserved word.
struct vr_hip_memcpy_side {
    uint64_t x_bytes, y, z, lod;
    int32_t memory_type;
    uint64_t host, device, array;
    uint64_t pitch_bytes;
    uint64_t rows; // of a plane
};

// hipMemsetParams, 48 bytes.
struct vr_hip_memset {
    uint64_t address;
    uint32_t element_bytes;
    uint64_t rows, pitch_bytes;
    uint32_t value;
    uint64_t width_elements;
};

// HIP_MEMCPY3D, 184 bytes.
struct vr_hip_memcpy3d {
    struct vr_hip_memcpy_side from, to;
    uint64_t width_bytes, rows, planes;
};

#endif
