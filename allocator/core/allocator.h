// allocator.h: the allocator's bare beginning and end. vram_create() and vram_destroy() add what the environment asks to record
// (allocator/live).
#ifndef VR_CORE_ALLOCATOR_H
#define VR_CORE_ALLOCATOR_H

#include "vram/allocator.h"

// As vram_create() and vram_destroy(), without a history. allocator may not be NULL.
enum vram_status vr_allocator_create(const struct vram_create_info *info, struct vram_allocator **allocator, struct vram_error *error);
void vr_allocator_destroy(struct vram_allocator *allocator);
// Before its first use: no thread makes memory ahead (the option grow_ahead), so that a replay is the same every time.
void vr_allocator_without_threads(struct vram_allocator *allocator);

#endif
