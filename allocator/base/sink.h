// sink.h: text into a buffer that the caller gave, as snprintf() writes: what does not fit is counted all the same.
#ifndef VR_BASE_SINK_H
#define VR_BASE_SINK_H

#include "base/base.h"

struct vr_sink {
    char *text; // NUL-terminated where capacity is not 0
    size_t capacity;
    size_t length; // that the whole text takes, without the NUL; may be more than fits
};

// text may be NULL when capacity is 0.
struct vr_sink vr_sink_begin(char *text, size_t capacity);
void vr_sink_printf(struct vr_sink *sink, const char *format, ...) VRAM_PRINTF(2, 3);

#endif
