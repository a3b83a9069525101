#include "analyze/step_marks.h"

#include "base/map.h"

uint32_t vr_step_mark_of_event(const struct vr_view *view, size_t event) {
    const struct vr_model *model = view->model;
    const struct vr_history *history = view->history;
    if (history->action[event] != VR_ACTION_USER_DEFINED && history->action[event] != VR_ACTION_ANNOTATE) return 0;
    const uint32_t stack = history->stack[event];
    if (history->metadata[event] != 0 || model->stacks.offset[stack] == model->stacks.offset[stack + 1]) return history->metadata[event];
    return model->frames.filename[model->stacks.frame[model->stacks.offset[stack]]];
}

bool vr_step_mark_begins(const struct vr_view *view, const struct vr_annotation *annotation) {
    const bool concerns = annotation->device < 0 || annotation->device == (int64_t)view->device;
    return concerns && strcmp(vr_model_string(view->model, annotation->stage), "END") != 0;
}

struct counting {
    struct vr_step_marks marks;
    size_t capacity;
    struct vr_map known; // name -> 1 + place among the marks
};

static enum vram_status add_mark(struct counting *counting, uint32_t name) {
    struct vr_step_marks *marks = &counting->marks;
    const uint64_t place = vr_map_get(&counting->known, name);
    if (place != 0) {
        marks->mark[place - 1].count++;
        return VRAM_OK;
    }
    VR_TRY(vr_grow((void **)&marks->mark, &counting->capacity, marks->count + 1, sizeof *marks->mark));
    marks->mark[marks->count++] = (struct vr_step_mark){.name = name, .count = 1};
    return vr_map_set(&counting->known, name, marks->count);
}

static enum vram_status add_all(struct counting *counting, const struct vr_view *view) {
    for (size_t i = 0; i < view->model->annotation_count; i++) {
        const struct vr_annotation *annotation = &view->model->annotations[i];
        if (annotation->name != 0 && vr_step_mark_begins(view, annotation)) VR_TRY(add_mark(counting, annotation->name));
    }
    for (size_t event = 0; event < view->history->count; event++) {
        const uint32_t name = vr_step_mark_of_event(view, event);
        if (name != 0) VR_TRY(add_mark(counting, name));
    }
    return VRAM_OK;
}

static int most_often_first(const void *a, const void *b) {
    const struct vr_step_mark *x = a, *y = b;
    return x->count != y->count ? VR_ORDER(y->count, x->count) : VR_ORDER(x->name, y->name);
}

enum vram_status vr_step_marks_find(const struct vr_view *view, struct vr_step_marks *marks) {
    struct counting counting = {.capacity = 0};
    const enum vram_status status = add_all(&counting, view);
    vr_map_release(&counting.known);
    if (status != VRAM_OK) {
        free(counting.marks.mark);
        return status;
    }
    if (counting.marks.count != 0) qsort(counting.marks.mark, counting.marks.count, sizeof *counting.marks.mark, most_often_first);
    *marks = counting.marks;
    return VRAM_OK;
}

void vr_step_marks_release(struct vr_step_marks *marks) {
    free(marks->mark);
    *marks = (struct vr_step_marks){.mark = NULL};
}
