// device_view.h: one device of a model: its events, and which segments and blocks are its own.
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
    const size_t *blocks; // rows of model->blocks, of those segments in order
    size_t block_count;
    bool python; // of the whole recording: some stack has Python frames
    enum vr_platform platform;
    bool windows; // and files of frames are paths of Windows
};

// What an event does to the memory held from the driver; sums wrap, as a damaged file's may.
VR_INLINE uint64_t vr_reserved_delta(const struct vr_history *history, size_t event) {
    switch (history->action[event]) {
    case VR_ACTION_SEGMENT_ALLOC:
    case VR_ACTION_SEGMENT_MAP: return history->size_bytes[event];
    case VR_ACTION_SEGMENT_FREE:
    case VR_ACTION_SEGMENT_UNMAP: return 0 - history->size_bytes[event];
    default: return 0;
    }
}

// The views of all devices of a model that have an event or a segment, by ascending number. Owns the rows.
struct vr_views {
    struct vr_view *view;
    size_t count;
    size_t *rows;
};

// LIMIT for a model of more devices than any machine has; NO_HOST_MEMORY. *views is untouched on failure. The model must outlive it.
enum vram_status vr_views_build(const struct vr_model *model, struct vr_views *views, struct vram_error *error);
// A zeroed one is fine.
void vr_views_release(struct vr_views *views);

// "device 3" or "pinned host memory".
struct vr_device_name {
    char text[24];
};
struct vr_device_name vr_device_name(uint32_t device, bool is_host);
VR_INLINE struct vr_device_name vr_view_name(const struct vr_view *view) {
    return vr_device_name(view->device, vr_model_is_host(view->model, view->device));
}

// The first event of run p when `events` are divided into point_count equal runs; p may be point_count (the end).
VR_INLINE size_t vr_point_first(size_t events, size_t point_count, size_t p) {
    return events / point_count * p + events % point_count * p / point_count;
}

// ---- Which device of a recording an answer is about where none is named. The command, `vram mcp` and the page choose by it.

// What is known of a device for the choice.
struct vr_trouble {
    uint64_t ooms;       // requests that failed
    uint64_t peak_bytes; // allocated
    uint64_t events;
    bool is_host;
};

// Why a device was chosen, in the order in which the reasons count.
enum vr_choice { VR_CHOICE_NAMED, VR_CHOICE_ONLY, VR_CHOICE_OOM, VR_CHOICE_PEAK, VR_CHOICE_EVENTS };

// The worst of the views, of which there is one at least: its place, and why. Peaks are worked out only where failed requests do not
// decide. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_views_in_trouble(const struct vr_views *views, size_t *index, enum vr_choice *why);

#endif
