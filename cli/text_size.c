#include "text_size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ui.h"

enum {
    FRAME_BYTES = 40, // of keys, quotes and a line, as JSON has them
    ROW_BYTES = 160,  // of an event, a block or a segment without its stack
    MUCH = 10,        // times the input: said before it is written
    TOO_MUCH = 1000   // refused: recordings of real programs have up to 150
};
#define MUCH_FROM     ((uint64_t)64 << 20)
#define TOO_MUCH_FROM ((uint64_t)1 << 30)

// No sum wraps: what would is as much as can be.
static uint64_t plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static uint64_t stack_size(const struct vram_recording *recording, uint32_t stack) {
    uint64_t count = 0, sum = 0;
    const uint32_t *frames = vram_recording_stack(recording, stack, &count);
    struct vram_frame frame;
    for (uint64_t i = 0; i < count; i++) {
        if (vram_recording_frame(recording, frames[i], &frame)) sum = plus(sum, FRAME_BYTES + strlen(frame.name) + strlen(frame.filename));
    }
    return sum;
}

static uint64_t *stack_sizes(const struct vram_recording *recording) {
    const uint32_t count = vram_recording_stack_count(recording);
    uint64_t *sizes = calloc((size_t)count + 1, sizeof *sizes);
    for (uint32_t stack = 0; stack < count && sizes != NULL; stack++) sizes[stack] = stack_size(recording, stack);
    return sizes;
}

static uint64_t events_size(const struct vram_recording *recording, const uint64_t *sizes) {
    struct vram_recorded_event event;
    uint64_t sum = 0;
    for (uint32_t device = 0; device < vram_recording_device_count(recording); device++) {
        for (uint64_t i = 0; vram_recording_event(recording, device, i, &event); i++) sum = plus(sum, ROW_BYTES + sizes[event.stack]);
    }
    return sum;
}

uint64_t text_size(const struct vram_recording *recording, bool events_alone) {
    uint64_t *sizes = stack_sizes(recording);
    if (sizes == NULL) return 0;
    uint64_t sum = events_size(recording, sizes);
    struct vram_recorded_segment segment;
    struct vram_recorded_block block;
    for (uint64_t i = 0; !events_alone && vram_recording_segment(recording, i, &segment); i++)
        sum = plus(sum, 2 * ROW_BYTES + sizes[segment.stack]);
    for (uint64_t i = 0; !events_alone && vram_recording_block(recording, i, &block); i++) sum = plus(sum, ROW_BYTES + sizes[block.stack]);
    free(sizes);
    return sum;
}

bool text_size_is_good(const char *name, const char *format, uint64_t input_bytes, uint64_t text_bytes) {
    char size[UI_SIZE_CAPACITY];
    const uint64_t times = text_bytes / (input_bytes == 0 ? 1 : input_bytes);
    (void)ui_size(text_bytes, size);
    if (times >= TOO_MUCH && text_bytes >= TOO_MUCH_FROM) {
        ui_say("vram: %s: as %s it would be about %s, %" PRIu64 " times the input: each event has its stack written out; "
               "pickle and vram refer to it",
               name, format, size, times);
        return false;
    }
    if (times >= MUCH && text_bytes >= MUCH_FROM)
        ui_say("vram: %s: as %s it will be about %s, %" PRIu64 " times the input", name, format, size, times);
    return true;
}
