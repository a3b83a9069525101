// sim_function.c: attributes, settings and names of functions and kernels.
#include "sim/modules/sim_modules.h"

enum attribute { // CUfunction_attribute
    MOST_THREADS,
    SHARED_BYTES,
    CONSTANT_BYTES,
    LOCAL_BYTES,
    REGISTERS,
    PTX_VERSION,
    BINARY_VERSION,
    CACHE_MODE_CA,
    DYNAMIC_SHARED_BYTES,
    CARVEOUT,
    CLUSTER_MUST_BE_SET,
    CLUSTER_WIDTH,
    CLUSTER_HEIGHT,
    CLUSTER_DEPTH,
    WIDE_CLUSTERS,
    CLUSTER_SCHEDULING,
    ATTRIBUTE_COUNT
};

// --- attributes -----------------------------------------------------------------------------------------------------

static int attribute_value(const struct vr_sim_function *function, const struct vr_sim_function_settings *settings,
                           enum attribute attribute) {
    const struct vr_sim_kernel *kernel = vr_sim_function_kernel(function);
    switch (attribute) {
    case MOST_THREADS: return (int)vr_sim_function_most_threads(function);
    case SHARED_BYTES: return (int)kernel->shared_bytes;
    case CONSTANT_BYTES: return (int)function->image->constant_bytes;
    case LOCAL_BYTES: return (int)kernel->local_bytes;
    case REGISTERS: return (int)kernel->registers;
    case PTX_VERSION: return (int)function->image->ptx_version;
    case BINARY_VERSION: return (int)function->image->binary_version;
    case DYNAMIC_SHARED_BYTES: return settings->dynamic_shared_bytes;
    case CARVEOUT: return settings->carveout;
    case CLUSTER_WIDTH:
    case CLUSTER_HEIGHT:
    case CLUSTER_DEPTH: return settings->cluster[attribute - CLUSTER_WIDTH];
    case WIDE_CLUSTERS: return settings->wide_clusters;
    case CLUSTER_SCHEDULING: return settings->scheduling;
    default: return 0;
    }
}

vr_cu_result vr_sim_func_get_attribute(struct vr_sim *sim, int *value, int attribute, uint64_t function) {
    struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (value == NULL || attribute < 0 || attribute >= ATTRIBUTE_COUNT) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    *value = attribute_value(found, vr_sim_function_settings_of(sim, found), (enum attribute)attribute);
    return VR_CU_SUCCESS;
}

static vr_cu_result set_value(struct vr_sim *sim, uint32_t device, struct vr_sim_function *function, enum attribute attribute, int value) {
    struct vr_sim_function_settings *settings = vr_sim_function_settings_of(sim, function);
    const int most = vr_sim_device_value(sim, device, VR_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, VR_SIM_USUAL_SHARED_BYTES);
    switch (attribute) {
    case DYNAMIC_SHARED_BYTES:
        if (value < 0 || value > most - (int)vr_sim_function_kernel(function)->shared_bytes) return VR_CU_INVALID_VALUE;
        settings->dynamic_shared_bytes = value;
        return VR_CU_SUCCESS;
    case CARVEOUT:
        if (value < -1 || value > 100) return VR_CU_INVALID_VALUE;
        settings->carveout = value;
        return VR_CU_SUCCESS;
    case CLUSTER_WIDTH:
    case CLUSTER_HEIGHT:
    case CLUSTER_DEPTH:
        if (value < 0) return VR_CU_INVALID_VALUE;
        settings->cluster[attribute - CLUSTER_WIDTH] = value;
        return VR_CU_SUCCESS;
    case WIDE_CLUSTERS: settings->wide_clusters = value != 0; return VR_CU_SUCCESS;
    case CLUSTER_SCHEDULING: settings->scheduling = value; return VR_CU_SUCCESS;
    default: return VR_CU_INVALID_VALUE; // the others are set by the compiler
    }
}

