// sim_context_settings.c: what a program sets of a context and reads back: flags, limits, preferences. Nothing is done with it.
#include "sim/sim.h"

enum { SCHEDULE_MASK = 7, CREATE_FLAGS = 0xff };

// What cuCtxGetLimit tells of a new context: stack of a thread, buffer of printf, heap of malloc, depth and pending launches of dynamic
// parallelism, bytes that a fetch into the L2 cache takes, persisting L2 cache. CUDA's guides say so of all but the fetch, which is the
// documented maximum.
static const uint64_t first_limits[VR_SIM_LIMITS] = {1024, 1 * VR_MIB, 8 * VR_MIB, 2, 2048, 128, 0};
enum { LIMIT_SYNC_DEPTH = 3, LIMIT_FETCH = 5, LIMIT_PERSISTING = 6 };

struct vr_sim_context_settings vr_sim_context_defaults(struct vr_sim *sim, uint32_t flags) {
    struct vr_sim_context_settings settings = {.flags = flags, .id = ++sim->last_context_id};
    memcpy(settings.limits, first_limits, sizeof settings.limits);
    return settings;
}

// One way to wait at most.
vr_cu_result vr_sim_context_flags_check(uint32_t flags) {
    const uint32_t schedule = flags & SCHEDULE_MASK;
    return (flags & ~(uint32_t)CREATE_FLAGS) == 0 && (schedule & (schedule - 1)) == 0 ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

// --- flags ----------------------------------------------------------------------------------------------------------------

vr_cu_result vr_sim_primary_ctx_set_flags(struct vr_sim *sim, int device, unsigned flags) {
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    const vr_cu_result result = vr_sim_context_flags_check(flags);
    if (result != VR_CU_SUCCESS) return result;
    sim->devices[device].primary_flags = flags;
    struct vr_sim_context *primary = vr_sim_context_find(sim, sim->devices[device].primary);
    if (primary != NULL) primary->settings.flags = flags;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_get_flags(struct vr_sim *sim, unsigned *flags) {
    if (flags == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    const vr_cu_result result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) *flags = context->settings.flags;
    return result;
}

vr_cu_result vr_sim_ctx_set_flags(struct vr_sim *sim, unsigned flags) {
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_context_flags_check(flags);
    if (result == VR_CU_SUCCESS) result = vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) context->settings.flags = flags;
    return result;
}

// --- identity -------------------------------------------------------------------------------------------------------------

// The context that is meant: none is the current one.
static vr_cu_result find_context(struct vr_sim *sim, uint64_t handle, struct vr_sim_context **context) {
    if (handle == 0) return vr_sim_current(sim, context);
    struct vr_sim_context *found = vr_sim_context_find(sim, handle);
    if (found == NULL) return VR_CU_INVALID_CONTEXT;
    if (found->inactive) return VR_CU_CONTEXT_IS_DESTROYED;
    *context = found;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_get_id(struct vr_sim *sim, uint64_t context, uint64_t *id) {
    if (id == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *found;
    const vr_cu_result result = find_context(sim, context, &found);
    if (result == VR_CU_SUCCESS) *id = found->settings.id;
    return result;
}

// Every context is of the binary interface of CUDA 3.2.
vr_cu_result vr_sim_ctx_get_api_version(struct vr_sim *sim, uint64_t context, unsigned *version) {
    if (version == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *found;
    const vr_cu_result result = find_context(sim, context, &found);
    if (result == VR_CU_SUCCESS) *version = 3020;
    return result;
}

vr_cu_result vr_sim_ctx_get_device_of(struct vr_sim *sim, int *device, uint64_t context) {
    if (device == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *found;
    const vr_cu_result result = find_context(sim, context, &found);
    if (result == VR_CU_SUCCESS) *device = (int)found->device;
    return result;
}

// --- limits and preferences -------------------------------------------------------------------------------------------------

// How deep a kernel may wait for kernels that it launched: devices of compute capability 9.0 let none wait.
static bool has_limit(const struct vr_sim *sim, const struct vr_sim_context *context, int limit) {
    return limit != LIMIT_SYNC_DEPTH || sim->devices[context->device].card->major < 9;
}

vr_cu_result vr_sim_ctx_get_limit(struct vr_sim *sim, uint64_t *value, int limit) {
    struct vr_sim_context *context;
    if (value == NULL || limit < 0) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    if (limit >= VR_SIM_LIMITS || !has_limit(sim, context, limit)) return VR_CU_UNSUPPORTED_LIMIT;
    *value = context->settings.limits[limit];
    return VR_CU_SUCCESS;
}

// The driver takes what it can have: a stack in steps of 16 bytes, a fetch of at most 128 bytes, as much persisting cache as there is.
vr_cu_result vr_sim_ctx_set_limit(struct vr_sim *sim, int limit, uint64_t value) {
    struct vr_sim_context *context;
    if (limit < 0) return VR_CU_INVALID_VALUE;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    if (limit >= VR_SIM_LIMITS || !has_limit(sim, context, limit)) return VR_CU_UNSUPPORTED_LIMIT;
    int most = 0;
    if (limit == LIMIT_PERSISTING) {
        result = vr_sim_device_get_attribute(sim, &most, VR_CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, (int)context->device);
        if (result != VR_CU_SUCCESS || most == 0) return VR_CU_UNSUPPORTED_LIMIT;
        if (value > (uint64_t)most) value = (uint64_t)most;
    }
    if (limit == LIMIT_FETCH && value > 128) value = 128;
    context->settings.limits[limit] = value;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_ctx_reset_persisting_l2_cache(struct vr_sim *sim, int unused) {
    (void)unused;
    struct vr_sim_context *context;
    return vr_sim_current(sim, &context);
}

enum { CACHE_CONFIGS = 4, SHARED_CONFIGS = 3 }; // values of CUfunc_cache and CUsharedconfig

vr_cu_result vr_sim_ctx_get_cache_config(struct vr_sim *sim, int *config) {
    struct vr_sim_context *context;
    const vr_cu_result result = config == NULL ? VR_CU_INVALID_VALUE : vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) *config = context->settings.cache_config;
    return result;
}

vr_cu_result vr_sim_ctx_set_cache_config(struct vr_sim *sim, int config) {
    struct vr_sim_context *context;
    const vr_cu_result result = config < 0 || config >= CACHE_CONFIGS ? VR_CU_INVALID_VALUE : vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) context->settings.cache_config = config;
    return result;
}

// Banks of 4 bytes: the default of every device that has a choice, and all that newer ones have.
vr_cu_result vr_sim_ctx_get_shared_mem_config(struct vr_sim *sim, int *config) {
    struct vr_sim_context *context;
    const vr_cu_result result = config == NULL ? VR_CU_INVALID_VALUE : vr_sim_current(sim, &context);
    if (result == VR_CU_SUCCESS) *config = 1;
    return result;
}

vr_cu_result vr_sim_ctx_set_shared_mem_config(struct vr_sim *sim, int config) {
    struct vr_sim_context *context;
    return config < 0 || config >= SHARED_CONFIGS ? VR_CU_INVALID_VALUE : vr_sim_current(sim, &context);
}
