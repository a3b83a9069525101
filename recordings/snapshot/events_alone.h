// events_alone.h: recordings of events alone, for formats and files without a picture of the end.
#ifndef VR_SNAPSHOT_EVENTS_ALONE_H
#define VR_SNAPSHOT_EVENTS_ALONE_H

#include "model/builder.h"
#include "model/columns.h"
#include "snapshot/input.h"

// ---- The segments and blocks at the end of a recording that has no picture of them, because its program was killed.

// How many events of each device the picture in the model knows already; devices beyond `count`: none.
struct vr_picture_marks {
    size_t *device;
    size_t count;
    size_t host;
};
// Room for `count` devices. NO_HOST_MEMORY.
enum vram_status vr_picture_marks_set(struct vr_picture_marks *marks, size_t count);

// Moves the model's picture (none is empty) on by the events after the marks: segments come and go, blocks are allocated and freed. A live
// block that lies in no segment gets one of its own. The model must have passed vr_model_check(). The tables are charged to the budget.
// LIMIT, NO_HOST_MEMORY; the model can then only be released.
enum vram_status vr_picture_advance(struct vr_model *model, const struct vr_picture_marks *marks, struct vr_budget *budget);

// ---- A recording made of events alone, for formats that know no segments: the logs of other allocators and profilers.

enum { VR_EVENTLIST_DEVICES = 1024 }; // device numbers are below

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

// An empty list, whose tables grow with what `input` gives. NO_HOST_MEMORY. Release it also after a failure.
enum vram_status vr_event_list_init(struct vr_event_list *list, struct vr_input *input);
void vr_event_list_release(struct vr_event_list *list, struct vr_input *input);
// Appends an event of a device, which must be below VR_EVENTLIST_DEVICES. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_event_list_add(struct vr_event_list *list, uint32_t device, const struct vr_event_row *row);
// Appends a mark. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_event_list_mark(struct vr_event_list *list, int64_t device, const char *stage, uint32_t name, int64_t time_us);
// Makes *model (zeroed) of the list; what is live at the end becomes segments of one block. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_event_list_finish(struct vr_event_list *list, const struct vr_input *input, struct vr_model *model,
                                      struct vram_error *error);

#endif
