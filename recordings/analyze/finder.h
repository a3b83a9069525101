// finder.h: does a text of the recording contain what somebody looks for: words as they stand, or an extended regular expression.
#ifndef VR_ANALYZE_FINDER_H
#define VR_ANALYZE_FINDER_H

#include <regex.h>

#include "base/base.h"

// Texts are looked at up to here: a stranger's file may hold names of megabytes.
enum { VR_FINDER_BYTES = 4096 };

// One thread at a time. A zeroed one may be released.
struct vr_finder {
    char *words; // lower case; NULL: `expression` counts
    size_t length;
    regex_t expression;
    bool compiled;
};

// Upper and lower case are the same. INVALID_ARGUMENT with a sentence for text that is empty or longer than 256 bytes, for an expression
// that is none, and for one whose repetitions or back references could cost more than the text it is asked about; NO_HOST_MEMORY.
enum vram_status vr_finder_init(struct vr_finder *finder, const char *text, bool regex, struct vram_error *error);
void vr_finder_release(struct vr_finder *finder);
bool vr_finder_matches(const struct vr_finder *finder, const char *text);
// The part that stands for a match of an expression: its first group, or all of it if it has none. False where nothing matches.
bool vr_finder_part(const struct vr_finder *finder, const char *text, size_t *start, size_t *length);

#endif
