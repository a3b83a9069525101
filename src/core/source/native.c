// The backend of our own: segments, blocks and an index.
#include "core/release.h"
#include "core/source/backend.h"

const struct vr_backend_ops vr_backend_native = {
    .has_blocks = true,
    .malloc = vr_native_malloc,
    .trim = vr_release_all,
    .check = vr_native_check,
};
