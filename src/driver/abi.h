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
    VR_CU_PEER_ACCESS_UNSUPPORTED = 217,
    VR_CU_OPERATING_SYSTEM = 304,
    VR_CU_INVALID_HANDLE = 400,
    VR_CU_ILLEGAL_STATE = 401,
    VR_CU_NOT_FOUND = 500,
    VR_CU_NOT_READY = 600,
    VR_CU_ILLEGAL_ADDRESS = 700,
    VR_CU_PEER_ACCESS_ALREADY_ENABLED = 704,
    VR_CU_PEER_ACCESS_NOT_ENABLED = 705,
    VR_CU_CONTEXT_IS_DESTROYED = 709,
    VR_CU_HOST_MEMORY_ALREADY_REGISTERED = 712,
    VR_CU_HOST_MEMORY_NOT_REGISTERED = 713,
    VR_CU_NOT_PERMITTED = 800,
    VR_CU_NOT_SUPPORTED = 801,
    VR_CU_STREAM_CAPTURE_UNSUPPORTED = 900,
    VR_CU_STREAM_CAPTURE_INVALIDATED = 901,
    VR_CU_STREAM_CAPTURE_MERGE = 902,
    VR_CU_STREAM_CAPTURE_UNMATCHED = 903,
    VR_CU_STREAM_CAPTURE_UNJOINED = 904,
    VR_CU_STREAM_CAPTURE_ISOLATION = 905,
    VR_CU_STREAM_CAPTURE_IMPLICIT = 906,
    VR_CU_CAPTURED_EVENT = 907,
    VR_CU_STREAM_CAPTURE_WRONG_THREAD = 908,
    VR_CU_UNKNOWN = 999,
};

enum {
    VR_CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    VR_CU_MEM_LOCATION_TYPE_DEVICE = 1,
    VR_CU_MEM_HANDLE_TYPE_NONE = 0,
    VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    VR_CU_MEM_HANDLE_TYPE_FABRIC = 8,
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
    VR_CU_STREAM_ADD_CAPTURE_DEPENDENCIES = 0,
    VR_CU_STREAM_SET_CAPTURE_DEPENDENCIES = 1,
    VR_CU_GRAPH_NODE_TYPE_KERNEL = 0,
    VR_CU_GRAPH_NODE_TYPE_MEMCPY = 1,
    VR_CU_GRAPH_NODE_TYPE_MEMSET = 2,
    VR_CU_GRAPH_NODE_TYPE_HOST = 3,
    VR_CU_GRAPH_NODE_TYPE_GRAPH = 4,
    VR_CU_GRAPH_NODE_TYPE_EMPTY = 5,
    VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
    VR_CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
    VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
    VR_CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
    VR_CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1, // int
    VR_CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
    VR_CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
    VR_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4, // uint64_t
    VR_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
    VR_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
    VR_CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
    VR_CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
    VR_CU_GRAPH_INSTANTIATE_AUTO_FREE_ON_LAUNCH = 1,
    VR_CU_GRAPH_INSTANTIATE_UPLOAD = 2,
    VR_CU_GRAPH_INSTANTIATE_DEVICE_LAUNCH = 4,
    VR_CU_GRAPH_INSTANTIATE_USE_NODE_PRIORITY = 8,
    VR_CU_MEMORY_TYPE_HOST = 1,
    VR_CU_MEMORY_TYPE_DEVICE = 2,
    VR_CU_MEMORY_TYPE_ARRAY = 3,
    VR_CU_MEMORY_TYPE_UNIFIED = 4,
    VR_CU_EVENT_RECORD_EXTERNAL = 1,
    VR_CU_EVENT_WAIT_EXTERNAL = 1,
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
    VR_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    VR_CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
    VR_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,
    VR_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
    VR_CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    VR_CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
    VR_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED = 128,
    VR_CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED = 132,
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

// CUmemPoolProps, 88 bytes.
struct vr_cu_pool_props {
    int32_t type;
    int32_t handle_types;
    struct vr_cu_location location;
    void *win32_security_attributes;
    uint64_t most_bytes; // 0: the driver's own bound
    uint16_t usage;
    uint8_t reserved[54];
};

// CUmemAccessDesc, 12 bytes.
struct vr_cu_access_desc {
    struct vr_cu_location location;
    int32_t flags;
};

// CUipcMemHandle and CUipcEventHandle, 64 bytes; passed by value.
struct vr_cu_ipc_handle {
    char reserved[64];
};

// CUhostFn.
typedef void vr_cu_host_function(void *argument);

// CUDA_HOST_NODE_PARAMS_v1.
struct vr_cu_host_node {
    vr_cu_host_function *function;
    void *argument;
};

// CUDA_MEMSET_NODE_PARAMS_v1, 40 bytes.
struct vr_cu_memset_node {
    uint64_t address;
    uint64_t pitch_bytes; // from row to row; not looked at with one row
    uint32_t value;
    uint32_t element_bytes;  // 1, 2 or 4
    uint64_t width_elements; // of a row
    uint64_t rows;
};

// One side of a CUDA_MEMCPY3D_v2, 88 bytes.
struct vr_cu_memcpy_side {
    uint64_t x_bytes, y, z, lod;
    int32_t memory_type;
    uint64_t host, device, array, reserved;
    uint64_t pitch_bytes;
    uint64_t rows; // of a plane
};

// CUDA_MEMCPY3D_v2, 200 bytes.
struct vr_cu_memcpy3d {
    struct vr_cu_memcpy_side from, to;
    uint64_t width_bytes, rows, planes;
};

// CUgraphEdgeData, 8 bytes. All zero: the whole of one node after the whole of another.
struct vr_cu_edge_data {
    uint8_t from_port, to_port, type, reserved[5];
};

#endif
