// sim_library.c: libraries: code that every context may use, and the kernels that they name.
#include <stdlib.h>

#include "sim/modules/sim_modules.h"

static struct vr_sim_library *library_of(const struct vr_sim *sim, uint64_t library) { return vr_sim_slots_find(&sim->libraries, library); }

static struct vr_sim_module *module_at(const struct vr_sim *sim, uint32_t index) {
    return (struct vr_sim_module *)(void *)vr_sim_slots_item(&sim->modules, index);
}

// --- loading --------------------------------------------------------------------------------------------------------

static bool has_image(const struct vr_sim_library *library, uint32_t architecture) {
    for (uint32_t i = 0; i < library->image_count; i++)
        if (library->images[i].architecture == architecture) return true;
    return false;
}

// What the devices take of it. SUCCESS when one of them takes something.
static vr_cu_result read_images(struct vr_sim *sim, struct vr_sim_library *library, const void *bytes, size_t size_bytes) {
    vr_cu_result refused = VR_CU_SUCCESS;
    for (uint32_t device = 0; device < sim->options.device_count; device++) {
        struct vr_sim_library_image *entry = &library->images[library->image_count];
        entry->architecture = vr_sim_architecture(sim, device);
        if (has_image(library, entry->architecture)) continue;
        const vr_cu_result result = vr_sim_image_read(bytes, size_bytes, entry->architecture, sim->unpack_zstd, &entry->image);
        if (result == VR_CU_SUCCESS)
            library->image_count++;
        else
            refused = result;
    }
    return library->image_count > 0 ? VR_CU_SUCCESS : refused;
}