// Returns the device of the function's module, or of the current context.
static uint32_t device_of_function(struct vr_sim *sim, const struct vr_sim_function *function) {
    const struct vr_sim_module *module = vr_sim_slots_find(&sim->modules, function->module);
    struct vr_sim_context *context = module == NULL ? NULL : vr_sim_context_find(sim, module->context);
    if (context == NULL && vr_sim_current(sim, &context) != VR_CU_SUCCESS) return 0;
    return context->device;
}

vr_cu_result vr_sim_func_set_attribute(struct vr_sim *sim, uint64_t function, int attribute, int value) {
    struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (attribute < 0 || attribute >= ATTRIBUTE_COUNT) return VR_CU_INVALID_VALUE;
    return found == NULL ? VR_CU_INVALID_HANDLE : set_value(sim, device_of_function(sim, found), found, (enum attribute)attribute, value);
}

// Gets an attribute for a device, whose image may differ from the first one's.
vr_cu_result vr_sim_kernel_get_attribute(struct vr_sim *sim, int *value, int attribute, uint64_t kernel, int device) {
    struct vr_sim_function *found = vr_sim_function_find(sim, kernel);
    if (value == NULL || attribute < 0 || attribute >= ATTRIBUTE_COUNT) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    const struct vr_sim_library *library = vr_sim_slots_find(&sim->libraries, found->library);
    struct vr_sim_function there = *found;
    if (library != NULL) there.image = vr_sim_library_image(sim, library, (uint32_t)device);
    if (there.image == NULL) return VR_CU_NO_BINARY_FOR_GPU;
    const size_t index =
        there.image == found->image ? found->kernel : vr_sim_image_kernel(there.image, vr_sim_function_kernel(found)->name);
    if (index == SIZE_MAX) return VR_CU_NOT_FOUND;
    there.kernel = (uint32_t)index;
    *value = attribute_value(&there, vr_sim_function_settings_of(sim, found), (enum attribute)attribute);
    return VR_CU_SUCCESS;
}

// Sets an attribute, for all devices alike.
vr_cu_result vr_sim_kernel_set_attribute(struct vr_sim *sim, int attribute, int value, uint64_t kernel, int device) {
    struct vr_sim_function *found = vr_sim_function_find(sim, kernel);
    if (attribute < 0 || attribute >= ATTRIBUTE_COUNT) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    if (!vr_sim_is_device(sim, device)) return VR_CU_INVALID_DEVICE;
    return set_value(sim, (uint32_t)device, found, (enum attribute)attribute, value);
}

