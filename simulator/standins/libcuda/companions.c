// Companions of the rows of calls.def: older ABI versions, and versions with more arguments.
#include "../common/missing.h"
#include "libcuda.h"
#include "sim/graphs/sim_graphs.h"
#include "sim/sim_abi.h"
#include "sim/streams/sim_streams.h"

// ---- Older ABI versions with the same meaning as the newest simulated one, and newer versions with more arguments.

vr_cu_result cuCtxCreate(uint64_t *context, unsigned flags, int device) { return cuCtxCreate_v2(context, flags, device); }

// Execution affinity (part of the multiprocessors) needs an MPS server, which is not simulated.
vr_cu_result cuCtxCreate_v3(uint64_t *context, const void *affinities, int affinity_count, unsigned flags, int device) {
    if ((affinities == NULL) != (affinity_count == 0) || affinity_count < 0) return VR_CU_INVALID_VALUE;
    return affinity_count > 0 ? VR_CU_UNSUPPORTED_EXEC_AFFINITY : cuCtxCreate_v2(context, flags, device);
}

vr_cu_result cuCtxCreate_v4(uint64_t *context, const struct vr_cu_context_params *params, unsigned flags, int device) {
    if (params == NULL) return cuCtxCreate_v2(context, flags, device);
    if (params->graphics != NULL) return params->affinities == NULL ? VR_CU_NOT_SUPPORTED : VR_CU_INVALID_VALUE;
    return cuCtxCreate_v3(context, params->affinities, params->affinity_count, flags, device);
}

vr_cu_result cuCtxDestroy(uint64_t context) { return cuCtxDestroy_v2(context); }
vr_cu_result cuCtxPushCurrent(uint64_t context) { return cuCtxPushCurrent_v2(context); }
vr_cu_result cuCtxPopCurrent(uint64_t *context) { return cuCtxPopCurrent_v2(context); }
vr_cu_result cuDevicePrimaryCtxRelease(int device) { return cuDevicePrimaryCtxRelease_v2(device); }
vr_cu_result cuDevicePrimaryCtxReset(int device) { return cuDevicePrimaryCtxReset_v2(device); }
vr_cu_result cuDevicePrimaryCtxSetFlags(int device, unsigned flags) { return cuDevicePrimaryCtxSetFlags_v2(device, flags); }
vr_cu_result cuStreamDestroy(uint64_t stream) { return cuStreamDestroy_v2(stream); }
vr_cu_result cuEventDestroy(uint64_t event) { return cuEventDestroy_v2(event); }
vr_cu_result cuMemHostRegister(uint64_t host, uint64_t size_bytes, unsigned flags) { return cuMemHostRegister_v2(host, size_bytes, flags); }
vr_cu_result cuStreamBeginCapture(uint64_t stream) { return cuStreamBeginCapture_v2(stream, VR_CU_STREAM_CAPTURE_MODE_GLOBAL); }

vr_cu_result cuIpcOpenMemHandle(uint64_t *address, struct vr_cu_ipc_handle handle, unsigned flags) {
    return cuIpcOpenMemHandle_v2(address, handle, flags);
}

vr_cu_result cuStreamWriteValue32(uint64_t stream, uint64_t address, uint32_t value, unsigned flags) {
    return cuStreamWriteValue32_v2(stream, address, value, flags);
}

vr_cu_result cuStreamWaitValue32(uint64_t stream, uint64_t address, uint32_t value, unsigned flags) {
    return cuStreamWaitValue32_v2(stream, address, value, flags);
}

vr_cu_result cuStreamWriteValue64(uint64_t stream, uint64_t address, uint64_t value, unsigned flags) {
    return cuStreamWriteValue64_v2(stream, address, value, flags);
}

vr_cu_result cuStreamWaitValue64(uint64_t stream, uint64_t address, uint64_t value, unsigned flags) {
    return cuStreamWaitValue64_v2(stream, address, value, flags);
}

