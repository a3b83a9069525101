// exact_difference.c: what an exact replay books as different.
#include "replay/exact_replay.h"

enum { KEEP_BY_DEFAULT = 16 };

enum vram_status vr_exact_differ(struct vr_exact *exact, const struct vram_difference *difference) {
    struct vram_exact_device *device = exact->device;
    const size_t keep = exact->options->keep_differences == 0 ? KEEP_BY_DEFAULT : exact->options->keep_differences;
    device->difference_count++;
    if (device->differences_kept >= keep) return VRAM_OK;
    VR_TRY(vr_grow((void **)&device->differences, &exact->difference_capacity, device->differences_kept + 1, sizeof *difference));
    struct vram_difference *kept = &device->differences[device->differences_kept++];
    *kept = *difference;
    if (kept->our_address >= VR_STAGE_HIGH) kept->our_address = 0;
    return VRAM_OK;
}

struct vram_difference vr_exact_difference(const struct vr_exact *exact, enum vram_difference_kind kind, size_t event) {
    const struct vr_history *history = exact->recorded->history;
    return (struct vram_difference){.kind = kind,
                                    .event_index = event,
                                    .stream = vr_entry_stream(history, event),
                                    .size_bytes = history->size_bytes[event],
                                    .recorded_address = history->address[event]};
}
