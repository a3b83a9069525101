// pieces.h: passes bytes to a reader a few at a time, to test the ends of its buffer.
#ifndef FUZZ_PIECES_H
#define FUZZ_PIECES_H

#include <string.h>

#include "vram/recording.h"

struct pieces {
    const void *data; // borrowed; advances
    size_t left;
};

static inline size_t pieces_read(void *context, void *buffer, size_t capacity) {
    enum { PIECE = 7 }; // does not divide a word or a buffer
    struct pieces *pieces = context;
    size_t count = PIECE < capacity ? PIECE : capacity;
    if (count > pieces->left) count = pieces->left;
    memcpy(buffer, pieces->data, count);
    pieces->data = (const char *)pieces->data + count;
    pieces->left -= count;
    return count;
}

static inline struct vram_input pieces_input(struct pieces *pieces) { return (struct vram_input){.read = pieces_read, .context = pieces}; }

#endif
