// device_view.h: one device of a model: its events, segments and blocks.
#ifndef VR_ANALYZE_DEVICE_VIEW_H
#define VR_ANALYZE_DEVICE_VIEW_H

#include "model/model.h"
#include "model/platform.h"

// Borrows everything.
struct vr_view {
    const struct vr_model *model;
    uint32_t device;
    const struct vr_history *history; // never NULL; may have no events
    const size_t *segments;           // rows of model->segments, ascending
    size_t segment_count;
    const size_t *blocks; // rows of model->blocks, segment by segment
    size_t block_count;
    bool python; // some stack of the recording has Python frames
    enum vr_platform platform;
    bool windows; // frames name Windows paths
};

// Returns an event's change of reserved bytes; wraps for damaged files.
VR_INLINE uint64_t vr_reserved_delta(const struct vr_history *history, size_t event) {
    switch (history->action[event]) {
    case VR_ACTION_SEGMENT_ALLOC:
    case VR_ACTION_SEGMENT_MAP: return history->size_bytes[event];
    case VR_ACTION_SEGMENT_FREE:
    case VR_ACTION_SEGMENT_UNMAP: return 0 - history->size_bytes[event];
    default: return 0;
    }
}

// The views of all devices with an event or a segment, by ascending number. Owns the rows.
struct vr_views {
    struct vr_view *view;
    size_t count;
    size_t *rows;
};

// Builds the views. LIMIT for a model with more devices than any machine has; NO_HOST_MEMORY. *views is unchanged on failure. The model
// must outlive the views.
enum vram_status vr_views_build(const struct vr_model *model, struct vr_views *views, struct vram_error *error);
// Accepts zeroed views.
void vr_views_release(struct vr_views *views);

// The text "device 3" or "pinned host memory".
struct vr_device_name {
    char text[24];
};
struct vr_device_name vr_device_name(uint32_t device, bool is_host);
VR_INLINE struct vr_device_name vr_view_name(const struct vr_view *view) {
    return vr_device_name(view->device, vr_model_is_host(view->model, view->device));
}

// Returns the first event of run p if `events` are divided into point_count equal runs; p may be point_count (the end).
VR_INLINE size_t vr_point_first(size_t events, size_t point_count, size_t p) {
    return events / point_count * p + events % point_count * p / point_count;
}

// ---- The device to report on if none is named, as used by the command, `vram mcp` and the page.

// The properties of a device that decide the choice.
struct vr_trouble {
    uint64_t ooms;       // failed requests
    uint64_t peak_bytes; // of allocated bytes
    uint64_t events;
    bool is_host;
};

// Reasons for the choice of a device, in order of precedence.
enum vr_choice { VR_CHOICE_NAMED, VR_CHOICE_ONLY, VR_CHOICE_OOM, VR_CHOICE_PEAK, VR_CHOICE_EVENTS };

// Finds the index of the worst view, of which there must be at least one, and the reason. Computes peaks only if failed requests do not
// decide. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_views_in_trouble(const struct vr_views *views, size_t *index, enum vr_choice *why);

#endif