vr_cu_result cuStreamBatchMemOp(uint64_t stream, unsigned count, const struct vr_cu_mem_op *ops, unsigned flags) {
    return cuStreamBatchMemOp_v2(stream, count, ops, flags);
}

// ---- Functions of companions.def that use the table of calls.def.

#define PITCH 512 // granularity of the rows of cuMemAllocPitch

static bool is_device(int device) {
    const struct vr_sim *sim = vr_libcuda_sim();
    return sim != NULL && device >= 0 && (uint32_t)device < sim->options.device_count;
}

// Returns the error of a call that takes a device, or SUCCESS.
static vr_cu_result device_error(int device) {
    struct vr_sim *sim;
    const vr_cu_result entered = vr_libcuda_enter(&sim);
    if (entered != VR_CU_SUCCESS) return entered;
    return is_device(device) ? VR_CU_SUCCESS : VR_CU_INVALID_DEVICE;
}

// --- devices --------------------------------------------------------------------------------------------------------

vr_cu_result cuDeviceGet(int *device, int ordinal) {
    vr_cu_result result = device_error(ordinal);
    if (result != VR_CU_SUCCESS || device == NULL) return result == VR_CU_SUCCESS ? VR_CU_INVALID_VALUE : result;
    *device = ordinal;
    return VR_CU_SUCCESS;
}

vr_cu_result cuDeviceGetUuid(unsigned char *uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }

vr_cu_result cuDeviceComputeCapability(int *major, int *minor, int device) {
    vr_cu_result result = cuDeviceGetAttribute(major, VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    return result == VR_CU_SUCCESS ? cuDeviceGetAttribute(minor, VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) : result;
}

// --- contexts -------------------------------------------------------------------------------------------------------

vr_cu_result cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    vr_cu_result result = device_error(device);
    if (result != VR_CU_SUCCESS || flags == NULL || active == NULL) return result == VR_CU_SUCCESS ? VR_CU_INVALID_VALUE : result;
    struct vr_sim *sim = vr_libcuda_sim();
    vr_mutex_lock(&sim->lock);
    *flags = sim->devices[device].primary_flags;
    const struct vr_sim_context *primary = vr_sim_context_find(sim, sim->devices[device].primary);
    *active = primary != NULL && !primary->inactive;
    vr_mutex_unlock(&sim->lock);
    return VR_CU_SUCCESS;
}

// Destroys everything in the primary context. Holders must still release it.
vr_cu_result cuDevicePrimaryCtxReset_v2(int device) {
    vr_cu_result result = device_error(device);
    if (result != VR_CU_SUCCESS) return result;
    struct vr_sim *sim = vr_libcuda_sim();
    vr_mutex_lock(&sim->lock);
    vr_sim_primary_reset(sim, (uint32_t)device);
    vr_mutex_unlock(&sim->lock);
    if (vr_libcuda_logs()) vr_libcuda_log("cuDevicePrimaryCtxReset_v2", VR_CU_SUCCESS, device);
    return VR_CU_SUCCESS;
}

vr_cu_result cuCtxCreate_v2(uint64_t *context, unsigned flags, int device) {
    vr_cu_result result = device_error(device);
    if (result == VR_CU_SUCCESS) result = vr_sim_context_flags_check(flags);
    if (result != VR_CU_SUCCESS || context == NULL) return result == VR_CU_SUCCESS ? VR_CU_INVALID_VALUE : result;
    struct vr_sim *sim = vr_libcuda_sim();
    vr_mutex_lock(&sim->lock);
    uint64_t made;
    result = vr_sim_context_create(sim, (uint32_t)device, false, &made);
    if (result == VR_CU_SUCCESS) {
        result = vr_sim_ctx_push(sim, made);
        if (result == VR_CU_SUCCESS) {
            vr_sim_context_find(sim, made)->settings.flags = flags;
            *context = made;
        } else
            vr_sim_context_destroy(sim, made);
    }
    vr_mutex_unlock(&sim->lock);
    return result;
}

