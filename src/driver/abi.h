// abi.h: the few types and constants of the CUDA driver ABI that this project needs, declared by ourselves so that no CUDA
// toolkit is needed to build. tests/abi compares every one with NVIDIA's cuda.h where one is found.
#ifndef VR_DRIVER_ABI_H
#define VR_DRIVER_ABI_H

#include <stdint.h>

typedef int32_t vr_cu_result;

enum {
    VR_CU_SUCCESS = 0,
    VR_CU_INVALID_VALUE = 1,
    VR_CU_OUT_OF_MEMORY = 2,
    VR_CU_NOT_INITIALIZED = 3,
    VR_CU_DEINITIALIZED = 4,
    VR_CU_NO_DEVICE = 100,
    VR_CU_INVALID_DEVICE = 101,
    VR_CU_INVALID_CONTEXT = 201,
    VR_CU_OPERATING_SYSTEM = 304,
    VR_CU_INVALID_HANDLE = 400,
    VR_CU_NOT_FOUND = 500,
    VR_CU_NOT_READY = 600,
    VR_CU_ILLEGAL_ADDRESS = 700,
    VR_CU_CONTEXT_IS_DESTROYED = 709,
    VR_CU_HOST_MEMORY_ALREADY_REGISTERED = 712,
    VR_CU_HOST_MEMORY_NOT_REGISTERED = 713,
    VR_CU_NOT_PERMITTED = 800,
    VR_CU_NOT_SUPPORTED = 801,
    VR_CU_UNKNOWN = 999,
};

enum {
    VR_CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    VR_CU_MEM_LOCATION_TYPE_DEVICE = 1,
    VR_CU_MEM_HANDLE_TYPE_NONE = 0,
    VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    VR_CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
    VR_CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
    VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    VR_CU_MEM_GRANULARITY_MINIMUM = 0,
    VR_CU_MEM_GRANULARITY_RECOMMENDED = 1,
    VR_CU_EVENT_BLOCKING_SYNC = 1,
    VR_CU_STREAM_CAPTURE_STATUS_NONE = 0,
    VR_CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    VR_CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
    VR_CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    VR_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    VR_CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    VR_CU_EVENT_DISABLE_TIMING = 2,
    VR_CU_EVENT_INTERPROCESS = 4,
    VR_CU_STREAM_NON_BLOCKING = 1,
    VR_CU_STREAM_LEGACY = 1,     // a handle value
    VR_CU_STREAM_PER_THREAD = 2, // a handle value
    VR_CU_MEM_HOST_ALLOC_PORTABLE = 1,
    VR_CU_MEM_HOST_ALLOC_DEVICE_MAP = 2,
    VR_CU_MEM_HOST_ALLOC_WRITE_COMBINED = 4,
    VR_CU_MEM_HOST_REGISTER_PORTABLE = 1,
    VR_CU_MEM_HOST_REGISTER_DEVICE_MAP = 2,
    VR_CU_MEM_HOST_REGISTER_IO_MEMORY = 4,
    VR_CU_MEM_HOST_REGISTER_READ_ONLY = 8,
    VR_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    VR_CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    VR_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    VR_CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
    VR_CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    VR_CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED = 99,
    VR_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    VR_CU_DEVICE_ATTRIBUTE_LAST = 147, // of CUDA 13.0; later toolkits add more
};

struct vr_cu_location {
    int32_t type;
    int32_t id;
};

// CUmemAllocationProp, 32 bytes.
struct vr_cu_allocation_prop {
    int32_t type;
    int32_t requested_handle_types;
    struct vr_cu_location location;
    void *win32_handle_meta_data;
    uint8_t compression_type;
    uint8_t gpu_direct_rdma_capable;
    uint16_t usage;
    uint8_t reserved[4];
};

// CUmemAccessDesc, 12 bytes.
struct vr_cu_access_desc {
    struct vr_cu_location location;
    int32_t flags;
};

#endif