static vr_cu_result load_library(struct vr_sim *sim, uint64_t *library, const void *bytes, size_t size_bytes) {
    uint32_t index;
    if (vr_sim_slots_take(&sim->libraries, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_library *made = (struct vr_sim_library *)(void *)vr_sim_slots_item(&sim->libraries, index);
    const vr_cu_result result = read_images(sim, made, bytes, size_bytes);
    if (result == VR_CU_SUCCESS)
        *library = vr_sim_slots_handle(&sim->libraries, index);
    else
        vr_sim_slots_give(&sim->libraries, index);
    return result;
}

// Options tell the compiler, or ask that the program's bytes be kept: nothing of them is kept here.
vr_cu_result vr_sim_library_load_data(struct vr_sim *sim, uint64_t *library, const void *code, const int *jit_options, void **jit_values,
                                      unsigned jit_count, const int *options, void **values, unsigned count) {
    size_t size;
    if (library == NULL || code == NULL) return VR_CU_INVALID_VALUE;
    if ((jit_count != 0 && (jit_options == NULL || jit_values == NULL)) || (count != 0 && (options == NULL || values == NULL)))
        return VR_CU_INVALID_VALUE;
    const vr_cu_result result = vr_sim_image_extent(&code, &size);
    return result == VR_CU_SUCCESS ? load_library(sim, library, code, size) : result;
}

vr_cu_result vr_sim_library_load_from_file(struct vr_sim *sim, uint64_t *library, const char *path, const int *jit_options,
                                           void **jit_values, unsigned jit_count, const int *options, void **values, unsigned count) {
    struct vr_os_view view;
    if (library == NULL || path == NULL) return VR_CU_INVALID_VALUE;
    if ((jit_count != 0 && (jit_options == NULL || jit_values == NULL)) || (count != 0 && (options == NULL || values == NULL)))
        return VR_CU_INVALID_VALUE;
    if (vr_os_view_open(path, &view) != VRAM_OK) return VR_CU_FILE_NOT_FOUND;
    const vr_cu_result result = load_library(sim, library, view.bytes, (size_t)view.size_bytes);
    vr_os_view_close(&view);
    return result;
}

static void end_library(struct vr_sim *sim, struct vr_sim_library *library) {
    for (size_t i = 0; i < library->kernel_count; i++)
        if (library->kernels[i] != 0) vr_sim_slots_give(&sim->functions, library->kernels[i] - 1);
    free(library->kernels);
    for (uint32_t i = 0; i < library->image_count; i++) vr_sim_image_release(library->images[i].image);
    vr_sim_slots_give(&sim->libraries, vr_sim_slots_index(&sim->libraries, library));
}

vr_cu_result vr_sim_library_unload(struct vr_sim *sim, uint64_t library) {
    struct vr_sim_library *found = library_of(sim, library);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    for (uint32_t i = 0; i < sim->modules.used; i++)
        if (module_at(sim, i)->slot.live && module_at(sim, i)->library == library) vr_sim_end_module(sim, module_at(sim, i));
    end_library(sim, found);
    return VR_CU_SUCCESS;
}

void vr_sim_end_libraries(struct vr_sim *sim) {
    for (uint32_t i = 0; i < sim->libraries.used; i++) {
        struct vr_sim_library *library = (struct vr_sim_library *)(void *)vr_sim_slots_item(&sim->libraries, i);
        if (library->slot.live) end_library(sim, library);
    }
}

// --- parts ----------------------------------------------------------------------------------------------------------

struct vr_sim_image *vr_sim_library_image(struct vr_sim *sim, const struct vr_sim_library *library, uint32_t device) {
    const uint32_t architecture = vr_sim_architecture(sim, device);
    for (uint32_t i = 0; i < library->image_count; i++)
        if (library->images[i].architecture == architecture) return library->images[i].image;
    return NULL;
}

vr_cu_result vr_sim_library_module(struct vr_sim *sim, uint64_t library, uint64_t context, uint64_t *module) {
    const struct vr_sim_library *found = library_of(sim, library);
    for (uint32_t i = 0; i < sim->modules.used; i++) {
        const struct vr_sim_module *made = module_at(sim, i);
        if (!made->slot.live || made->library != library || made->context != context) continue;
        *module = vr_sim_slots_handle(&sim->modules, i);
        return VR_CU_SUCCESS;
    }
    struct vr_sim_image *image = vr_sim_library_image(sim, found, vr_sim_context_find(sim, context)->device);
    return image == NULL ? VR_CU_NO_BINARY_FOR_GPU : vr_sim_module_make(sim, context, image, library, module);
}

// The library's module in the current context.
static vr_cu_result current_module(struct vr_sim *sim, uint64_t library, uint64_t *module) {
    if (library_of(sim, library) == NULL) return VR_CU_INVALID_HANDLE;
    struct vr_sim_context *context;
    const vr_cu_result result = vr_sim_current(sim, &context);
    return result == VR_CU_SUCCESS ? vr_sim_library_module(sim, library, vr_sim_context_handle(sim, context), module) : result;
}

vr_cu_result vr_sim_library_get_module(struct vr_sim *sim, uint64_t *module, uint64_t library) {
    return module == NULL ? VR_CU_INVALID_VALUE : current_module(sim, library, module);
}

vr_cu_result vr_sim_library_get_global(struct vr_sim *sim, uint64_t *address, uint64_t *size_bytes, uint64_t library, const char *name) {
    uint64_t module;
    if (name == NULL || (address == NULL && size_bytes == NULL)) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = current_module(sim, library, &module);
    return result == VR_CU_SUCCESS ? vr_sim_module_variable(sim, module, name, address, size_bytes) : result;
}

vr_cu_result vr_sim_library_get_managed(struct vr_sim *sim, uint64_t *address, uint64_t *size_bytes, uint64_t library, const char *name) {
    const struct vr_sim_library *found = library_of(sim, library);
    if (name == NULL || (address == NULL && size_bytes == NULL)) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    const struct vr_sim_image *image = found->images[0].image;
    const size_t variable = vr_sim_image_variable(image, name);
    if (variable == SIZE_MAX || !image->variables[variable].managed) return VR_CU_NOT_FOUND;
    return vr_sim_library_get_global(sim, address, size_bytes, library, name);
}

// Functions that hosts and devices share do not exist where nothing is computed.
vr_cu_result vr_sim_library_get_unified_function(struct vr_sim *sim, void **function, uint64_t library, const char *name) {
    if (function == NULL || name == NULL) return VR_CU_INVALID_VALUE;
    return library_of(sim, library) == NULL ? VR_CU_INVALID_HANDLE : VR_CU_NOT_FOUND;
}

// --- kernels --------------------------------------------------------------------------------------------------------

static vr_cu_result kernel_at(struct vr_sim *sim, uint64_t library, size_t kernel, uint64_t *handle) {
    struct vr_sim_library *found = library_of(sim, library);
    if (VR_GROW(found, kernels, kernel + 1) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    while (found->kernel_count <= kernel) found->kernels[found->kernel_count++] = 0;
    if (found->kernels[kernel] == 0) {
        const struct vr_sim_function fresh = {.library = library, .image = found->images[0].image, .kernel = (uint32_t)kernel};
        uint64_t made;
        const vr_cu_result result = vr_sim_function_make(sim, &fresh, &made);
        if (result != VR_CU_SUCCESS) return result;
        found->kernels[kernel] = vr_sim_slots_index(&sim->functions, vr_sim_function_find(sim, made)) + 1;
    }
    *handle = vr_sim_slots_handle(&sim->functions, found->kernels[kernel] - 1);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_library_get_kernel(struct vr_sim *sim, uint64_t *kernel, uint64_t library, const char *name) {
    const struct vr_sim_library *found = library_of(sim, library);
    if (kernel == NULL || name == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    const size_t index = vr_sim_image_kernel(found->images[0].image, name);
    return index == SIZE_MAX ? VR_CU_NOT_FOUND : kernel_at(sim, library, index, kernel);
}

vr_cu_result vr_sim_library_get_kernel_count(struct vr_sim *sim, unsigned *count, uint64_t library) {
    const struct vr_sim_library *found = library_of(sim, library);
    if (count == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    *count = (unsigned)found->images[0].image->kernel_count;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_library_enumerate_kernels(struct vr_sim *sim, uint64_t *kernels, unsigned count, uint64_t library) {
    if (kernels == NULL || count == 0) return VR_CU_INVALID_VALUE;
    if (library_of(sim, library) == NULL) return VR_CU_INVALID_HANDLE;
    for (size_t i = 0; i < count && i < library_of(sim, library)->images[0].image->kernel_count; i++) {
        const vr_cu_result result = kernel_at(sim, library, i, &kernels[i]);
        if (result != VR_CU_SUCCESS) return result;
    }
    return VR_CU_SUCCESS;
}

static struct vr_sim_function *kernel_of(const struct vr_sim *sim, uint64_t kernel) {
    struct vr_sim_function *found = vr_sim_function_find(sim, kernel);
    return found != NULL && found->module == 0 ? found : NULL;
}

// The function of a kernel in the current context has the kernel's settings.
vr_cu_result vr_sim_kernel_get_function(struct vr_sim *sim, uint64_t *function, uint64_t kernel) {
    const struct vr_sim_function *found = kernel_of(sim, kernel);
    if (function == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    const uint32_t base = vr_sim_slots_index(&sim->functions, found) + 1;
    const char *name = vr_sim_function_kernel(found)->name;
    uint64_t module, made;
    vr_cu_result result = current_module(sim, found->library, &module);
    if (result == VR_CU_SUCCESS) result = vr_sim_module_get_function(sim, &made, module, name);
    if (result != VR_CU_SUCCESS) return result;
    vr_sim_function_find(sim, made)->base = base;
    *function = made;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_kernel_get_library(struct vr_sim *sim, uint64_t *library, uint64_t kernel) {
    const struct vr_sim_function *found = kernel_of(sim, kernel);
    if (library == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    *library = found->library;
    return VR_CU_SUCCESS;
}