vr_cu_result vr_sim_func_set_cache_config(struct vr_sim *sim, uint64_t function, int config) {
    struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (config < 0 || config > 3) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    vr_sim_function_settings_of(sim, found)->cache = config;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_kernel_set_cache_config(struct vr_sim *sim, uint64_t kernel, int config, int device) {
    return vr_sim_is_device(sim, device) ? vr_sim_func_set_cache_config(sim, kernel, config) : VR_CU_INVALID_DEVICE;
}

// Has no effect: the width of shared memory banks has been fixed since 5.0.
vr_cu_result vr_sim_func_set_shared_mem_config(struct vr_sim *sim, uint64_t function, int config) {
    if (config < 0 || config > 2) return VR_CU_INVALID_VALUE;
    return vr_sim_function_find(sim, function) == NULL ? VR_CU_INVALID_HANDLE : VR_CU_SUCCESS;
}

// --- names and parameters -------------------------------------------------------------------------------------------

// The name is borrowed until the function's module is unloaded.
vr_cu_result vr_sim_func_get_name(struct vr_sim *sim, const char **name, uint64_t function) {
    const struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (name == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    *name = vr_sim_function_kernel(found)->name;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_kernel_get_name(struct vr_sim *sim, const char **name, uint64_t kernel) {
    return vr_sim_func_get_name(sim, name, kernel);
}

vr_cu_result vr_sim_func_get_module(struct vr_sim *sim, uint64_t *module, uint64_t function) {
    const struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (module == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL || found->module == 0) return VR_CU_INVALID_HANDLE;
    *module = found->module;
    return VR_CU_SUCCESS;
}

// INVALID_VALUE past the last parameter; NOT_SUPPORTED if the parameters are unknown.
vr_cu_result vr_sim_func_get_param_info(struct vr_sim *sim, uint64_t function, uint64_t index, uint64_t *offset, uint64_t *size) {
    const struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (offset == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    const struct vr_sim_kernel *kernel = vr_sim_function_kernel(found);
    if (!kernel->has_parameters) return VR_CU_NOT_SUPPORTED;
    if (index >= kernel->parameter_count) return VR_CU_INVALID_VALUE;
    *offset = kernel->parameters[index].offset_bytes;
    if (size != NULL) *size = kernel->parameters[index].size_bytes;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_kernel_get_param_info(struct vr_sim *sim, uint64_t kernel, uint64_t index, uint64_t *offset, uint64_t *size) {
    return vr_sim_func_get_param_info(sim, kernel, index, offset, size);
}

vr_cu_result vr_sim_func_get_param_count(struct vr_sim *sim, uint64_t function, uint64_t *count) {
    const struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (count == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    if (!vr_sim_function_kernel(found)->has_parameters) return VR_CU_NOT_SUPPORTED;
    *count = vr_sim_function_kernel(found)->parameter_count;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_kernel_get_param_count(struct vr_sim *sim, uint64_t kernel, uint64_t *count) {
    return vr_sim_func_get_param_count(sim, kernel, count);
}

vr_cu_result vr_sim_func_is_loaded(struct vr_sim *sim, int *state, uint64_t function) {
    const struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (state == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    *state = found->loaded;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_func_load(struct vr_sim *sim, uint64_t function) {
    struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    found->loaded = true;
    return VR_CU_SUCCESS;
}

// --- launch calls of CUDA 2 -----------------------------------------------------------------------------------------

vr_cu_result vr_sim_func_set_block_shape(struct vr_sim *sim, uint64_t function, int x, int y, int z) {
    struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (x <= 0 || y <= 0 || z <= 0) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    int32_t *block = vr_sim_function_settings_of(sim, found)->block;
    block[0] = x;
    block[1] = y;
    block[2] = z;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_func_set_shared_size(struct vr_sim *sim, uint64_t function, unsigned bytes) {
    struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    vr_sim_function_settings_of(sim, found)->old_shared_bytes = bytes;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_param_set_size(struct vr_sim *sim, uint64_t function, unsigned bytes) {
    struct vr_sim_function *found = vr_sim_function_find(sim, function);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    if (bytes > 4096) return VR_CU_INVALID_VALUE;
    vr_sim_function_settings_of(sim, found)->parameter_bytes = (int32_t)bytes;
    return VR_CU_SUCCESS;
}

// Checks a parameter's place; the value is not read.
static vr_cu_result set_parameter(struct vr_sim *sim, uint64_t function, int offset, uint64_t size_bytes) {
    if (vr_sim_function_find(sim, function) == NULL) return VR_CU_INVALID_HANDLE;
    return offset < 0 || offset > 4096 || size_bytes > 4096 - (uint64_t)offset ? VR_CU_INVALID_VALUE : VR_CU_SUCCESS;
}

vr_cu_result vr_sim_param_seti(struct vr_sim *sim, uint64_t function, int offset, unsigned value) {
    (void)value;
    return set_parameter(sim, function, offset, 4);
}

vr_cu_result vr_sim_param_setf(struct vr_sim *sim, uint64_t function, int offset, float value) {
    (void)value;
    return set_parameter(sim, function, offset, 4);
}

vr_cu_result vr_sim_param_setv(struct vr_sim *sim, uint64_t function, int offset, const void *bytes, unsigned size_bytes) {
    return bytes == NULL ? VR_CU_INVALID_VALUE : set_parameter(sim, function, offset, size_bytes);
}
