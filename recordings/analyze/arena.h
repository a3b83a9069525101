// arena.h: memory that is freed all at once. A report's arrays and strings are in an arena.
#ifndef VR_ANALYZE_ARENA_H
#define VR_ANALYZE_ARENA_H

#include "base/base.h"

struct vr_arena_chunk;

// A zeroed struct is an empty arena. Use an arena from one thread at a time.
struct vr_arena {
    struct vr_arena_chunk *chunks;
    size_t used;     // of the newest chunk
    size_t capacity; // of the newest chunk
};

void vr_arena_release(struct vr_arena *arena);
// Allocates count zeroed items of item_bytes each, aligned for any type. Never NULL on OK, even for 0 items. NO_HOST_MEMORY.
enum vram_status vr_arena_array(struct vr_arena *arena, size_t count, size_t item_bytes, void **items);
// Make a NUL-terminated string. NO_HOST_MEMORY.
enum vram_status vr_arena_copy(struct vr_arena *arena, const char *bytes, size_t length, const char **copy);
enum vram_status vr_arena_printf(struct vr_arena *arena, const char **text, const char *format, ...) VRAM_PRINTF(3, 4);

#endif
