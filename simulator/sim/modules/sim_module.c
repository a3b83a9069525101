// Modules, libraries and the linker.
#include <stdlib.h>

#include "sim/memory/sim_memory.h"
#include "sim/modules/sim_modules.h"

// ---- Modules: code and variables in one context.

static struct vr_sim_module *module_of(const struct vr_sim *sim, uint64_t module) { return vr_sim_slots_find(&sim->modules, module); }

// --- creation and destruction ---------------------------------------------------------------------------------------

// Returns the offset of a variable from the module's first one.
static uint64_t sim_variable_offset(const struct vr_sim_image *image, size_t variable) {
    uint64_t offset = 0;
    for (size_t i = 0; i < variable; i++) offset += vr_round_up(image->variables[i].size_bytes, VR_SIM_VARIABLE_ALIGNMENT);
    return offset;
}

// Returns whether the total size of the variables is acceptable. A file may claim any size.
static bool image_fits(const struct vr_sim_image *image) {
    uint64_t sum = 0;
    for (size_t i = 0; i < image->variable_count; i++)
        if (image->variables[i].size_bytes > VR_SIM_LIMIT ||
            !vr_add_u64(sum, image->variables[i].size_bytes + VR_SIM_VARIABLE_ALIGNMENT, &sum))
            return false;
    return sum < VR_SIM_LIMIT;
}

// Makes the module of an image in a context and adds a reference to the image. `library` is the handle of its library, or 0.
static vr_cu_result sim_module_make(struct vr_sim *sim, uint64_t context, struct vr_sim_image *image, uint64_t library, uint64_t *module) {
    if (!image_fits(image)) return VR_CU_OUT_OF_MEMORY;
    const uint64_t size = sim_variable_offset(image, image->variable_count);
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

// Frees a module and its functions and variables.
static void sim_end_module(struct vr_sim *sim, struct vr_sim_module *module) {
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
        if (module->slot.live && (context == 0 || module->context == context)) sim_end_module(sim, module);
    }
}

// --- loading --------------------------------------------------------------------------------------------------------

static vr_cu_result load_module(struct vr_sim *sim, uint64_t *module, const void *bytes, size_t size_bytes) {
    struct vr_sim_context *context;
    vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    const uint64_t handle = vr_sim_context_handle(sim, context);
    struct vr_sim_image *image;
    result =
        vr_sim_image_read(bytes, size_bytes, vr_sim_architecture(sim, context->device), sim->unpack_zstd, sim->checking != NULL, &image);
    if (result != VR_CU_SUCCESS) return result;
    result = sim_module_make(sim, handle, image, 0, module);
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

// Compiler options have no effect here.
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
    sim_end_module(sim, found);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_module_get_loading_mode(struct vr_sim *sim, int *mode) {
    (void)sim;
    if (mode == NULL) return VR_CU_INVALID_VALUE;
    *mode = VR_CU_MODULE_LAZY_LOADING; // the default since CUDA 12.2
    return VR_CU_SUCCESS;
}

// --- functions and variables ----------------------------------------------------------------------------------------

static vr_cu_result sim_module_function_at(struct vr_sim *sim, uint64_t module, size_t kernel, uint64_t *function) {
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
    return kernel == SIZE_MAX ? VR_CU_NOT_FOUND : sim_module_function_at(sim, module, kernel, function);
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
        const vr_cu_result result = sim_module_function_at(sim, module, i, &functions[i]);
        if (result != VR_CU_SUCCESS) return result;
    }
    return VR_CU_SUCCESS;
}

