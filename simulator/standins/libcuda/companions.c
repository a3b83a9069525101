// companions.c: the functions of companions.def that stand on the table of calls.def.
#include "../common/missing.h"
#include "libcuda.h"
#include "sim/streams/sim_streams.h"

#define PITCH 512 // rows of cuMemAllocPitch start at multiples of this

static bool is_device(int device) {
    const struct vr_sim *sim = vr_libcuda_sim();
    return sim != NULL && device >= 0 && (uint32_t)device < sim->options.device_count;
}

// What a call that names a device says when it may not go on.
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

// Ends all that lives in the primary context; who retained it must still release it.
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

// The primary context is released, not destroyed. A context that is current in the calling thread is popped.
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

// Counts who uses a context that was created: it ends with the last.
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

// Pools by where their memory is and of what kind: those of devices are there. The host's and managed memory's are not.
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
    if (known) *address = host; // one address space
    return known ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}
