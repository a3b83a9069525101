// Kernels as objects, and occupancy.
#include "sim/modules/sim_modules.h"

// ---- Functions and kernels, and a device's limits for them.

int vr_sim_device_value(struct vr_sim *sim, uint32_t device, int attribute, int otherwise) {
    int value = 0;
    if (vr_sim_device_get_attribute(sim, &value, attribute, (int)device) != VR_CU_SUCCESS) return otherwise;
    return value == 0 ? otherwise : value;
}

uint32_t vr_sim_architecture(struct vr_sim *sim, uint32_t device) {
    int major = 0, minor = 0;
    (void)vr_sim_device_get_attribute(sim, &major, VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, (int)device);
    (void)vr_sim_device_get_attribute(sim, &minor, VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, (int)device);
    return (uint32_t)(major * 10 + minor);
}

vr_cu_result vr_sim_function_make(struct vr_sim *sim, const struct vr_sim_function *function, uint64_t *handle) {
    uint32_t index;
    if (vr_sim_slots_take(&sim->functions, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_function *made = (struct vr_sim_function *)(void *)vr_sim_slots_item(&sim->functions, index);
    const struct vr_sim_slot slot = made->slot;
    const int32_t static_bytes = (int32_t)vr_sim_function_kernel(function)->shared_bytes;
    *made = *function;
    made->slot = slot;
    made->settings.carveout = -1;
    made->settings.dynamic_shared_bytes = static_bytes < VR_SIM_USUAL_SHARED_BYTES ? VR_SIM_USUAL_SHARED_BYTES - static_bytes : 0;
    *handle = vr_sim_slots_handle(&sim->functions, index);
    return VR_CU_SUCCESS;
}

struct vr_sim_function_settings *vr_sim_function_settings_of(const struct vr_sim *sim, struct vr_sim_function *function) {
    if (function->base == 0) return &function->settings;
    return &((struct vr_sim_function *)(void *)vr_sim_slots_item(&sim->functions, function->base - 1))->settings;
}

// A warp takes registers in units of 256, and warps are allocated in fours (the four parts of a multiprocessor).
uint32_t vr_sim_function_most_threads(const struct vr_sim_function *function) {
    const struct vr_sim_kernel *kernel = vr_sim_function_kernel(function);
    const uint32_t of_warp = (uint32_t)vr_round_up((uint64_t)(kernel->registers == 0 ? 1 : kernel->registers) * 32, 256);
    const uint32_t by_registers = 65536 / of_warp / 4 * 4 * 32;
    const uint32_t bound = kernel->most_threads == 0 ? 1024 : kernel->most_threads;
    return by_registers < bound ? by_registers : bound;
}

// ---- Occupancy: the number of blocks of a kernel on a multiprocessor, limited by warps, registers, shared memory and blocks. Rounding
// follows the rules that NVIDIA publishes for its occupancy calculator.

enum { WARP = 32, REGISTER_UNIT = 256, SHARED_UNIT = 128, PARTS = 4 /* of a multiprocessor, each with its registers */ };

static uint64_t lesser_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t attribute_or(struct vr_sim *sim, uint32_t device, int attribute, int otherwise) {
    return (uint64_t)vr_sim_device_value(sim, device, attribute, otherwise);
}

static uint64_t shared_of_multiprocessor(struct vr_sim *sim, uint32_t device) {
    return attribute_or(sim, device, VR_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 167936);
}

static uint64_t shared_reserved(struct vr_sim *sim, uint32_t device) {
    return attribute_or(sim, device, VR_CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024);
}

static uint64_t multiprocessors(struct vr_sim *sim, uint32_t device) {
    return attribute_or(sim, device, VR_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
}

int vr_sim_active_blocks(struct vr_sim *sim, uint32_t device, struct vr_sim_function *function, uint64_t threads, uint64_t dynamic_bytes) {
    const struct vr_sim_kernel *kernel = vr_sim_function_kernel(function);
    const struct vr_sim_function_settings *settings = vr_sim_function_settings_of(sim, function);
    if (threads == 0 || threads > vr_sim_function_most_threads(function) || dynamic_bytes > (uint64_t)settings->dynamic_shared_bytes)
        return 0;
    const uint64_t warps = (threads + WARP - 1) / WARP;
    const uint64_t all_warps = attribute_or(sim, device, VR_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048) / WARP;
    const uint64_t registers = attribute_or(sim, device, VR_CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536);
    const uint64_t of_warp = vr_round_up((uint64_t)(kernel->registers == 0 ? 1 : kernel->registers) * WARP, REGISTER_UNIT);
    const uint64_t shared = vr_round_up(kernel->shared_bytes + dynamic_bytes + shared_reserved(sim, device), SHARED_UNIT);
    uint64_t blocks = all_warps / warps;
    blocks = lesser_of(blocks, registers / PARTS / of_warp * PARTS / warps);
    if (shared > 0) blocks = lesser_of(blocks, shared_of_multiprocessor(sim, device) / shared);
    return (int)lesser_of(blocks, attribute_or(sim, device, VR_CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32));
}

// Finds the function, and the device of the current context.
static vr_cu_result find_function(struct vr_sim *sim, uint64_t handle, struct vr_sim_function **function, uint32_t *device) {
    struct vr_sim_context *context;
    const vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    *device = context->device;
    *function = vr_sim_function_find(sim, handle);
    return *function == NULL ? VR_CU_INVALID_HANDLE : VR_CU_SUCCESS;
}

vr_cu_result vr_sim_occupancy_max_active_blocks(struct vr_sim *sim, int *blocks, uint64_t function, int threads, uint64_t dynamic_bytes) {
    return vr_sim_occupancy_max_active_blocks_with_flags(sim, blocks, function, threads, dynamic_bytes, 0);
}

vr_cu_result vr_sim_occupancy_max_active_blocks_with_flags(struct vr_sim *sim, int *blocks, uint64_t function, int threads,
                                                           uint64_t dynamic_bytes, unsigned flags) {
    struct vr_sim_function *found;
    uint32_t device;
    if (blocks == NULL || threads <= 0 || flags > 1) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = find_function(sim, function, &found, &device);
    if (result == VR_CU_SUCCESS) *blocks = vr_sim_active_blocks(sim, device, found, (uint64_t)threads, dynamic_bytes);
    return result;
}

// Calls the program's function without the lock, because it may call the driver.
static uint64_t dynamic_for(struct vr_sim *sim, vr_cu_block_to_shared *callback, int threads, uint64_t dynamic_bytes) {
    if (callback == NULL) return dynamic_bytes;
    vr_mutex_unlock(&sim->lock);
    const uint64_t bytes = callback(threads);
    vr_mutex_lock(&sim->lock);
    return bytes;
}

vr_cu_result vr_sim_occupancy_max_potential_block_size(struct vr_sim *sim, int *grid, int *block, uint64_t function,
                                                       vr_cu_block_to_shared *callback, uint64_t dynamic_bytes, int limit) {
    return vr_sim_occupancy_max_potential_block_size_with_flags(sim, grid, block, function, callback, dynamic_bytes, limit, 0);
}

// Finds the largest block size with the maximum number of threads on a multiprocessor.
vr_cu_result vr_sim_occupancy_max_potential_block_size_with_flags(struct vr_sim *sim, int *grid, int *block, uint64_t function,
                                                                  vr_cu_block_to_shared *callback, uint64_t dynamic_bytes, int limit,
                                                                  unsigned flags) {
    struct vr_sim_function *found;
    uint32_t device;
    if (grid == NULL || block == NULL || limit < 0 || flags > 1) return VR_CU_INVALID_VALUE;
    vr_cu_result result = find_function(sim, function, &found, &device);
    if (result != VR_CU_SUCCESS) return result;
    uint64_t most = vr_sim_function_most_threads(found), best = 0;
    if (limit > 0) most = lesser_of(most, (uint64_t)limit);
    int best_block = 0, best_grid = 0;
    for (uint64_t at = vr_round_up(most, WARP); at > 0; at -= WARP) {
        const int threads = (int)lesser_of(at, most);
        const uint64_t dynamic = dynamic_for(sim, callback, threads, dynamic_bytes);
        result = find_function(sim, function, &found, &device);
        if (result != VR_CU_SUCCESS) return result;
        const int blocks = vr_sim_active_blocks(sim, device, found, (uint64_t)threads, dynamic);
        if ((uint64_t)blocks * (uint64_t)threads <= best) continue;
        best = (uint64_t)blocks * (uint64_t)threads;
        best_block = threads;
        best_grid = blocks * (int)multiprocessors(sim, device);
    }
    *grid = best_grid;
    *block = best_block;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_occupancy_available_dynamic_smem(struct vr_sim *sim, uint64_t *dynamic_bytes, uint64_t function, int blocks,
                                                     int threads) {
    struct vr_sim_function *found;
    uint32_t device;
    if (dynamic_bytes == NULL || blocks <= 0 || threads <= 0) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = find_function(sim, function, &found, &device);
    if (result != VR_CU_SUCCESS) return result;
    if (vr_sim_active_blocks(sim, device, found, (uint64_t)threads, 0) < blocks) return VR_CU_INVALID_VALUE;
    const uint64_t each = vr_round_down(shared_of_multiprocessor(sim, device) / (uint64_t)blocks, SHARED_UNIT);
    const uint64_t fixed = vr_sim_function_kernel(found)->shared_bytes + shared_reserved(sim, device);
    const uint64_t most = (uint64_t)vr_sim_function_settings_of(sim, found)->dynamic_shared_bytes;
    *dynamic_bytes = each > fixed ? lesser_of(each - fixed, most) : 0;
    return VR_CU_SUCCESS;
}

// --- clusters -------------------------------------------------------------------------------------------------------

static uint64_t most_in_cluster(struct vr_sim *sim, uint32_t device, struct vr_sim_function *function) {
    if (vr_sim_architecture(sim, device) < 90) return 1;
    return vr_sim_function_settings_of(sim, function)->wide_clusters ? 16 : 8;
}

vr_cu_result vr_sim_occupancy_max_potential_cluster_size(struct vr_sim *sim, int *size, uint64_t function,
                                                         const struct vr_cu_launch_config *config) {
    struct vr_sim_function *found;
    uint32_t device;
    if (size == NULL || config == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = find_function(sim, function, &found, &device);
    if (result == VR_CU_SUCCESS) *size = (int)most_in_cluster(sim, device, found);
    return result;
}

// Assumes that any multiprocessors can form a cluster, because their real grouping is not known.
vr_cu_result vr_sim_occupancy_max_active_clusters(struct vr_sim *sim, int *clusters, uint64_t function,
                                                  const struct vr_cu_launch_config *config) {
    struct vr_sim_function *found;
    uint32_t device;
    if (clusters == NULL || config == NULL || (config->attribute_count != 0 && config->attributes == NULL)) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = find_function(sim, function, &found, &device);
    if (result != VR_CU_SUCCESS) return result;
    uint64_t size = 1;
    for (uint32_t i = 0; i < config->attribute_count; i++) {
        const struct vr_cu_launch_attribute *attribute = &config->attributes[i];
        if (attribute->id != VR_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
        size = (uint64_t)attribute->value.cluster[0] * attribute->value.cluster[1];
        size = size > 1024 ? 0 : size * attribute->value.cluster[2];
    }
    if (size == 0 || size > most_in_cluster(sim, device, found)) return VR_CU_INVALID_CLUSTER_SIZE;
    const uint64_t threads = (uint64_t)config->block[0] * config->block[1] * config->block[2];
    const int blocks = vr_sim_active_blocks(sim, device, found, threads, config->shared_bytes);
    *clusters = (int)((uint64_t)blocks * multiprocessors(sim, device) / size);
    return VR_CU_SUCCESS;
}
