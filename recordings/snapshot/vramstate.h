// vramstate.h: the segments and blocks at the end of a recording that has no picture of them, because its program was killed.
#ifndef VR_SNAPSHOT_VRAMSTATE_H
#define VR_SNAPSHOT_VRAMSTATE_H

#include "model/builder.h"

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

#endif
