// The default driver of the machine: NVIDIA's, else AMD's.
#include "driver/driver.h"
#include "os/os.h"

static bool is_named(const char *variable) {
    const char *path = vr_os_getenv(variable);
    return path != NULL && path[0] != '\0';
}

enum vram_status vram_driver_system(struct vram_driver **driver, struct vram_error *error) {
    if (driver == NULL) return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the pointer for the driver is NULL");
    struct vram_error other = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    const enum vram_status status = vram_driver_cuda(driver, error);
    if (status != VRAM_NO_DRIVER && status != VRAM_DRIVER) return status;
    if (is_named("VRAM_LIBCUDA") && !is_named("VRAM_LIBHIP")) return status; // only NVIDIA's is wanted
    const enum vram_status hip = vram_driver_hip(driver, &other);
    if (hip == VRAM_OK || hip == VRAM_NO_DRIVER || status == VRAM_DRIVER) return hip == VRAM_OK ? VRAM_OK : status;
    if (error != NULL) *error = other;
    return hip;
}
