// sim_module.c: modules: code and variables in one context.
#include <stdlib.h>

#include "sim/memory/sim_inner.h"
#include "sim/modules/sim_modules.h"

static struct vr_sim_module *module_of(const struct vr_sim *sim, uint64_t module) { return vr_sim_slots_find(&sim->modules, module); }

// --- making and ending ----------------------------------------------------------------------------------------------

uint64_t vr_sim_variable_offset(const struct vr_sim_image *image, size_t variable) {
    uint64_t offset = 0;
    for (size_t i = 0; i < variable; i++) offset += vr_round_up(image->variables[i].size_bytes, VR_SIM_VARIABLE_ALIGNMENT);
    return offset;
}

// A file can claim variables of any size.
static bool image_fits(const struct vr_sim_image *image) {
    uint64_t sum = 0;
    for (size_t i = 0; i < image->variable_count; i++)
        if (image->variables[i].size_bytes > VR_SIM_LIMIT ||
            !vr_add_u64(sum, image->variables[i].size_bytes + VR_SIM_VARIABLE_ALIGNMENT, &sum))
            return false;
    return sum < VR_SIM_LIMIT;
}

vr_cu_result vr_sim_module_make(struct vr_sim *sim, uint64_t context, struct vr_sim_image *image, uint64_t library, uint64_t *module) {
    if (!image_fits(image)) return VR_CU_OUT_OF_MEMORY;
    const uint64_t size = vr_sim_variable_offset(image, image->variable_count);
    uint32_t index;
    if (vr_sim_slots_take(&sim->modules, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    uint64_t variables = 0;
    const vr_cu_result result = size == 0 ? VR_CU_SUCCESS : vr_sim_inner_alloc(sim, context, size, &variables);
    if (result != VR_CU_SUCCESS) {
        vr_sim_slots_give(&sim->modules, index);
        return result;
    }
    struct vr_sim_module *made = (struct vr_sim_module *)(void *)vr_sim_slots_item(&sim->modules, index);
    made->context = context;
    made->library = library;
    made->image = image;
    made->variables = variables;
    image->references++;
    *module = vr_sim_slots_handle(&sim->modules, index);
    return VR_CU_SUCCESS;
}

void vr_sim_end_module(struct vr_sim *sim, struct vr_sim_module *module) {
    for (size_t i = 0; i < module->function_count; i++)
        if (module->functions[i] != 0) vr_sim_slots_give(&sim->functions, module->functions[i] - 1);
    free(module->functions);
    if (module->variables != 0) vr_sim_inner_free(sim, module->variables);
    vr_sim_image_release(module->image);
    vr_sim_slots_give(&sim->modules, vr_sim_slots_index(&sim->modules, module));
}

void vr_sim_end_modules(struct vr_sim *sim, uint64_t context) {
    for (uint32_t i = 0; i < sim->modules.used; i++) {
        struct vr_sim_module *module = (struct vr_sim_module *)(void *)vr_sim_slots_item(&sim->modules, i);
        if (module->slot.live && (context == 0 || module->context == context)) vr_sim_end_module(sim, module);
    }
}

// --- loading --------------------------------------------------------------------------------------------------------

static vr_cu_result load_module(struct vr_sim *sim, uint64_t *module, const void *bytes, size_t size_bytes) {
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    const uint64_t handle = vr_sim_context_handle(sim, context);
    struct vr_sim_image *image;
    result = vr_sim_image_read(bytes, size_bytes, vr_sim_architecture(sim, context->device), sim->unpack_zstd, &image);
    if (result != VR_CU_SUCCESS) return result;
    result = vr_sim_module_make(sim, handle, image, 0, module);
    vr_sim_image_release(image);
    return result;
}

vr_cu_result vr_sim_module_load_data(struct vr_sim *sim, uint64_t *module, const void *code) {
    size_t size;
    if (module == NULL || code == NULL) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_image_extent(&code, &size);
    return result == VR_CU_SUCCESS ? load_module(sim, module, code, size) : result;
}

vr_cu_result vr_sim_module_load_fat_binary(struct vr_sim *sim, uint64_t *module, const void *code) {
    return vr_sim_module_load_data(sim, module, code);
}

// What the compiler is told changes nothing here.
vr_cu_result vr_sim_module_load_data_ex(struct vr_sim *sim, uint64_t *module, const void *code, unsigned count, const int *options,
                                        void **values) {
    if (count != 0 && (options == NULL || values == NULL)) return VR_CU_INVALID_VALUE;
    return vr_sim_module_load_data(sim, module, code);
}

vr_cu_result vr_sim_module_load(struct vr_sim *sim, uint64_t *module, const char *path) {
    struct vr_os_view view;
    if (module == NULL || path == NULL) return VR_CU_INVALID_VALUE;
    if (vr_os_view_open(path, &view) != VRAM_OK) return VR_CU_FILE_NOT_FOUND;
    const vr_cu_result result = load_module(sim, module, view.bytes, (size_t)view.size_bytes);
    vr_os_view_close(&view);
    return result;
}

vr_cu_result vr_sim_module_unload(struct vr_sim *sim, uint64_t module) {
    struct vr_sim_module *found = module_of(sim, module);
    if (found == NULL || found->library != 0) return VR_CU_INVALID_HANDLE;
    vr_sim_end_module(sim, found);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_module_get_loading_mode(struct vr_sim *sim, int *mode) {
    (void)sim;
    if (mode == NULL) return VR_CU_INVALID_VALUE;
    *mode = VR_CU_MODULE_LAZY_LOADING; // since CUDA 12.2
    return VR_CU_SUCCESS;
}

// --- functions and variables ----------------------------------------------------------------------------------------

vr_cu_result vr_sim_module_function_at(struct vr_sim *sim, uint64_t module, size_t kernel, uint64_t *function) {
    struct vr_sim_module *found = module_of(sim, module);
    if (VR_GROW(found, functions, kernel + 1) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    while (found->function_count <= kernel) found->functions[found->function_count++] = 0;
    if (found->functions[kernel] == 0) {
        struct vr_sim_function fresh = {.module = module, .library = found->library, .image = found->image, .kernel = (uint32_t)kernel};
        uint64_t made;
        const vr_cu_result result = vr_sim_function_make(sim, &fresh, &made);
        if (result != VR_CU_SUCCESS) return result;
        found->functions[kernel] = vr_sim_slots_index(&sim->functions, vr_sim_function_find(sim, made)) + 1;
    }
    *function = vr_sim_slots_handle(&sim->functions, found->functions[kernel] - 1);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_module_get_function(struct vr_sim *sim, uint64_t *function, uint64_t module, const char *name) {
    const struct vr_sim_module *found = module_of(sim, module);
    if (function == NULL || name == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    const size_t kernel = vr_sim_image_kernel(found->image, name);
    return kernel == SIZE_MAX ? VR_CU_NOT_FOUND : vr_sim_module_function_at(sim, module, kernel, function);
}

vr_cu_result vr_sim_module_get_function_count(struct vr_sim *sim, unsigned *count, uint64_t module) {
    const struct vr_sim_module *found = module_of(sim, module);
    if (count == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    *count = (unsigned)found->image->kernel_count;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_module_enumerate_functions(struct vr_sim *sim, uint64_t *functions, unsigned count, uint64_t module) {
    const struct vr_sim_module *found = module_of(sim, module);
    if (functions == NULL || count == 0) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    for (size_t i = 0; i < count && i < module_of(sim, module)->image->kernel_count; i++) {
        const vr_cu_result result = vr_sim_module_function_at(sim, module, i, &functions[i]);
        if (result != VR_CU_SUCCESS) return result;
    }
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_module_variable(struct vr_sim *sim, uint64_t module, const char *name, uint64_t *address, uint64_t *size_bytes) {
    const struct vr_sim_module *found = module_of(sim, module);
    if (name == NULL || (address == NULL && size_bytes == NULL)) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    const size_t variable = vr_sim_image_variable(found->image, name);
    if (variable == SIZE_MAX) return VR_CU_NOT_FOUND;
    if (address != NULL) *address = found->variables + vr_sim_variable_offset(found->image, variable);
    if (size_bytes != NULL) *size_bytes = found->image->variables[variable].size_bytes;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_module_get_global(struct vr_sim *sim, uint64_t *address, uint64_t *size_bytes, uint64_t module, const char *name) {
    return vr_sim_module_variable(sim, module, name, address, size_bytes);
}
