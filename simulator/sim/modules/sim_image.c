// sim_image.c: the lists of what an image holds.
#include "sim/modules/sim_image.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_REGISTERS = 32 }; // what an unknown kernel is taken to use

static char *copy_name(const char *name, size_t length) {
    char *copy = malloc(length + 1);
    if (copy == NULL) return NULL;
    if (length > 0) memcpy(copy, name, length);
    copy[length] = '\0';
    return copy;
}

// PyTorch's torch.cuda._sleep and the samples' kernel: clock64() until the number of cycles has passed.
static bool is_spinning(const char *name) { return strstr(name, "spin_kernel") != NULL; }

struct vr_sim_kernel *vr_sim_image_add_kernel(struct vr_sim_image *image, const char *name, size_t length) {
    if (VR_GROW(image, kernels, image->kernel_count + 1) != VRAM_OK) return NULL;
    char *copy = copy_name(name, length);
    if (copy == NULL) return NULL;
    struct vr_sim_kernel *kernel = &image->kernels[image->kernel_count++];
    *kernel = (struct vr_sim_kernel){
        .name = copy, .registers = SMALL_REGISTERS, .spins = is_spinning(copy), .fill_value_bytes = vr_sim_fill_value_bytes(copy)};
    return kernel;
}

bool vr_sim_image_add_variable(struct vr_sim_image *image, const char *name, size_t length, uint64_t size_bytes, bool managed) {
    if (VR_GROW(image, variables, image->variable_count + 1) != VRAM_OK) return false;
    char *copy = copy_name(name, length);
    if (copy == NULL) return false;
    image->variables[image->variable_count++] = (struct vr_sim_variable){copy, size_bytes, managed};
    return true;
}

// Parameters come in any order; places between those seen are empty until they come.
bool vr_sim_kernel_add_parameter(struct vr_sim_kernel *kernel, uint32_t ordinal, uint32_t offset_bytes, uint32_t size_bytes) {
    if (ordinal >= 4096) return true; // a kernel's parameters take at most 32,764 bytes
    const size_t needed = (size_t)ordinal + 1;
    if (VR_GROW(kernel, parameters, needed) != VRAM_OK) return false;
    for (; kernel->parameter_count < needed; kernel->parameter_count++)
        kernel->parameters[kernel->parameter_count] = (struct vr_sim_parameter){0, 0};
    kernel->parameters[ordinal] = (struct vr_sim_parameter){offset_bytes, size_bytes};
    return true;
}

size_t vr_sim_image_kernel(struct vr_sim_image *image, const char *name) {
    for (size_t i = 0; i < image->kernel_count; i++)
        if (strcmp(image->kernels[i].name, name) == 0) return i;
    if (!image->open || name[0] == '\0' || vr_sim_image_add_kernel(image, name, strlen(name)) == NULL) return SIZE_MAX;
    return image->kernel_count - 1;
}

size_t vr_sim_image_variable(const struct vr_sim_image *image, const char *name) {
    for (size_t i = 0; i < image->variable_count; i++)
        if (strcmp(image->variables[i].name, name) == 0) return i;
    return SIZE_MAX;
}

void vr_sim_image_release(struct vr_sim_image *image) {
    if (image == NULL || --image->references > 0) return;
    for (size_t i = 0; i < image->kernel_count; i++) {
        free(image->kernels[i].name);
        free(image->kernels[i].parameters);
        free(image->kernels[i].outputs);
    }
    for (size_t i = 0; i < image->variable_count; i++) free(image->variables[i].name);
    free(image->kernels);
    free(image->variables);
    free(image);
}
