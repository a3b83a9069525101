// step_marks.h: the marks of a recording by name, as steps can begin at them.
#ifndef VR_ANALYZE_STEP_MARKS_H
#define VR_ANALYZE_STEP_MARKS_H

#include "analyze/view.h"

struct vr_step_mark {
    uint32_t name; // string id
    size_t count;  // how often it begins
};

// By falling count, then by the number of their name.
struct vr_step_marks {
    struct vr_step_mark *mark;
    size_t count;
};

// Annotations and marks among the events that concern the device. NO_HOST_MEMORY; *marks is untouched then.
enum vram_status vr_step_marks_find(const struct vr_view *view, struct vr_step_marks *marks);
void vr_step_marks_release(struct vr_step_marks *marks);

// The name of a mark among the events: torch 2.4 squeezed annotations into the history, as one frame whose file name is the text;
// recordings of whole programs name them by metadata. 0: the event is no mark.
uint32_t vr_step_mark_of_event(const struct vr_view *view, size_t event);
// Whether an annotation begins something on the view's device.
bool vr_step_mark_begins(const struct vr_view *view, const struct vr_annotation *annotation);

#endif
