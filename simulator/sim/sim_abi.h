// sim_abi.h: structures of the CUDA driver ABI that programs pass to a simulated driver and that this project does not use otherwise.
// Declared here, as in driver/abi.h; tests/abi compares sizes and offsets with NVIDIA's headers where they are found.
#ifndef VR_SIM_SIM_ABI_H
#define VR_SIM_SIM_ABI_H

#include "driver/abi.h"

enum {
    VR_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    VR_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    VR_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    VR_CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE = 108,
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
    VR_CU_ARRAY3D_LAYERED = 1,
    VR_CU_ARRAY3D_CUBEMAP = 4,
    VR_CU_ARRAY3D_SPARSE = 0x40,
    VR_CU_RESOURCE_ARRAY = 0,
    VR_CU_RESOURCE_MIPMAPPED_ARRAY = 1,
    VR_CU_RESOURCE_LINEAR = 2,
    VR_CU_RESOURCE_PITCH2D = 3,
    VR_CU_MEM_ATTACH_GLOBAL = 1,
    VR_CU_MEM_ATTACH_HOST = 2,
    VR_CU_DEVICE_CPU = -1,
    VR_CU_DEVICE_INVALID = -2,
    VR_CU_MEM_LOCATION_TYPE_HOST = 2,
    VR_CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    VR_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    VR_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
    VR_CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
    VR_CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
    VR_CU_LAUNCH_ATTRIBUTE_MOST = 32, // bound of the ids
    VR_CU_LAUNCH_PARAM_END = 0,       // terminates the list `extra`
    VR_CU_LAUNCH_PARAM_BUFFER_POINTER = 1,
    VR_CU_LAUNCH_PARAM_BUFFER_SIZE = 2,
};

enum { VR_CU_MULTICAST_GRANULARITY_MINIMUM = 0, VR_CU_MULTICAST_GRANULARITY_RECOMMENDED = 1 };

// CUmulticastObjectProp, 32 bytes.
struct vr_cu_multicast_prop {
    uint32_t device_count;
    uint64_t size_bytes, handle_types, flags;
};

// CUdevprop, 56 bytes.
struct vr_cu_device_properties {
    int32_t threads_per_block, block[3], grid[3];
    int32_t shared_bytes, constant_bytes, warp, pitch_bytes, registers, clock_khz, texture_alignment;
};

// CUdevResource, 144 bytes: multiprocessors or work queues.
struct vr_cu_dev_resource {
    int32_t type;
    uint8_t padding[92];
    union {
        struct {
            uint32_t multiprocessors, least, alignment, flags;
        };
        struct { // work queues
            int32_t device;
            uint32_t workloads; // expected concurrent workloads
            int32_t scope;
        };
        uint8_t whole[40];
    };
    void *next;
};

// CU_DEV_SM_RESOURCE_GROUP_PARAMS, 64 bytes: one requested part; 0 multiprocessors: all that are left.
struct vr_cu_sm_group {
    uint32_t multiprocessors, coscheduled, preferred, flags, domain;
    uint32_t reserved[11];
};

// CUctxCreateParams, 24 bytes: a context on part of the multiprocessors, or for graphics; usually all zero.
struct vr_cu_context_params {
    const void *affinities;
    int32_t affinity_count;
    const void *graphics;
};

// CUoccupancyB2DSize: dynamic shared memory of a block with `threads` threads.
typedef uint64_t vr_cu_block_to_shared(int threads);

// CUstreamCallback.
typedef void vr_cu_stream_callback(uint64_t stream, vr_cu_result status, void *argument);

// CUstreamBatchMemOpParams, 48 bytes. A 32-bit value is in the lower half of `value`.
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
        int32_t number; // value of the attributes that are one number, such as cooperative and priority
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

// One side of a CUDA_MEMCPY2D_v2, 56 bytes.
struct vr_cu_memcpy2d_side {
    uint64_t x_bytes, y;
    int32_t memory_type;
    uint64_t host, device, array;
    uint64_t pitch_bytes;
};

// CUDA_MEMCPY2D_v2, 128 bytes.
struct vr_cu_memcpy2d {
    struct vr_cu_memcpy2d_side from, to;
    uint64_t width_bytes, rows;
};

// CUmemcpyAttributes, 24 bytes.
struct vr_cu_memcpy_attributes {
    int32_t access_order; // when the source is read: 1 in stream order, 2 during the call, 3 any time
    struct vr_cu_location from, to;
    uint32_t flags;
};

// CUmemcpy3DOperand, 48 bytes: memory or an array.
struct vr_cu_memcpy3d_operand {
    int32_t type; // 1 memory, 2 array
    union {
        struct {
            uint64_t address, row_length, layer_height; // row_length, layer_height: in elements; 0: those of the copy
            struct vr_cu_location location;
        } memory;
        struct {
            uint64_t array, x, y, z;
        } array;
    };
};

