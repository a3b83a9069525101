// The backend of our own: segments, blocks and an index.
#include "core/capture/captures.h"
#include "core/release.h"
#include "core/source/backend.h"

static enum vram_status trim(struct vr_device *device) { return vr_release_all(device, !vr_device_captures(device)); }

const struct vr_backend_ops vr_backend_native = {
    .has_blocks = true,
    .malloc = vr_native_malloc,
    .trim = trim,
    .check = vr_native_check,
};