vr_cu_result cuCtxPushCurrent_v2(uint64_t context) {
    struct vr_sim *sim;
    const vr_cu_result entered = vr_libcuda_enter(&sim);
    if (entered != VR_CU_SUCCESS) return entered;
    vr_mutex_lock(&sim->lock);
    vr_cu_result result = vr_sim_ctx_push(sim, context);
    vr_mutex_unlock(&sim->lock);
    return result;
}

static vr_cu_result pop_locked(struct vr_sim *sim, uint64_t *context) {
    struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    if (thread == NULL) return VR_CU_OUT_OF_MEMORY;
    if (thread->context_count == 0) return VR_CU_INVALID_CONTEXT;
    vr_sim_ctx_drop(sim);
    if (context != NULL) *context = thread->contexts[thread->context_count];
    return VR_CU_SUCCESS;
}

vr_cu_result cuCtxPopCurrent_v2(uint64_t *context) {
    struct vr_sim *sim;
    const vr_cu_result entered = vr_libcuda_enter(&sim);
    if (entered != VR_CU_SUCCESS) return entered;
    vr_mutex_lock(&sim->lock);
    vr_cu_result result = pop_locked(sim, context);
    vr_mutex_unlock(&sim->lock);
    return result;
}

// Destroys a created context and pops it if it is current in the calling thread. A primary context is INVALID_CONTEXT.
vr_cu_result cuCtxDestroy_v2(uint64_t context) {
    struct vr_sim *sim;
    const vr_cu_result entered = vr_libcuda_enter(&sim);
    if (entered != VR_CU_SUCCESS) return entered;
    vr_mutex_lock(&sim->lock);
    const struct vr_sim_context *found = vr_sim_context_find(sim, context);
    vr_cu_result result = found == NULL || found->primary ? VR_CU_INVALID_CONTEXT : VR_CU_SUCCESS;
    if (result == VR_CU_SUCCESS) {
        uint64_t current;
        vr_sim_context_destroy(sim, context);
        if (vr_sim_ctx_get_current(sim, &current) == VR_CU_SUCCESS && current == context) (void)pop_locked(sim, NULL);
    }
    vr_mutex_unlock(&sim->lock);
    if (vr_libcuda_logs()) vr_libcuda_log("cuCtxDestroy_v2", result, context);
    return result;
}

// Counts users of a created context, which is destroyed by the last detach.
vr_cu_result cuCtxAttach(uint64_t *context, unsigned flags) {
    struct vr_sim *sim;
    const vr_cu_result entered = vr_libcuda_enter(&sim);
    if (entered != VR_CU_SUCCESS) return entered;
    if (context == NULL || flags != 0) return VR_CU_INVALID_VALUE;
    uint64_t current = 0;
    vr_mutex_lock(&sim->lock);
    const vr_cu_result result = vr_sim_ctx_get_current(sim, &current);
    struct vr_sim_context *found = result == VR_CU_SUCCESS ? vr_sim_context_find(sim, current) : NULL;
    const bool counts = found != NULL && !found->primary;
    if (counts) {
        found->settings.attached++;
        *context = current;
    }
    vr_mutex_unlock(&sim->lock);
    return counts ? VR_CU_SUCCESS : VR_CU_INVALID_CONTEXT;
}

vr_cu_result cuCtxDetach(uint64_t context) {
    struct vr_sim *sim;
    const vr_cu_result entered = vr_libcuda_enter(&sim);
    if (entered != VR_CU_SUCCESS) return entered;
    uint64_t current = 0;
    vr_mutex_lock(&sim->lock);
    (void)vr_sim_ctx_get_current(sim, &current);
    struct vr_sim_context *found = context == current ? vr_sim_context_find(sim, context) : NULL;
    const bool stays = found != NULL && found->settings.attached > 0;
    if (stays) found->settings.attached--;
    vr_mutex_unlock(&sim->lock);
    if (found == NULL) return VR_CU_INVALID_CONTEXT;
    return stays ? VR_CU_SUCCESS : cuCtxDestroy_v2(context);
}