static vr_cu_result sim_module_variable(struct vr_sim *sim, uint64_t module, const char *name, uint64_t *address, uint64_t *size_bytes) {
    const struct vr_sim_module *found = module_of(sim, module);
    if (name == NULL || (address == NULL && size_bytes == NULL)) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    const size_t variable = vr_sim_image_variable(found->image, name);
    if (variable == SIZE_MAX) return VR_CU_NOT_FOUND;
    if (address != NULL) *address = found->variables + sim_variable_offset(found->image, variable);
    if (size_bytes != NULL) *size_bytes = found->image->variables[variable].size_bytes;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_module_get_global(struct vr_sim *sim, uint64_t *address, uint64_t *size_bytes, uint64_t module, const char *name) {
    return sim_module_variable(sim, module, name, address, size_bytes);
}

// ---- Libraries: code for all contexts, and their kernels.

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

// Reads the code for each architecture of the devices. SUCCESS if at least one device has code.
static vr_cu_result read_images(struct vr_sim *sim, struct vr_sim_library *library, const void *bytes, size_t size_bytes) {
    vr_cu_result refused = VR_CU_SUCCESS;
    for (uint32_t device = 0; device < sim->options.device_count; device++) {
        struct vr_sim_library_image *entry = &library->images[library->image_count];
        entry->architecture = vr_sim_architecture(sim, device);
        if (has_image(library, entry->architecture)) continue;
        const vr_cu_result result =
            vr_sim_image_read(bytes, size_bytes, entry->architecture, sim->unpack_zstd, sim->checking != NULL, &entry->image);
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

// Options configure the compiler, or ask to keep the program's bytes; they have no effect here.
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
        if (module_at(sim, i)->slot.live && module_at(sim, i)->library == library) sim_end_module(sim, module_at(sim, i));
    end_library(sim, found);
    return VR_CU_SUCCESS;
}

void vr_sim_end_libraries(struct vr_sim *sim) {
    for (uint32_t i = 0; i < sim->libraries.used; i++) {
        struct vr_sim_library *library = (struct vr_sim_library *)(void *)vr_sim_slots_item(&sim->libraries, i);
        if (library->slot.live) end_library(sim, library);
    }
}

// --- modules and variables ------------------------------------------------------------------------------------------

struct vr_sim_image *vr_sim_library_image(struct vr_sim *sim, const struct vr_sim_library *library, uint32_t device) {
    const uint32_t architecture = vr_sim_architecture(sim, device);
    for (uint32_t i = 0; i < library->image_count; i++)
        if (library->images[i].architecture == architecture) return library->images[i].image;
    return NULL;
}

// Gets the library's module in a context, loading it at first use.
static vr_cu_result sim_library_module(struct vr_sim *sim, uint64_t library, uint64_t context, uint64_t *module) {
    const struct vr_sim_library *found = library_of(sim, library);
    for (uint32_t i = 0; i < sim->modules.used; i++) {
        const struct vr_sim_module *made = module_at(sim, i);
        if (!made->slot.live || made->library != library || made->context != context) continue;
        *module = vr_sim_slots_handle(&sim->modules, i);
        return VR_CU_SUCCESS;
    }
    struct vr_sim_image *image = vr_sim_library_image(sim, found, vr_sim_context_find(sim, context)->device);
    return image == NULL ? VR_CU_NO_BINARY_FOR_GPU : sim_module_make(sim, context, image, library, module);
}

// Gets the library's module in the current context.
static vr_cu_result current_module(struct vr_sim *sim, uint64_t library, uint64_t *module) {
    if (library_of(sim, library) == NULL) return VR_CU_INVALID_HANDLE;
    struct vr_sim_context *context;
    const vr_cu_result result = vr_sim_current(sim, &context);
    return result == VR_CU_SUCCESS ? sim_library_module(sim, library, vr_sim_context_handle(sim, context), module) : result;
}

vr_cu_result vr_sim_library_get_module(struct vr_sim *sim, uint64_t *module, uint64_t library) {
    return module == NULL ? VR_CU_INVALID_VALUE : current_module(sim, library, module);
}

vr_cu_result vr_sim_library_get_global(struct vr_sim *sim, uint64_t *address, uint64_t *size_bytes, uint64_t library, const char *name) {
    uint64_t module;
    if (name == NULL || (address == NULL && size_bytes == NULL)) return VR_CU_INVALID_VALUE;
    const vr_cu_result result = current_module(sim, library, &module);
    return result == VR_CU_SUCCESS ? sim_module_variable(sim, module, name, address, size_bytes) : result;
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

// Unified functions, shared by host and device, are never found: nothing is executed.
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

// Gets a kernel's function in the current context. It shares the kernel's settings.
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

// ---- The linker. Its output is for cuModuleLoadData: the added PTX texts concatenated, or the one cubin or container that was added.
// Several cubins cannot be linked. Archives and objects are ignored: they contain nothing that a simulated device needs.

enum { INPUT_CUBIN, INPUT_PTX, INPUT_CONTAINER, INPUT_OBJECT, INPUT_LIBRARY, INPUT_COUNT = 6 };

static struct vr_sim_link *link_of(const struct vr_sim *sim, uint64_t link) { return vr_sim_slots_find(&sim->links, link); }

vr_cu_result vr_sim_link_create(struct vr_sim *sim, unsigned count, const int *options, void **values, uint64_t *link) {
    if (link == NULL || (count != 0 && (options == NULL || values == NULL))) return VR_CU_INVALID_VALUE;
    struct vr_sim_context *context;
    const vr_cu_result result = vr_sim_current(sim, &context);
    uint32_t index;
    if (result != VR_CU_SUCCESS) return result;
    if (vr_sim_slots_take(&sim->links, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    *link = vr_sim_slots_handle(&sim->links, index);
    return VR_CU_SUCCESS;
}

static vr_cu_result append_bytes(struct vr_sim_link *link, const void *bytes, size_t size_bytes) {
    if (size_bytes > SIZE_MAX / 2 - link->size_bytes) return VR_CU_OUT_OF_MEMORY;
    if (VR_GROW(link, bytes, link->size_bytes + size_bytes + 2) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    memcpy(link->bytes + link->size_bytes, bytes, size_bytes);
    link->size_bytes += size_bytes;
    link->bytes[link->size_bytes] = '\0';
    return VR_CU_SUCCESS;
}

static vr_cu_result add_input(struct vr_sim_link *link, int type, const void *bytes, size_t size_bytes) {
    if (type < 0 || type >= INPUT_COUNT || bytes == NULL || size_bytes == 0) return VR_CU_INVALID_VALUE;
    if (type > INPUT_CONTAINER) return VR_CU_SUCCESS;
    if (link->complete) return VR_CU_INVALID_VALUE;
    if (type != INPUT_PTX) {
        if (link->has_code) return VR_CU_NOT_SUPPORTED;
        link->has_code = true;
        link->size_bytes = 0; // the code replaces the texts added so far
        return append_bytes(link, bytes, size_bytes);
    }
    if (link->has_code) return VR_CU_SUCCESS;
    const char *end = memchr(bytes, '\0', size_bytes);
    const vr_cu_result result = append_bytes(link, bytes, end == NULL ? size_bytes : (size_t)(end - (const char *)bytes));
    return result == VR_CU_SUCCESS ? append_bytes(link, "\n", 1) : result;
}

vr_cu_result vr_sim_link_add_data(struct vr_sim *sim, uint64_t link, int type, const void *bytes, uint64_t size_bytes, const char *name,
                                  unsigned count, const int *options, void **values) {
    struct vr_sim_link *found = link_of(sim, link);
    (void)name;
    if (count != 0 && (options == NULL || values == NULL)) return VR_CU_INVALID_VALUE;
    return found == NULL ? VR_CU_INVALID_HANDLE : add_input(found, type, bytes, (size_t)size_bytes);
}

vr_cu_result vr_sim_link_add_file(struct vr_sim *sim, uint64_t link, int type, const char *path, unsigned count, const int *options,
                                  void **values) {
    struct vr_sim_link *found = link_of(sim, link);
    struct vr_os_view view;
    if (path == NULL || (count != 0 && (options == NULL || values == NULL))) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    if (vr_os_view_open(path, &view) != VRAM_OK) return VR_CU_FILE_NOT_FOUND;
    const vr_cu_result result = add_input(found, type, view.bytes, (size_t)view.size_bytes);
    vr_os_view_close(&view);
    return result;
}

// The linker owns the code until it is destroyed.
vr_cu_result vr_sim_link_complete(struct vr_sim *sim, uint64_t link, void **code, uint64_t *size_bytes) {
    struct vr_sim_link *found = link_of(sim, link);
    if (code == NULL) return VR_CU_INVALID_VALUE;
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    if (found->size_bytes == 0) return VR_CU_INVALID_IMAGE;
    found->complete = true;
    *code = found->bytes;
    if (size_bytes != NULL) *size_bytes = found->size_bytes + !found->has_code; // PTX text includes its NUL
    return VR_CU_SUCCESS;
}

static void end_link(struct vr_sim *sim, struct vr_sim_link *link) {
    free(link->bytes);
    vr_sim_slots_give(&sim->links, vr_sim_slots_index(&sim->links, link));
}

vr_cu_result vr_sim_link_destroy(struct vr_sim *sim, uint64_t link) {
    struct vr_sim_link *found = link_of(sim, link);
    if (found == NULL) return VR_CU_INVALID_HANDLE;
    end_link(sim, found);
    return VR_CU_SUCCESS;
}

void vr_sim_end_links(struct vr_sim *sim) {
    for (uint32_t i = 0; i < sim->links.used; i++) {
        struct vr_sim_link *link = (struct vr_sim_link *)(void *)vr_sim_slots_item(&sim->links, i);
        if (link->slot.live) end_link(sim, link);
    }
}
