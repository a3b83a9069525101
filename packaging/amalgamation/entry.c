// vram_create() and vram_destroy() of the amalgamation: the allocator alone, without the recording that the environment may ask for.
#include "core/allocator.h"

enum vram_status vram_create(const struct vram_create_info *info, struct vram_allocator **allocator, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator);
    return vr_allocator_create(info, allocator, error);
}

void vram_destroy(struct vram_allocator *allocator) {
    if (allocator != NULL) vr_allocator_destroy(allocator);
}
