// allocator.h: creates and destroys an allocator without a history. vram_create() and vram_destroy() add the recording that the environment
// asks for (allocator/live).
#ifndef VR_CORE_ALLOCATOR_H
#define VR_CORE_ALLOCATOR_H

#include "vram/allocator.h"

// Like vram_create() and vram_destroy(), without a history. allocator must not be NULL.
enum vram_status vr_allocator_create(const struct vram_create_info *info, struct vram_allocator **allocator, struct vram_error *error);
void vr_allocator_destroy(struct vram_allocator *allocator);
// Keeps threads from allocating memory ahead of need (the option grow_ahead), so that a replay is the same every time. Call it before the
// allocator is first used.
void vr_allocator_without_threads(struct vram_allocator *allocator);

#endif