// CUDA_MEMCPY3D_BATCH_OP, 112 bytes.
struct vr_cu_memcpy3d_batched {
    struct vr_cu_memcpy3d_operand from, to;
    uint64_t width, height, depth;
    int32_t access_order;
    uint32_t flags;
};

// CUDA_ARRAY_DESCRIPTOR_v2, 24 bytes.
struct vr_cu_array_descriptor {
    uint64_t width, height; // in elements; height 0: a one-dimensional array
    int32_t format;
    uint32_t channels;
};

// CUDA_ARRAY3D_DESCRIPTOR_v2, 40 bytes.
struct vr_cu_array3d_descriptor {
    uint64_t width, height, depth;
    int32_t format;
    uint32_t channels, flags;
};

// CUDA_ARRAY_MEMORY_REQUIREMENTS, 32 bytes.
struct vr_cu_array_requirements {
    uint64_t size_bytes, alignment;
    uint32_t reserved[4];
};

// CUDA_RESOURCE_DESC, 144 bytes: source of a texture or surface object.
struct vr_cu_resource {
    int32_t kind; // VR_CU_RESOURCE_*
    union {
        uint64_t array; // or mipmapped array, or an address
        uint64_t words[16];
    };
    uint32_t flags;
};

// CUDA_TEXTURE_DESC, 104 bytes, and CUDA_RESOURCE_VIEW_DESC, 112 bytes: stored unread.
struct vr_cu_texture {
    uint32_t words[26];
};
struct vr_cu_resource_view {
    uint64_t words[14];
};

// CUDA_LAUNCH_PARAMS, 56 bytes.
struct vr_cu_launch_params {
    uint64_t function;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint64_t stream;
    void **parameters;
};

// CUDA_MEMCPY_NODE_PARAMS, 216 bytes.
struct vr_cu_memcpy_node {
    int32_t flags, reserved;
    uint64_t context;
    struct vr_cu_memcpy3d copy;
};

// CUDA_MEM_ALLOC_NODE_PARAMS, 120 bytes.
struct vr_cu_alloc_node {
    struct vr_cu_pool_props pool;
    const struct vr_cu_access_desc *access;
    uint64_t access_count, size_bytes, address;
};

// CUDA_BATCH_MEM_OP_NODE_PARAMS, 32 bytes.
struct vr_cu_batch_node {
    uint64_t context;
    uint32_t count;
    const struct vr_cu_mem_op *ops;
    uint32_t flags;
};

// CUDA_CONDITIONAL_NODE_PARAMS, 32 bytes. The driver returns the handles of the node's bodies through `bodies`.
struct vr_cu_conditional_node {
    uint64_t handle;
    int32_t type;
    uint32_t size;
    const uint64_t *bodies;
    uint64_t context;
};

// CUgraphNodeParams, 256 bytes.
struct vr_cu_node_params {
    int32_t type, reserved[3];
    union {
        uint64_t words[29];
        struct vr_cu_kernel_node kernel;
        struct vr_cu_memcpy_node memcpy;
        struct {
            struct vr_cu_memset_node set;
            uint64_t context;
        } memset;
        struct {
            struct vr_cu_host_node call;
            uint32_t mode;
            uint64_t context;
        } host;
        struct {
            uint64_t graph;
            int32_t ownership;
        } child;
        struct {
            uint64_t event, context;
        } event;
        struct vr_cu_alloc_node alloc;
        uint64_t freed;
        struct vr_cu_batch_node batch;
        struct vr_cu_conditional_node conditional;
    } of;
    uint64_t reserved_2;
};

// CUDA_GRAPH_INSTANTIATE_PARAMS, 32 bytes.
struct vr_cu_instantiate_params {
    uint64_t flags, stream, error_node;
    int32_t result;
};

// CUcheckpointLockArgs, 64 bytes.
struct vr_cu_checkpoint_lock {
    uint32_t timeout_ms, reserved_0; // timeout 0: none
    uint64_t reserved[7];
};

// CUcheckpointCheckpointArgs and CUcheckpointUnlockArgs, 64 bytes.
struct vr_cu_checkpoint_reserved {
    uint64_t reserved[8];
};

// CUcheckpointRestoreArgs, 64 bytes: the UUIDs of devices and of those that replace them.
struct vr_cu_checkpoint_restore {
    const struct vr_cu_device_pair { unsigned char from[16], to[16]; } * pairs;
    uint32_t pair_count;
    char reserved[52 - sizeof(void *)];
    uint64_t reserved_1;
};

// CUgraphExecUpdateResultInfo, 24 bytes.
struct vr_cu_update_info {
    int32_t result;
    uint64_t node, from;
};

#endif
