#include "base/sink.h"

#include <stdarg.h>
#include <stdio.h>

struct vr_sink vr_sink_begin(char *text, size_t capacity) {
    if (capacity != 0) text[0] = '\0';
    return (struct vr_sink){text, capacity, 0};
}

void vr_sink_printf(struct vr_sink *sink, const char *format, ...) {
    const size_t room = sink->length < sink->capacity ? sink->capacity - sink->length : 0;
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(room == 0 ? NULL : sink->text + sink->length, room, format, arguments);
    va_end(arguments);
    if (written > 0) sink->length += (size_t)written;
}
