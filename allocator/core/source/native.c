// The native backend: segments, blocks and an index.
#include "core/capture/captures.h"
#include "core/release.h"
#include "core/sleep/sleepers.h"
#include "core/source/backend.h"
#include "core/source/paged.h"

static enum vram_status trim_native(struct vr_device *device) {
    const bool everything = !vr_device_captures(device);
    const enum vram_status status = vr_release_all(device, everything), paged = everything ? vr_paged_release(device, UINT64_MAX) : VRAM_OK;
    if (everything) vr_pinned_trim(device);
    return status != VRAM_OK ? status : paged;
}

const struct vr_backend_ops vr_backend_native = {
    .has_blocks = true,
    .malloc = vr_native_malloc,
    .trim = trim_native,
    .check = vr_native_check,
};
