// embedded.h: reads the recordings in a page written by `vram view`, in order, as a stream.
#ifndef CLI_EMBEDDED_H
#define CLI_EMBEDDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EMBEDDED_HEAD = 4096, EMBEDDED_NAME = 256, EMBEDDED_TEXT = 16384 };

struct embedded {
    size_t (*read)(void *context, void *buffer, size_t capacity); // reads the page's text; as in struct vram_input
    void *context;
    const char *error; // NULL if nothing failed
    size_t at, filled;
    uint32_t bits; // decoded base64 bits that do not make a byte yet
    unsigned bit_count;
    char text[EMBEDDED_TEXT];
};

// Returns whether text with this beginning is a page of `vram view`. Needs EMBEDDED_HEAD bytes, or the whole text if it is shorter.
bool embedded_is_page(const char *head, size_t length);
// Advances to the next recording in the page and stores its name, cut to EMBEDDED_NAME - 1 bytes. Returns false if there is no other
// recording, or if reading fails (->error).
bool embedded_next(struct embedded *page, char name[EMBEDDED_NAME]);
// Reads that recording. Returns `capacity`, less at its end, SIZE_MAX for damage (->error).
size_t embedded_read(struct embedded *page, void *buffer, size_t capacity);

#endif