vr_cu_result cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    uint64_t context;
    vr_cu_result result = cuCtxGetCurrent(&context);
    if (result != VR_CU_SUCCESS) return result;
    if (context == 0) return VR_CU_INVALID_CONTEXT;
    if (least != NULL) *least = 0;
    if (greatest != NULL) *greatest = VR_SIM_GREATEST_PRIORITY;
    return VR_CU_SUCCESS;
}

// --- memory ---------------------------------------------------------------------------------------------------------

vr_cu_result cuMemAllocPitch_v2(uint64_t *address, uint64_t *pitch, uint64_t width, uint64_t height, unsigned element) {
    if (vr_libcuda_sim() == NULL) return VR_CU_NOT_INITIALIZED;
    if (pitch == NULL || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16)) return VR_CU_INVALID_VALUE;
    uint64_t size;
    if (width > UINT64_MAX - PITCH || !vr_mul_u64(vr_round_up(width, PITCH), height, &size)) return VR_CU_OUT_OF_MEMORY;
    vr_cu_result result = cuMemAlloc_v2(address, size);
    if (result == VR_CU_SUCCESS) *pitch = vr_round_up(width, PITCH);
    return result;
}

// Returns the error of a pool call, or SUCCESS. Only pools of device memory exist; those of host and managed memory are not simulated.
static vr_cu_result pool_error(const struct vr_cu_location *location, int type, const void *caller) {
    if (vr_libcuda_sim() == NULL) return VR_CU_NOT_INITIALIZED;
    if (location == NULL) return VR_CU_INVALID_VALUE;
    if (location->type == VR_CU_MEM_LOCATION_TYPE_DEVICE && type == VR_CU_MEM_ALLOCATION_TYPE_PINNED) return VR_CU_SUCCESS;
    vr_missing_count("libcuda", "a memory pool that is not a device's", caller);
    return VR_CU_NOT_SUPPORTED;
}

vr_cu_result cuMemGetDefaultMemPool(uint64_t *pool, const struct vr_cu_location *location, int type) {
    const vr_cu_result result = pool_error(location, type, __builtin_return_address(0));
    return result == VR_CU_SUCCESS ? cuDeviceGetDefaultMemPool(pool, location->id) : result;
}

vr_cu_result cuMemGetMemPool(uint64_t *pool, const struct vr_cu_location *location, int type) {
    const vr_cu_result result = pool_error(location, type, __builtin_return_address(0));
    return result == VR_CU_SUCCESS ? cuDeviceGetMemPool(pool, location->id) : result;
}

vr_cu_result cuMemSetMemPool(const struct vr_cu_location *location, int type, uint64_t pool) {
    const vr_cu_result result = pool_error(location, type, __builtin_return_address(0));
    return result == VR_CU_SUCCESS ? cuDeviceSetMemPool(location->id, pool) : result;
}

vr_cu_result cuMemAllocHost_v2(uint64_t *host, uint64_t size_bytes) { return cuMemHostAlloc(host, size_bytes, 0); }

