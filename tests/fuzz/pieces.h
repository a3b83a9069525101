// pieces.h: bytes in memory, handed over a few at a time: what a reader does at the ends of its buffer.
#ifndef FUZZ_PIECES_H
#define FUZZ_PIECES_H

#include <string.h>

#include "vram/recording.h"

struct pieces {
    const void *data; // borrowed; moves on
    size_t left;
};

static inline size_t pieces_read(void *context, void *buffer, size_t capacity) {
    enum { PIECE = 7 }; // divides no word, and no buffer
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
