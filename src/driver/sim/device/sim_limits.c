// sim_limits.c: limits of contexts: kept as a program sets them. Nothing computes, so none of them binds, and their memory is what the
// context takes anyway.
#include "driver/sim/sim.h"

enum limit { // CUlimit
    STACK_SIZE,
    PRINTF_FIFO_SIZE,
    MALLOC_HEAP_SIZE,
    SYNC_DEPTH,
    PENDING_LAUNCH_COUNT,
    L2_FETCH_GRANULARITY,
    PERSISTING_L2_SIZE,
};

// The values that a context starts with, from NVIDIA's documents.
static const uint64_t defaults[VR_SIM_LIMIT_COUNT] = {
    [STACK_SIZE] = 1024,           [PRINTF_FIFO_SIZE] = VR_MIB, [MALLOC_HEAP_SIZE] = 8 * VR_MIB, [SYNC_DEPTH] = 2,
    [PENDING_LAUNCH_COUNT] = 2048, [L2_FETCH_GRANULARITY] = 64, [PERSISTING_L2_SIZE] = 0,
};

static vr_cu_result context_with(struct vr_sim *sim, int limit, struct vr_sim_context **context) {
    int major = 0;
    if (limit < 0) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_current(sim, context);
    if (result != VR_CU_SUCCESS) return result;
    if (limit >= VR_SIM_LIMIT_COUNT) return VR_CU_UNSUPPORTED_LIMIT;
    (void)vr_sim_device_get_attribute(sim, &major, VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, (int)(*context)->device);
    return limit == SYNC_DEPTH && major >= 9 ? VR_CU_UNSUPPORTED_LIMIT : VR_CU_SUCCESS; // it went with CUDA's old dynamic parallelism
}

vr_cu_result vr_sim_ctx_get_limit(struct vr_sim *sim, uint64_t *value, int limit) {
    struct vr_sim_context *context;
    if (value == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = context_with(sim, limit, &context);
    if (result == VR_CU_SUCCESS) *value = context->limits_set >> limit & 1 ? context->limits[limit] : defaults[limit];
    return result;
}

vr_cu_result vr_sim_ctx_set_limit(struct vr_sim *sim, int limit, uint64_t value) {
    struct vr_sim_context *context;
    const vr_cu_result result = context_with(sim, limit, &context);
    if (result != VR_CU_SUCCESS) return result;
    if (limit == L2_FETCH_GRANULARITY && value > 128) return VR_CU_INVALID_VALUE;
    context->limits[limit] = value;
    context->limits_set |= 1u << limit;
    return VR_CU_SUCCESS;
}
