// quoted.h: strings of JSON text, found in a input and decoded. How a failure is told is the reader's.
#ifndef VR_SNAPSHOT_QUOTED_H
#define VR_SNAPSHOT_QUOTED_H

#include "snapshot/input.h"

// How long the string at input->next, its opening quote, is without its quotes; all of it and the closing quote are at hand then.
// *escaped: it has a backslash. BAD_INPUT (and no message) when the text ends inside it; IO, NO_HOST_MEMORY.
VRAM_NODISCARD enum vram_status vr_quoted_measure(struct vr_input *input, size_t *length, bool *escaped);
// Decodes the escapes of `length` bytes between quotes. bytes has room for as many; *used is how many it got. False for a malformed escape.
bool vr_quoted_decode(const char *text, size_t length, char *bytes, size_t *used);

#endif
