#include "snapshot/input.h"

// Small enough to stay in a core's own cache between being filled and being read.
enum { BUFFER_BYTES = 1 << 16 };

// What comes before so many bytes says little about the rest.
#define LEAST_TO_EXTRAPOLATE (1 * VR_MIB)

double vr_input_ahead(const struct vr_input *input) {
    const uint64_t used = vr_input_offset(input);
    return used < LEAST_TO_EXTRAPOLATE || used >= input->from.bytes ? 0 : (double)input->from.bytes / (double)used;
}

// So many bytes more came in. How many are said to come widens nothing: that may be wrong.
static void widen_window(struct vr_input *input, uint64_t bytes) {
    if (input->budget == NULL) return;
    struct vr_budget *budget = input->budget;
    budget->limit_bytes += bytes * VR_BUDGET_FACTOR;
    const uint64_t most = input->from.most_memory_bytes, held = input->capacity;
    if (most != 0 && budget->limit_bytes > (most > held ? most - held : 0)) {
        budget->limit_bytes = most > held ? most - held : 0;
        budget->capped = true;
    }
    budget->ahead = vr_input_ahead(input);
}

void vr_input_on_memory(struct vr_input *input, const void *data, size_t size) {
    static const unsigned char none;
    memset(input, 0, sizeof *input);
    input->next = input->start = size == 0 ? &none : data;
    input->end = input->next + size;
    input->ended = true;
}

enum vram_status vr_input_on_input(struct vr_input *input, const struct vram_input *from) {
    memset(input, 0, sizeof *input);
    input->buffer = malloc(BUFFER_BYTES);
    if (input->buffer == NULL) return VRAM_NO_HOST_MEMORY;
    input->capacity = BUFFER_BYTES;
    input->next = input->end = input->start = input->buffer;
    input->from = *from;
    return VRAM_OK;
}

static uint64_t bytes_in(const struct vr_input *input) { return input->start_offset + (uint64_t)(input->end - input->start); }

void vr_input_set_budget(struct vr_input *input, struct vr_budget *budget) {
    input->budget = budget;
    widen_window(input, bytes_in(input));
}

void vr_input_release(struct vr_input *input) {
    free(input->buffer);
    memset(input, 0, sizeof *input);
}

// Moves what is not used yet to the front of the buffer.
static void compact_window(struct vr_input *input) {
    size_t left = vr_input_at_hand(input);
    input->start_offset = vr_input_offset(input);
    memmove(input->buffer, input->next, left);
    input->start = input->next = input->buffer;
    input->end = input->buffer + left;
}

// Doubles the buffer, which is full.
static enum vram_status enlarge_buffer(struct vr_input *input) {
    if (input->capacity > SIZE_MAX / 2) return VRAM_NO_HOST_MEMORY;
    size_t left = vr_input_at_hand(input);
    unsigned char *grown = realloc(input->buffer, input->capacity * 2);
    if (grown == NULL) return VRAM_NO_HOST_MEMORY;
    input->capacity *= 2;
    input->buffer = grown;
    input->start = input->next = grown;
    input->end = grown + left;
    return VRAM_OK;
}

enum vram_status vr_input_fill(struct vr_input *input, uint64_t wanted) {
    if (vr_input_at_hand(input) >= wanted || input->ended) return VRAM_OK;
    compact_window(input);
    while (!input->ended && vr_input_at_hand(input) < wanted) {
        size_t held = vr_input_at_hand(input);
        if (held == input->capacity) VR_TRY(enlarge_buffer(input));
        if (input->budget != NULL && input->budget->capped && input->capacity > input->from.most_memory_bytes) return VRAM_LIMIT;
        size_t got = input->from.read(input->from.context, input->buffer + held, input->capacity - held);
        if (got == SIZE_MAX || got > input->capacity - held) return VRAM_IO;
        input->ended = got == 0;
        input->end += got;
        widen_window(input, got);
    }
    return VRAM_OK;
}
