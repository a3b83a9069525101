// events_alone.h: recordings that consist of events only, for formats and files without a final picture.
#ifndef VR_SNAPSHOT_EVENTS_ALONE_H
#define VR_SNAPSHOT_EVENTS_ALONE_H

#include "model/builder.h"
#include "model/columns.h"
#include "snapshot/input.h"

// ---- Derives the final segments and blocks of a recording that lacks them because its program was killed.

// The number of events of each device that the model's picture already includes; 0 for devices from `count` on.
struct vr_picture_marks {
    size_t *device;
    size_t count;
    size_t host;
};
// Makes room for `count` devices. NO_HOST_MEMORY.
enum vram_status vr_picture_marks_set(struct vr_picture_marks *marks, size_t count);

// Applies the events after the marks to the model's picture (which may be empty): maps and unmaps segments, allocates and frees blocks. A
// live block outside every segment gets a segment of its own. The model must have passed vr_model_check(). Charges the tables to the
// budget. LIMIT, NO_HOST_MEMORY; the model can then only be released.
enum vram_status vr_picture_advance(struct vr_model *model, const struct vr_picture_marks *marks, struct vr_budget *budget);

// ---- A recording made of events only, for formats without segments: logs of other allocators and profilers.

enum { VR_EVENTLIST_DEVICES = 1024 }; // device numbers are below this

// One event. Ids are the builder's.
struct vr_event_row {
    enum vr_action action;
    uint64_t address;
    uint64_t size_bytes;
    uint64_t stream;
    int64_t time_us;
    uint32_t thread;
    uint32_t stack;
    uint32_t has; // VR_HAS_ bits
};

// A device's events.
struct vr_event_lane {
    struct vr_history history;
    size_t capacity, held;
};

struct vr_event_list {
    struct vr_builder builder;
    struct vr_event_lane *lanes; // by device
    size_t lane_count;
    struct vr_annotation *annotations;
    size_t annotation_count;
    size_t annotation_capacity;
};

// Initializes an empty list, whose tables may grow with the bytes of `input`. NO_HOST_MEMORY. Release it even after a failure.
enum vram_status vr_event_list_init(struct vr_event_list *list, struct vr_input *input);
void vr_event_list_release(struct vr_event_list *list, struct vr_input *input);
// Appends an event of a device, which must be below VR_EVENTLIST_DEVICES. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_event_list_add(struct vr_event_list *list, uint32_t device, const struct vr_event_row *row);
// Appends a mark. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_event_list_mark(struct vr_event_list *list, int64_t device, const char *stage, uint32_t name, int64_t time_us);
// Turns the list into *model (zeroed); allocations that are live at the end become segments of one block. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_event_list_finish(struct vr_event_list *list, const struct vr_input *input, struct vr_model *model,
                                      struct vram_error *error);

#endif
