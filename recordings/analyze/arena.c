#include <stdarg.h>
#include <stdio.h>

#include "analyze/arena.h"

struct vr_arena_chunk {
    struct vr_arena_chunk *older;
    _Alignas(max_align_t) unsigned char bytes[];
};

#define CHUNK_BYTES ((size_t)64 << 10)
#define ALIGNMENT   _Alignof(max_align_t)

void vr_arena_release(struct vr_arena *arena) {
    for (struct vr_arena_chunk *chunk = arena->chunks; chunk != NULL;) {
        struct vr_arena_chunk *older = chunk->older;
        free(chunk);
        chunk = older;
    }
    *arena = (struct vr_arena){0};
}

enum vram_status vr_arena_array(struct vr_arena *arena, size_t count, size_t item_bytes, void **items) {
    uint64_t wanted;
    if (!vr_mul_u64(count, item_bytes, &wanted) || wanted > SIZE_MAX / 2) return VRAM_NO_HOST_MEMORY;
    const size_t bytes = (size_t)vr_round_up(wanted, ALIGNMENT);
    if (arena->chunks == NULL || bytes > arena->capacity - arena->used) {
        const size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        struct vr_arena_chunk *chunk = malloc(sizeof *chunk + capacity);
        if (chunk == NULL) return VRAM_NO_HOST_MEMORY;
        chunk->older = arena->chunks;
        arena->chunks = chunk;
        arena->used = 0;
        arena->capacity = capacity;
    }
    *items = arena->chunks->bytes + arena->used;
    memset(*items, 0, bytes);
    arena->used += bytes;
    return VRAM_OK;
}

enum vram_status vr_arena_copy(struct vr_arena *arena, const char *bytes, size_t length, const char **copy) {
    void *room;
    VR_TRY(vr_arena_array(arena, length + 1, 1, &room));
    if (length != 0) memcpy(room, bytes, length);
    *copy = room;
    return VRAM_OK;
}

enum vram_status vr_arena_printf(struct vr_arena *arena, const char **text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) return VRAM_NO_HOST_MEMORY;
    void *room;
    VR_TRY(vr_arena_array(arena, (size_t)length + 1, 1, &room));
    va_start(arguments, format);
    (void)vsnprintf(room, (size_t)length + 1, format, arguments);
    va_end(arguments);
    *text = room;
    return VRAM_OK;
}
