// live_model.h: copies of a live allocator become a model.
#ifndef VR_LIVE_LIVE_MODEL_H
#define VR_LIVE_LIVE_MODEL_H

#include "config/options.h"
#include "live/device_picture.h"
#include "live/oom_snapshot.h"
#include "live/tracer.h"
#include "model/model.h"

// The copy of one device.
struct vr_copied_device {
    uint32_t ordinal;
    struct vr_picture picture;
    struct vr_event *events;
    size_t event_count;
    bool overflowed; // older events were overwritten
};

// The copy of an allocator. Freed with vr_copied_release().
struct vr_copied {
    struct vr_tracer *tracer; // NULL: never had a history. Its table names the stacks
    struct vr_copied_device devices[VRAM_MAX_DEVICES + 1];
    size_t device_count;
    size_t history_count; // of the model: the largest ordinal plus one
    struct vr_mark *marks;
    size_t mark_count;
    struct vr_instant now;
    struct vr_options options;
    char *conf;
    uint64_t max_entries;
    bool has_history;
    bool segments_only;
    const struct vr_oom_facts *oom_facts; // of an OOM; NULL: not an OOM
    bool has_host;                        // the last device is pinned host memory
};
void vr_copied_release(struct vr_copied *copied);
// Copies the settings in force. NO_HOST_MEMORY.
enum vram_status vr_copy_settings(struct vram_allocator *allocator, struct vr_copied *copied);

// Makes the model, which is zeroed on entry and released by the caller, even on failure. Takes no lock. NO_HOST_MEMORY.
enum vram_status vr_live_model(const struct vr_copied *copied, struct vr_model *model);

#endif
