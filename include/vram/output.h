// vram/output.h: how the library hands text to whoever shows it. The library itself never prints.
#ifndef VRAM_OUTPUT_H
#define VRAM_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Receives text in pieces, in order; pieces are not NUL-terminated. false stops the writer, which then returns VRAM_IO.
typedef bool (*vram_write)(void *user, const char *bytes, size_t length);

// What the receiver of text for people can show. All-zero means 100 columns of plain ASCII.
struct vram_style {
    unsigned columns; // width of a line; less than 60 counts as 60; 0: 100
    bool colour;      // ANSI colour escapes
    bool unicode;     // bars and charts of block characters
};

#ifdef __cplusplus
}
#endif
#endif
