// fit_place.h: places in programs, as `vram fit` reads and writes them.
//
// A stack is text, a frame a line, innermost first: "FUNCTION at FILE:LINE". A call site is "FILE:LINE:FUNCTION".
#ifndef CLI_FIT_PLACE_H
#define CLI_FIT_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#define FIT_FRAME_CAPACITY 512

struct fit_frame {
    char function[FIT_FRAME_CAPACITY], file[FIT_FRAME_CAPACITY];
    unsigned line; // 0: it is not of that form, and all of it is in `function`
};

// Reads the frame that *stack begins with, and moves *stack to the next one. False at the end.
bool fit_frame_next(const char **stack, struct fit_frame *frame);
// The innermost frame of the program's own, else the innermost one of all. False where there is none.
bool fit_frame_own(const char *stack, struct fit_frame *frame);
// Whether it is of Python, of a package or of adapters/fit, and not of the program.
bool fit_frame_is_installed(const struct fit_frame *frame);
// Its call site; of a frame of another form, what it says.
void fit_frame_site(const struct fit_frame *frame, char *site, size_t capacity);
// A call site, or a file, without the folders of its file but the last. Points into `site`.
const char *fit_site_short(const char *site);

#endif
