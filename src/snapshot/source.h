// source.h: the bytes of a recording: all of them at hand, or read piece by piece into a buffer.
#ifndef VR_SOURCE_H
#define VR_SOURCE_H

#include "model/builder.h"
#include "vram/recording.h"

struct vr_source {
    const unsigned char *next;  // first byte not yet used
    const unsigned char *end;   // one past the last byte at hand
    const unsigned char *start; // first byte at hand
    uint64_t start_offset;      // where in the input *start is
    unsigned char *buffer;      // NULL for a source on memory
    size_t capacity;
    struct vram_input input;
    bool ended;
    struct vr_budget *budget; // its limit rises with every byte that comes in; may be NULL
};

// How much the tables may grow: this many bytes, and so many per byte of input.
#define VR_BUDGET_BASE (4 * VR_MIB)
enum { VR_BUDGET_FACTOR = 3 };

// A source on bytes that stay where they are.
void vr_source_on_memory(struct vr_source *source, const void *data, size_t size);
// A source that reads; `input` is copied, what it points to is borrowed. NO_HOST_MEMORY.
enum vram_status vr_source_on_input(struct vr_source *source, const struct vram_input *input);
// From now on what comes in (and what has come in) widens *budget. NULL for none.
void vr_source_set_budget(struct vr_source *source, struct vr_budget *budget);
void vr_source_release(struct vr_source *source);

// What is said to be the length of the whole input, in lengths of what is used of it: struct vr_budget's `ahead`.
double vr_source_ahead(const struct vr_source *source);

// Tries to have `wanted` bytes at hand from source->next on; at the end of the input there are fewer. What is at hand may move; the
// bytes from next on stay. The buffer grows only as bytes come in, whatever `wanted` says. IO, NO_HOST_MEMORY.
enum vram_status vr_source_fill(struct vr_source *source, uint64_t wanted);

VR_INLINE size_t vr_source_at_hand(const struct vr_source *source) { return (size_t)(source->end - source->next); }
// Where in the input source->next is.
VR_INLINE uint64_t vr_source_offset(const struct vr_source *source) {
    return source->start_offset + (uint64_t)(source->next - source->start);
}

#endif
