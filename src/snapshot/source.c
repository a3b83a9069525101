#include "snapshot/source.h"

// Small enough to stay in a core's own cache between being filled and being read.
enum { BUFFER_BYTES = 1 << 16 };

// What comes before so many bytes says little about the rest.
#define TELLING_BYTES (1 * VR_MIB)

double vr_source_ahead(const struct vr_source *source) {
    const uint64_t used = vr_source_offset(source);
    return used < TELLING_BYTES || used >= source->input.bytes ? 0 : (double)source->input.bytes / (double)used;
}

// So many bytes more came in. How many are said to come widens nothing: that may be wrong.
static void widen(struct vr_source *source, uint64_t bytes) {
    if (source->budget == NULL) return;
    source->budget->limit_bytes += bytes * VR_BUDGET_FACTOR;
    source->budget->ahead = vr_source_ahead(source);
}

void vr_source_on_memory(struct vr_source *source, const void *data, size_t size) {
    static const unsigned char none;
    memset(source, 0, sizeof *source);
    source->next = source->start = size == 0 ? &none : data;
    source->end = source->next + size;
    source->ended = true;
}

enum vram_status vr_source_on_input(struct vr_source *source, const struct vram_input *input) {
    memset(source, 0, sizeof *source);
    source->buffer = malloc(BUFFER_BYTES);
    if (source->buffer == NULL) return VRAM_NO_HOST_MEMORY;
    source->capacity = BUFFER_BYTES;
    source->next = source->end = source->start = source->buffer;
    source->input = *input;
    return VRAM_OK;
}

static uint64_t bytes_in(const struct vr_source *source) { return source->start_offset + (uint64_t)(source->end - source->start); }

void vr_source_set_budget(struct vr_source *source, struct vr_budget *budget) {
    source->budget = budget;
    widen(source, bytes_in(source));
}

void vr_source_release(struct vr_source *source) {
    free(source->buffer);
    memset(source, 0, sizeof *source);
}

// Moves what is not used yet to the front of the buffer.
static void compact(struct vr_source *source) {
    size_t left = vr_source_at_hand(source);
    source->start_offset = vr_source_offset(source);
    memmove(source->buffer, source->next, left);
    source->start = source->next = source->buffer;
    source->end = source->buffer + left;
}

// Doubles the buffer, which is full.
static enum vram_status enlarge(struct vr_source *source) {
    if (source->capacity > SIZE_MAX / 2) return VRAM_NO_HOST_MEMORY;
    size_t left = vr_source_at_hand(source);
    unsigned char *grown = realloc(source->buffer, source->capacity * 2);
    if (grown == NULL) return VRAM_NO_HOST_MEMORY;
    source->capacity *= 2;
    source->buffer = grown;
    source->start = source->next = grown;
    source->end = grown + left;
    return VRAM_OK;
}

enum vram_status vr_source_fill(struct vr_source *source, uint64_t wanted) {
    if (vr_source_at_hand(source) >= wanted || source->ended) return VRAM_OK;
    compact(source);
    while (!source->ended && vr_source_at_hand(source) < wanted) {
        size_t held = vr_source_at_hand(source);
        if (held == source->capacity) VR_TRY(enlarge(source));
        size_t got = source->input.read(source->input.context, source->buffer + held, source->capacity - held);
        if (got == SIZE_MAX || got > source->capacity - held) return VRAM_IO;
        source->ended = got == 0;
        source->end += got;
        widen(source, got);
    }
    return VRAM_OK;
}
