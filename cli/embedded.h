// embedded.h: the recordings in a page that `vram view` wrote, one after the other, as the page's text goes by.
#ifndef CLI_EMBEDDED_H
#define CLI_EMBEDDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EMBEDDED_HEAD = 4096, EMBEDDED_NAME = 256, EMBEDDED_TEXT = 16384 };

struct embedded {
    size_t (*read)(void *context, void *buffer, size_t capacity); // of the page's text; as a struct vram_input's
    void *context;
    const char *error; // NULL while all is well
    size_t at, filled;
    uint32_t bits; // of base64 digits that are no byte yet
    unsigned bit_count;
    char text[EMBEDDED_TEXT];
};

// Whether a text that begins so is a page of `vram view`; EMBEDDED_HEAD bytes, or all there are, tell.
bool embedded_is_page(const char *head, size_t length);
// Steps to the next recording in the page and gives its name (cut to EMBEDDED_NAME - 1 bytes). False when there is no further one, or
// the text cannot be read on (->error).
bool embedded_next(struct embedded *page, char name[EMBEDDED_NAME]);
// Bytes of that recording: `capacity`, less at its end, SIZE_MAX for damage (->error).
size_t embedded_read(struct embedded *page, void *buffer, size_t capacity);

#endif
