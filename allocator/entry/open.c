// vram_create() and vram_destroy(): the core's, with what the environment asks to record.
#include "base/base.h"
#include "core/allocator.h"
#include "entry/environment.h"
#include "live/prometheus.h"
#include "os/os.h"

enum vram_status vram_create(const struct vram_create_info *info, struct vram_allocator **allocator, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator);
    struct vram_allocator *made = NULL;
    VR_TRY(vr_allocator_create(info, &made, error));
    if (info == NULL || !info->ignore_environment) {
        enum vram_status status = vr_environment_apply(made, error);
        if (status == VRAM_OK) status = vr_prometheus_start_text(made, vr_os_getenv("VRAM_PROMETHEUS"), error);
        if (status != VRAM_OK) {
            vram_destroy(made);
            return status;
        }
    }
    *allocator = made;
    return VRAM_OK;
}

void vram_destroy(struct vram_allocator *allocator) {
    if (allocator == NULL) return;
    vr_allocator_destroy(allocator);
}