vr_cu_result cuMemHostGetDevicePointer_v2(uint64_t *address, uint64_t host, unsigned flags) {
    struct vr_sim *sim;
    const vr_cu_result entered = vr_libcuda_enter(&sim);
    if (entered != VR_CU_SUCCESS) return entered;
    if (address == NULL || flags != 0) return VR_CU_INVALID_VALUE;
    vr_mutex_lock(&sim->lock);
    bool known = vr_sim_ranges_holding(&sim->hosts, host) != NULL;
    vr_mutex_unlock(&sim->lock);
    if (known) *address = host; // unified addressing
    return known ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

// ---- Functions of companions.def about captures and graphs: older ABI versions, and versions with edge data. This driver only has plain
// edges, which order whole nodes and whose data is all zero.

static bool are_plain(const struct vr_cu_edge_data *edge_data, uint64_t count) {
    static const struct vr_cu_edge_data plain;
    for (uint64_t i = 0; edge_data != NULL && i < count; i++)
        if (memcmp(&edge_data[i], &plain, sizeof plain) != 0) return false;
    return true;
}

// Fills in the edge data of a query's result.
static vr_cu_result give_plain(vr_cu_result result, struct vr_cu_edge_data *edge_data, const uint64_t *count) {
    if (result == VR_CU_SUCCESS && edge_data != NULL) memset(edge_data, 0, (size_t)*count * sizeof *edge_data);
    return result;
}

vr_cu_result cuStreamGetCaptureInfo(uint64_t stream, int *status, uint64_t *id) {
    return cuStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}

vr_cu_result cuStreamGetCaptureInfo_v3(uint64_t stream, int *status, uint64_t *id, uint64_t *graph, const uint64_t **dependencies,
                                       const struct vr_cu_edge_data **edge_data, uint64_t *count) {
    if (edge_data == NULL) return cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
    struct vr_sim *sim;
    const vr_cu_result entered = vr_libcuda_enter(&sim);
    if (entered != VR_CU_SUCCESS) return entered;
    if (dependencies == NULL) return VR_CU_INVALID_VALUE;
    vr_mutex_lock(&sim->lock);
    vr_cu_result result = vr_sim_stream_get_capture_info(sim, stream, status, id, graph, dependencies, count);
    struct vr_sim_stream *found;
    if (result == VR_CU_SUCCESS && vr_sim_stream_find(sim, stream, &found) == VR_CU_SUCCESS && found->capture != 0) {
        *edge_data = vr_sim_capture_edges(found);
        if (*edge_data == NULL) result = VR_CU_OUT_OF_MEMORY;
    }
    vr_mutex_unlock(&sim->lock);
    return result;
}

vr_cu_result cuStreamUpdateCaptureDependencies_v2(uint64_t stream, const uint64_t *nodes, const struct vr_cu_edge_data *edge_data,
                                                  uint64_t count, unsigned flags) {
    if (!are_plain(edge_data, count)) return VR_CU_INVALID_VALUE;
    return cuStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}

vr_cu_result cuGraphGetEdges_v2(uint64_t graph, uint64_t *from, uint64_t *to, struct vr_cu_edge_data *edge_data, uint64_t *count) {
    if (edge_data != NULL && from == NULL) return VR_CU_INVALID_VALUE;
    return give_plain(cuGraphGetEdges(graph, from, to, count), edge_data, count);
}

vr_cu_result cuGraphNodeGetDependencies_v2(uint64_t node, uint64_t *dependencies, struct vr_cu_edge_data *edge_data, uint64_t *count) {
    if (edge_data != NULL && dependencies == NULL) return VR_CU_INVALID_VALUE;
    return give_plain(cuGraphNodeGetDependencies(node, dependencies, count), edge_data, count);
}

vr_cu_result cuGraphNodeGetDependentNodes_v2(uint64_t node, uint64_t *dependents, struct vr_cu_edge_data *edge_data, uint64_t *count) {
    if (edge_data != NULL && dependents == NULL) return VR_CU_INVALID_VALUE;
    return give_plain(cuGraphNodeGetDependentNodes(node, dependents, count), edge_data, count);
}

vr_cu_result cuGraphAddDependencies_v2(uint64_t graph, const uint64_t *from, const uint64_t *to, const struct vr_cu_edge_data *edge_data,
                                       uint64_t count) {
    return are_plain(edge_data, count) ? cuGraphAddDependencies(graph, from, to, count) : VR_CU_INVALID_VALUE;
}

vr_cu_result cuGraphRemoveDependencies_v2(uint64_t graph, const uint64_t *from, const uint64_t *to, const struct vr_cu_edge_data *edge_data,
                                          uint64_t count) {
    return are_plain(edge_data, count) ? cuGraphRemoveDependencies(graph, from, to, count) : VR_CU_INVALID_VALUE;
}
