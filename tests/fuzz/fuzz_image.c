// Reads any bytes as compiled code for the simulated driver, compressed with LZ4 or Zstandard or not: gives a result, never a crash;
// everything that an accepted image names can be queried.
#include <stddef.h>
#include <stdint.h>

#include "sim/modules/sim_outputs.h"
#include "../../simulator/standins/libcuda/libcuda.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    // In an allocation of exact size, so that a sanitizer detects accesses beyond it.
    char *bytes = malloc(size + 1);
    if (bytes == NULL) return 0;
    if (size != 0) memcpy(bytes, data, size);
    struct vr_sim_image *image = NULL;
    const vr_cu_result result = vr_sim_image_read(bytes, size, 90, vr_libcuda_unpack_zstd, true, &image);
    if ((result == VR_CU_SUCCESS) != (image != NULL)) __builtin_trap();
    for (size_t i = 0; image != NULL && i < image->kernel_count; i++)
        if (vr_sim_image_kernel(image, image->kernels[i].name) > i || !vr_sim_kernel_find_outputs(&image->kernels[i])) __builtin_trap();
    for (size_t i = 0; image != NULL && i < image->variable_count; i++)
        if (vr_sim_image_variable(image, image->variables[i].name) > i) __builtin_trap();
    vr_sim_image_release(image);
    free(bytes);
    return 0;
}
