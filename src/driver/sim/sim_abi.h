// sim_abi.h: structures of the CUDA driver ABI that programs hand to a simulated driver and this project itself does not use, declared by
// ourselves as those of driver/abi.h are. tests/abi compares their sizes and offsets with NVIDIA's where a header is found.
#ifndef VR_DRIVER_SIM_SIM_ABI_H
#define VR_DRIVER_SIM_SIM_ABI_H

#include "driver/abi.h"

enum {
    VR_CU_MODULE_LAZY_LOADING = 2,
    VR_CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
    VR_CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
    VR_CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
    VR_CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
    VR_CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
    VR_CU_STREAM_MEM_OP_BARRIER = 6,
    VR_CU_STREAM_WAIT_VALUE_GEQ = 0,
    VR_CU_STREAM_WAIT_VALUE_EQ = 1,
    VR_CU_STREAM_WAIT_VALUE_AND = 2,
    VR_CU_STREAM_WAIT_VALUE_NOR = 3,
    VR_CU_STREAM_WAIT_VALUE_FLUSH = 1 << 30,
    VR_CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER = 1,
    VR_CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    VR_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    VR_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
    VR_CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
    VR_CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
    VR_CU_LAUNCH_ATTRIBUTE_MOST = 32, // ids are below
    VR_CU_LAUNCH_PARAM_END = 0,       // of the list `extra`
    VR_CU_LAUNCH_PARAM_BUFFER_POINTER = 1,
    VR_CU_LAUNCH_PARAM_BUFFER_SIZE = 2,
};

// CUoccupancyB2DSize: the dynamic shared memory that a block of so many threads needs.
typedef uint64_t vr_cu_block_to_shared(int threads);

// CUstreamCallback.
typedef void vr_cu_stream_callback(uint64_t stream, vr_cu_result status, void *argument);

// CUDA_MEMCPY2D_v2, 128 bytes.
struct vr_cu_memcpy2d_side {
    uint64_t x_bytes, y;
    int32_t memory_type;
    uint64_t host, device, array, pitch_bytes;
};
struct vr_cu_memcpy2d {
    struct vr_cu_memcpy2d_side from, to;
    uint64_t width_bytes, rows;
};

// CUDA_MEMCPY3D_PEER, 200 bytes: CUDA_MEMCPY3D with contexts where that has nothing.
struct vr_cu_memcpy3d_peer {
    struct vr_cu_memcpy3d copy;
};

// CUDA_ARRAY_DESCRIPTOR_v2, 24 bytes, and CUDA_ARRAY3D_DESCRIPTOR_v2, 40 bytes.
struct vr_cu_array {
    uint64_t width, height;
    int32_t format;
    uint32_t channels;
};
struct vr_cu_array3d {
    uint64_t width, height, depth;
    int32_t format;
    uint32_t channels, flags;
};

// CUDA_RESOURCE_DESC, 144 bytes.
struct vr_cu_resource {
    int32_t type;
    union {
        uint64_t array; // or a mipmapped one
        uint64_t address;
        int32_t reserved[32];
    } of;
    uint32_t flags;
};

// CUstreamBatchMemOpParams, 48 bytes. The value of 32 bits is the lower half.
struct vr_cu_mem_op {
    int32_t operation;
    uint64_t address, value;
    uint32_t flags;
    uint64_t alias, unused;
};

// CUlaunchAttribute, 72 bytes.
struct vr_cu_launch_attribute {
    int32_t id;
    uint8_t padding[4];
    union {
        uint8_t bytes[64];
        uint32_t cluster[3];
        int32_t number; // cooperative, priority and others that are one number
        uint64_t event;
    } value;
};

// CUlaunchConfig, 56 bytes.
struct vr_cu_launch_config {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint64_t stream;
    const struct vr_cu_launch_attribute *attributes;
    uint32_t attribute_count;
};

// CUDA_KERNEL_NODE_PARAMS_v2, 72 bytes; the first version ends before `kernel`.
struct vr_cu_kernel_node {
    uint64_t function;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    void **parameters, **extra;
    uint64_t kernel, context;
};

// CUDA_LAUNCH_PARAMS, 56 bytes.
struct vr_cu_launch_params {
    uint64_t function;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint64_t stream;
    void **parameters;
};

#endif
