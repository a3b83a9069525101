// flatbuffer.h: FlatBuffers, as far as the writer of Arrow files needs them: tables, vectors, strings, structs.
//
// A message is built from its end to its beginning, inner objects before those that refer to them. An object is known by its distance from
// the end (never 0). Numbers stand in little-endian order, as on every machine that this runs on.
#ifndef VR_EXPORT_FLATBUFFER_H
#define VR_EXPORT_FLATBUFFER_H

#include "base/base.h"

enum { VR_FLAT_MOST_SLOTS = 8 };

// All-zero is an empty one. The caller releases it.
struct vr_flat {
    uint8_t *bytes; // what is written stands at the end
    size_t capacity;
    size_t used;
    size_t alignment;                       // of the strictest number so far
    size_t table_start;                     // `used` when the open table began
    uint32_t slots[VR_FLAT_MOST_SLOTS + 1]; // of the open table: the field's distance from the end, 0 for none
    bool failed;                            // host memory ran out
};

void vr_flat_release(struct vr_flat *flat);
// Forgets what was written and keeps the memory.
void vr_flat_clear(struct vr_flat *flat);

uint32_t vr_flat_string(struct vr_flat *flat, const char *text, size_t length);
// A vector of structs of `size` bytes each, whose numbers need `alignment`.
uint32_t vr_flat_structs(struct vr_flat *flat, const void *items, size_t size, size_t count, size_t alignment);
uint32_t vr_flat_references(struct vr_flat *flat, const uint32_t *objects, size_t count);

// A table: begin, its fields in any order, end. A number that is 0 is left out: readers take 0 for what is not there.
void vr_flat_begin(struct vr_flat *flat);
void vr_flat_number(struct vr_flat *flat, unsigned slot, size_t size, uint64_t value);
void vr_flat_reference(struct vr_flat *flat, unsigned slot, uint32_t object);
uint32_t vr_flat_end(struct vr_flat *flat);

// Completes the message. What was built is at vr_flat_bytes(), `used` bytes long.
void vr_flat_finish(struct vr_flat *flat, uint32_t root);
VR_INLINE const uint8_t *vr_flat_bytes(const struct vr_flat *flat) { return flat->bytes + (flat->capacity - flat->used); }

#endif
