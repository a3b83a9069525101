// Compares our declarations of the driver ABI with NVIDIA's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/base.h"
#include "driver/driver.h"
#include "sim/sim_abi.h"

#ifdef VRAM_HAVE_CUDA_H

#include <cuda.h>
#include <cudaTypedefs.h>

#define SAME(ours, theirs)                                                                                                                 \
    { #ours, (int64_t)(ours), (int64_t)(theirs) }
#define RESULT(name)    SAME(VR_CU_##name, CUDA_ERROR_##name)
#define ATTRIBUTE(name) SAME(VR_CU_DEVICE_ATTRIBUTE_##name, CU_DEVICE_ATTRIBUTE_##name)

static const struct {
    const char *name;
    int64_t ours, theirs;
} constants[] = {
    SAME(VR_CU_SUCCESS, CUDA_SUCCESS),
    RESULT(INVALID_VALUE),
    RESULT(OUT_OF_MEMORY),
    RESULT(NOT_INITIALIZED),
    RESULT(DEINITIALIZED),
    RESULT(NO_DEVICE),
    RESULT(INVALID_DEVICE),
    RESULT(INVALID_CONTEXT),
    RESULT(OPERATING_SYSTEM),
    RESULT(INVALID_HANDLE),
    RESULT(PEER_ACCESS_UNSUPPORTED),
    RESULT(PEER_ACCESS_ALREADY_ENABLED),
    RESULT(PEER_ACCESS_NOT_ENABLED),
    SAME(VR_CU_MEM_HANDLE_TYPE_FABRIC, CU_MEM_HANDLE_TYPE_FABRIC),
    SAME(VR_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
    ATTRIBUTE(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED),
    ATTRIBUTE(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED),
    RESULT(NOT_FOUND),
    RESULT(NOT_READY),
    RESULT(ILLEGAL_ADDRESS),
    RESULT(CONTEXT_IS_DESTROYED),
    RESULT(HOST_MEMORY_ALREADY_REGISTERED),
    RESULT(HOST_MEMORY_NOT_REGISTERED),
    RESULT(NOT_PERMITTED),
    RESULT(NOT_SUPPORTED),
    RESULT(ILLEGAL_STATE),
    RESULT(STREAM_CAPTURE_UNSUPPORTED),
    RESULT(STREAM_CAPTURE_INVALIDATED),
    RESULT(STREAM_CAPTURE_MERGE),
    RESULT(STREAM_CAPTURE_UNMATCHED),
    RESULT(STREAM_CAPTURE_UNJOINED),
    RESULT(STREAM_CAPTURE_ISOLATION),
    RESULT(STREAM_CAPTURE_IMPLICIT),
    RESULT(CAPTURED_EVENT),
    RESULT(STREAM_CAPTURE_WRONG_THREAD),
    RESULT(UNKNOWN),
    SAME(VR_CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED),
    SAME(VR_CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE),
    SAME(VR_CU_MEM_HANDLE_TYPE_NONE, CU_MEM_HANDLE_TYPE_NONE),
    SAME(VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
    SAME(VR_CU_MEM_ACCESS_FLAGS_PROT_NONE, CU_MEM_ACCESS_FLAGS_PROT_NONE),
    SAME(VR_CU_MEM_ACCESS_FLAGS_PROT_READ, CU_MEM_ACCESS_FLAGS_PROT_READ),
    SAME(VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
    SAME(VR_CU_MEM_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
    SAME(VR_CU_MEM_GRANULARITY_RECOMMENDED, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
    SAME(VR_CU_EVENT_BLOCKING_SYNC, CU_EVENT_BLOCKING_SYNC),
    SAME(VR_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING),
    SAME(VR_CU_EVENT_INTERPROCESS, CU_EVENT_INTERPROCESS),
    SAME(VR_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING),
    SAME(VR_CU_STREAM_LEGACY, (uintptr_t)CU_STREAM_LEGACY),
    SAME(VR_CU_STREAM_PER_THREAD, (uintptr_t)CU_STREAM_PER_THREAD),
    SAME(VR_CU_MEM_HOST_ALLOC_PORTABLE, CU_MEMHOSTALLOC_PORTABLE),
    SAME(VR_CU_MEM_HOST_ALLOC_DEVICE_MAP, CU_MEMHOSTALLOC_DEVICEMAP),
    SAME(VR_CU_MEM_HOST_ALLOC_WRITE_COMBINED, CU_MEMHOSTALLOC_WRITECOMBINED),
    SAME(VR_CU_MEM_HOST_REGISTER_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE),
    SAME(VR_CU_MEM_HOST_REGISTER_DEVICE_MAP, CU_MEMHOSTREGISTER_DEVICEMAP),
    SAME(VR_CU_STREAM_CAPTURE_STATUS_NONE, CU_STREAM_CAPTURE_STATUS_NONE),
    SAME(VR_CU_STREAM_CAPTURE_STATUS_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE),
    SAME(VR_CU_STREAM_CAPTURE_STATUS_INVALIDATED, CU_STREAM_CAPTURE_STATUS_INVALIDATED),
    SAME(VR_CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL),
    SAME(VR_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
    SAME(VR_CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED),
    SAME(VR_CU_STREAM_ADD_CAPTURE_DEPENDENCIES, CU_STREAM_ADD_CAPTURE_DEPENDENCIES),
    SAME(VR_CU_STREAM_SET_CAPTURE_DEPENDENCIES, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
    SAME(VR_CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL),
    SAME(VR_CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMCPY),
    SAME(VR_CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEMSET),
    SAME(VR_CU_GRAPH_NODE_TYPE_HOST, CU_GRAPH_NODE_TYPE_HOST),
    SAME(VR_CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_GRAPH),
    SAME(VR_CU_GRAPH_NODE_TYPE_EMPTY, CU_GRAPH_NODE_TYPE_EMPTY),
    SAME(VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_WAIT_EVENT),
    SAME(VR_CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_EVENT_RECORD),
    SAME(VR_CU_EVENT_RECORD_EXTERNAL, CU_EVENT_RECORD_EXTERNAL),
    SAME(VR_CU_EVENT_WAIT_EXTERNAL, CU_EVENT_WAIT_EXTERNAL),
    SAME(VR_CU_MEMORY_TYPE_HOST, CU_MEMORYTYPE_HOST),
    SAME(VR_CU_MEMORY_TYPE_DEVICE, CU_MEMORYTYPE_DEVICE),
    SAME(VR_CU_MEMORY_TYPE_ARRAY, CU_MEMORYTYPE_ARRAY),
    SAME(VR_CU_MEMORY_TYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED),
    SAME(VR_CU_GRAPH_INSTANTIATE_AUTO_FREE_ON_LAUNCH, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH),
    SAME(VR_CU_GRAPH_INSTANTIATE_UPLOAD, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD),
    SAME(VR_CU_GRAPH_INSTANTIATE_DEVICE_LAUNCH, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH),
    SAME(VR_CU_GRAPH_INSTANTIATE_USE_NODE_PRIORITY, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY),
    SAME(VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_ALLOC),
    SAME(VR_CU_GRAPH_NODE_TYPE_MEM_FREE, CU_GRAPH_NODE_TYPE_MEM_FREE),
    SAME(VR_CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES),
    SAME(VR_CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC),
    SAME(VR_CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES),
    SAME(VR_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD),
    SAME(VR_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
    SAME(VR_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH),
    SAME(VR_CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
    SAME(VR_CU_MEMPOOL_ATTR_USED_MEM_HIGH, CU_MEMPOOL_ATTR_USED_MEM_HIGH),
    ATTRIBUTE(MEMORY_POOLS_SUPPORTED),
    ATTRIBUTE(INTEGRATED),
    ATTRIBUTE(MANAGED_MEMORY),
    ATTRIBUTE(HANDLE_TYPE_FABRIC_SUPPORTED),
    ATTRIBUTE(MULTICAST_SUPPORTED),
    ATTRIBUTE(MAX_THREADS_PER_BLOCK),
    ATTRIBUTE(WARP_SIZE),
    ATTRIBUTE(MULTIPROCESSOR_COUNT),
    ATTRIBUTE(CAN_MAP_HOST_MEMORY),
    ATTRIBUTE(UNIFIED_ADDRESSING),
    ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR),
    ATTRIBUTE(COMPUTE_CAPABILITY_MINOR),
    ATTRIBUTE(HOST_REGISTER_SUPPORTED),
    ATTRIBUTE(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED),
#if CUDA_VERSION == 13000
#if CUDA_VERSION >= 13050
#define X(number, name, value) SAME(number, CU_DEVICE_ATTRIBUTE_##name),
#include "sim/device/attributes.def"
#undef X
#endif
#endif
};

static void constants_are_nvidias(void **state) {
    for (size_t i = 0; i < VR_COUNT_OF(constants); i++)
        if (constants[i].ours != constants[i].theirs)
            fail_msg("%s is %lld, not %lld", constants[i].name, (long long)constants[i].theirs, (long long)constants[i].ours);
    (void)state;
}

#define SAME_FIELD(ours, our_field, theirs, their_field)                                                                                   \
    do {                                                                                                                                   \
        assert_int_equal(offsetof(struct ours, our_field), offsetof(theirs, their_field));                                                 \
        assert_int_equal(sizeof(((struct ours *)0)->our_field), sizeof(((theirs *)0)->their_field));                                       \
    } while (0)

#define SAME_SIDE(our_field, their_field)                                                                                                  \
    SAME_FIELD(vr_cu_memcpy3d, from.our_field, CUDA_MEMCPY3D, src##their_field);                                                           \
    SAME_FIELD(vr_cu_memcpy3d, to.our_field, CUDA_MEMCPY3D, dst##their_field)

static void graph_layouts_are_nvidias(void) {
    assert_int_equal(sizeof(struct vr_cu_memcpy3d), sizeof(CUDA_MEMCPY3D));
    SAME_SIDE(x_bytes, XInBytes);
    SAME_SIDE(y, Y);
    SAME_SIDE(z, Z);
    SAME_SIDE(lod, LOD);
    SAME_SIDE(memory_type, MemoryType);
    SAME_SIDE(host, Host);
    SAME_SIDE(device, Device);
    SAME_SIDE(array, Array);
    SAME_SIDE(pitch_bytes, Pitch);
    SAME_SIDE(rows, Height);
    SAME_FIELD(vr_cu_memcpy3d, width_bytes, CUDA_MEMCPY3D, WidthInBytes);
    SAME_FIELD(vr_cu_memcpy3d, rows, CUDA_MEMCPY3D, Height);
    SAME_FIELD(vr_cu_memcpy3d, planes, CUDA_MEMCPY3D, Depth);
    assert_int_equal(sizeof(struct vr_cu_memset_node), sizeof(CUDA_MEMSET_NODE_PARAMS_v1));
    SAME_FIELD(vr_cu_memset_node, address, CUDA_MEMSET_NODE_PARAMS_v1, dst);
    SAME_FIELD(vr_cu_memset_node, pitch_bytes, CUDA_MEMSET_NODE_PARAMS_v1, pitch);
    SAME_FIELD(vr_cu_memset_node, value, CUDA_MEMSET_NODE_PARAMS_v1, value);
    SAME_FIELD(vr_cu_memset_node, element_bytes, CUDA_MEMSET_NODE_PARAMS_v1, elementSize);
    SAME_FIELD(vr_cu_memset_node, width_elements, CUDA_MEMSET_NODE_PARAMS_v1, width);
    SAME_FIELD(vr_cu_memset_node, rows, CUDA_MEMSET_NODE_PARAMS_v1, height);
    assert_int_equal(sizeof(struct vr_cu_host_node), sizeof(CUDA_HOST_NODE_PARAMS_v1));
    SAME_FIELD(vr_cu_host_node, function, CUDA_HOST_NODE_PARAMS_v1, fn);
    SAME_FIELD(vr_cu_host_node, argument, CUDA_HOST_NODE_PARAMS_v1, userData);
    assert_int_equal(sizeof(struct vr_cu_edge_data), sizeof(CUgraphEdgeData));
    SAME_FIELD(vr_cu_edge_data, from_port, CUgraphEdgeData, from_port);
    SAME_FIELD(vr_cu_edge_data, to_port, CUgraphEdgeData, to_port);
    SAME_FIELD(vr_cu_edge_data, type, CUgraphEdgeData, type);
}

// Tests the full structs that programs pass to a simulated driver: those of CUDA 12.3 and later.
static void program_layouts_are_nvidias(void) {
    assert_int_equal(sizeof(struct vr_cu_launch_attribute), sizeof(CUlaunchAttribute));
    SAME_FIELD(vr_cu_launch_attribute, value, CUlaunchAttribute, value);
    assert_int_equal(sizeof(struct vr_cu_launch_config), sizeof(CUlaunchConfig));
    SAME_FIELD(vr_cu_launch_config, stream, CUlaunchConfig, hStream);
    SAME_FIELD(vr_cu_launch_config, attributes, CUlaunchConfig, attrs);
    SAME_FIELD(vr_cu_launch_config, attribute_count, CUlaunchConfig, numAttrs);
    assert_int_equal(sizeof(struct vr_cu_launch_params), sizeof(CUDA_LAUNCH_PARAMS_v1));
    SAME_FIELD(vr_cu_launch_params, stream, CUDA_LAUNCH_PARAMS_v1, hStream);
    assert_int_equal(sizeof(struct vr_cu_mem_op), sizeof(CUstreamBatchMemOpParams));
    SAME_FIELD(vr_cu_mem_op, value, CUstreamBatchMemOpParams, writeValue.value64);
    SAME_FIELD(vr_cu_mem_op, flags, CUstreamBatchMemOpParams, waitValue.flags);
    assert_int_equal(sizeof(struct vr_cu_multicast_prop), sizeof(CUmulticastObjectProp));
    SAME_FIELD(vr_cu_multicast_prop, size_bytes, CUmulticastObjectProp, size);
    SAME_FIELD(vr_cu_multicast_prop, handle_types, CUmulticastObjectProp, handleTypes);
    SAME_FIELD(vr_cu_multicast_prop, flags, CUmulticastObjectProp, flags);
    assert_int_equal(sizeof(struct vr_cu_alloc_node), sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));
    SAME_FIELD(vr_cu_alloc_node, address, CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
    assert_int_equal(sizeof(struct vr_cu_batch_node), sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS));
#if CUDA_VERSION >= 12030
    assert_int_equal(sizeof(struct vr_cu_kernel_node), sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
    SAME_FIELD(vr_cu_kernel_node, parameters, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
    SAME_FIELD(vr_cu_kernel_node, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
    SAME_FIELD(vr_cu_kernel_node, context, CUDA_KERNEL_NODE_PARAMS_v2, ctx);
    assert_int_equal(sizeof(struct vr_cu_memcpy_node), sizeof(CUDA_MEMCPY_NODE_PARAMS));
    SAME_FIELD(vr_cu_memcpy_node, copy, CUDA_MEMCPY_NODE_PARAMS, copyParams);
    SAME_FIELD(vr_cu_conditional_node, type, CUDA_CONDITIONAL_NODE_PARAMS, type);
    SAME_FIELD(vr_cu_conditional_node, bodies, CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out);
    assert_int_equal(sizeof(struct vr_cu_node_params), sizeof(CUgraphNodeParams));
    assert_int_equal(offsetof(struct vr_cu_node_params, of), offsetof(CUgraphNodeParams, kernel));
    assert_int_equal(sizeof(struct vr_cu_instantiate_params), sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
    SAME_FIELD(vr_cu_instantiate_params, result, CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);
    assert_int_equal(sizeof(struct vr_cu_update_info), sizeof(CUgraphExecUpdateResultInfo));
    SAME_FIELD(vr_cu_update_info, from, CUgraphExecUpdateResultInfo, errorFromNode);
#endif
#if CUDA_VERSION >= 12080
    assert_int_equal(sizeof(struct vr_cu_checkpoint_lock), sizeof(CUcheckpointLockArgs));
    SAME_FIELD(vr_cu_checkpoint_lock, timeout_ms, CUcheckpointLockArgs, timeoutMs);
    assert_int_equal(sizeof(struct vr_cu_checkpoint_reserved), sizeof(CUcheckpointCheckpointArgs));
    assert_int_equal(sizeof(struct vr_cu_checkpoint_reserved), sizeof(CUcheckpointUnlockArgs));
    assert_int_equal(sizeof(struct vr_cu_device_pair), sizeof(CUcheckpointGpuPair));
    assert_int_equal(sizeof(struct vr_cu_checkpoint_restore), sizeof(CUcheckpointRestoreArgs));
    SAME_FIELD(vr_cu_checkpoint_restore, pairs, CUcheckpointRestoreArgs, gpuPairs);
    SAME_FIELD(vr_cu_checkpoint_restore, pair_count, CUcheckpointRestoreArgs, gpuPairsCount);
#endif
}

static void layouts_are_nvidias(void **state) {
    assert_int_equal(sizeof(struct vr_cu_location), sizeof(CUmemLocation));
    SAME_FIELD(vr_cu_location, type, CUmemLocation, type);
    SAME_FIELD(vr_cu_location, id, CUmemLocation, id);
    assert_int_equal(sizeof(struct vr_cu_allocation_prop), sizeof(CUmemAllocationProp));
    SAME_FIELD(vr_cu_allocation_prop, type, CUmemAllocationProp, type);
    SAME_FIELD(vr_cu_allocation_prop, requested_handle_types, CUmemAllocationProp, requestedHandleTypes);
    SAME_FIELD(vr_cu_allocation_prop, location, CUmemAllocationProp, location);
    SAME_FIELD(vr_cu_allocation_prop, win32_handle_meta_data, CUmemAllocationProp, win32HandleMetaData);
    SAME_FIELD(vr_cu_allocation_prop, compression_type, CUmemAllocationProp, allocFlags.compressionType);
    SAME_FIELD(vr_cu_allocation_prop, gpu_direct_rdma_capable, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
    SAME_FIELD(vr_cu_allocation_prop, usage, CUmemAllocationProp, allocFlags.usage);
    SAME_FIELD(vr_cu_allocation_prop, reserved, CUmemAllocationProp, allocFlags.reserved);
    assert_int_equal(sizeof(struct vr_cu_pool_props), sizeof(CUmemPoolProps));
    SAME_FIELD(vr_cu_pool_props, type, CUmemPoolProps, allocType);
    SAME_FIELD(vr_cu_pool_props, handle_types, CUmemPoolProps, handleTypes);
    SAME_FIELD(vr_cu_pool_props, location, CUmemPoolProps, location);
    SAME_FIELD(vr_cu_pool_props, most_bytes, CUmemPoolProps, maxSize);
    assert_int_equal(sizeof(struct vr_cu_access_desc), sizeof(CUmemAccessDesc));
    SAME_FIELD(vr_cu_access_desc, location, CUmemAccessDesc, location);
    SAME_FIELD(vr_cu_access_desc, flags, CUmemAccessDesc, flags);
    assert_int_equal(sizeof(struct vr_cu_ipc_handle), sizeof(CUipcMemHandle));
    assert_int_equal(sizeof(struct vr_cu_ipc_handle), sizeof(CUipcEventHandle));
    assert_int_equal(sizeof(vr_cu_result), sizeof(CUresult));
    assert_int_equal(sizeof(struct vr_cu_device_properties), sizeof(CUdevprop));
    SAME_FIELD(vr_cu_device_properties, texture_alignment, CUdevprop, textureAlign);
#if CUDA_VERSION >= 12050
    assert_int_equal(sizeof(struct vr_cu_context_params), sizeof(CUctxCreateParams));
    SAME_FIELD(vr_cu_context_params, graphics, CUctxCreateParams, cigParams);
#endif
#if CUDA_VERSION >= 13000
    assert_int_equal(sizeof(struct vr_cu_dev_resource), sizeof(CUdevResource));
    SAME_FIELD(vr_cu_dev_resource, multiprocessors, CUdevResource, sm.smCount);
    SAME_FIELD(vr_cu_dev_resource, alignment, CUdevResource, sm.smCoscheduledAlignment);
    SAME_FIELD(vr_cu_dev_resource, flags, CUdevResource, sm.flags);
#endif
    graph_layouts_are_nvidias();
    program_layouts_are_nvidias();
    (void)state;
}

// Types that the table passes as uint64_t have eight bytes in the driver.
static void handles_are_eight_bytes(void **state) {
    assert_int_equal(sizeof(CUdeviceptr), sizeof(uint64_t));
    assert_int_equal(sizeof(size_t), sizeof(uint64_t));
    assert_int_equal(sizeof(CUcontext), sizeof(uint64_t));
    assert_int_equal(sizeof(CUstream), sizeof(uint64_t));
    assert_int_equal(sizeof(CUevent), sizeof(uint64_t));
    assert_int_equal(sizeof(CUmemGenericAllocationHandle), sizeof(uint64_t));
    assert_int_equal(sizeof(CUgraph), sizeof(uint64_t));
    assert_int_equal(sizeof(CUgraphNode), sizeof(uint64_t));
    assert_int_equal(sizeof(CUgraphExec), sizeof(uint64_t));
    assert_int_equal(sizeof(CUdevice), sizeof(int));
    (void)state;
}

// Compiles only if every row's version introduced an ABI of that function. The tests of the shared simulator check the number of arguments.
static void versions_are_nvidias(void **state) {
    size_t rows = 0;
#define X(member, symbol, exported, version, parameters, arguments) rows += sizeof(PFN_##symbol##_v##version) == sizeof(void *);
#include "driver/calls.def"
#undef X
    assert_true(rows > 70);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_are_nvidias),
        cmocka_unit_test(layouts_are_nvidias),
        cmocka_unit_test(handles_are_eight_bytes),
        cmocka_unit_test(versions_are_nvidias),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
    (void)puts("skipped: no cuda.h was found (set CUDA_HOME)");
    return 77;
}

#endif
