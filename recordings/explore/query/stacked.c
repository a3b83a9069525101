#include "explore/query/stacked.h"

#include "explore/query/window.h"

// Steps of all shapes together that an answer may have.
enum { MOST_STEPS = 200000 };

// The largest total in the window, the state before it included.
static enum vram_status largest_total(const struct vr_shapes *shapes, enum vr_curve_kind kind, double *top) {
    const struct vr_curve *curve = NULL;
    VR_TRY(vr_explored_curve(shapes->device, kind, &curve));
    const struct vr_window *window = &shapes->window;
    int64_t low, high;
    vr_curve_extremes(curve, window->first, window->end, &low, &high);
    *top = high < 1 ? 1 : (double)high;
    return VRAM_OK;
}

enum vram_status vr_stacked_build(const struct vr_shapes *shapes, const uint32_t *rows, size_t count, struct vr_stacking *stacking) {
    const struct vr_window *window = &shapes->window;
    struct vr_stack_window how = {.first = window->first,
                                  .end = window->end,
                                  .time_us = shapes->span.time_us,
                                  .grain = (window->to - window->from) / (double)shapes->pixels / 2,
                                  .most_steps = MOST_STEPS};
    for (;; how.grain = how.grain * 4 + 1) {
        const enum vram_status status = vr_stacking_build(shapes->lifetimes, rows, count, &how, stacking);
        if (status != VRAM_LIMIT) return status;
    }
}

static void put_stacked_steps(const struct vr_shapes *shapes, const struct vr_stacking *stacking) {
    struct vr_answer *answer = shapes->query->answer;
    const size_t first = vr_answer_column(answer, "first_step", VR_U32);
    const size_t position = vr_answer_column(answer, "position", VR_F64), base = vr_answer_column(answer, "base", VR_F64);
    for (size_t i = 0; i < stacking->count; i++) {
        vr_answer_u32(answer, first, (uint32_t)stacking->first_step[i]);
        for (size_t s = stacking->first_step[i]; s < stacking->first_step[i + 1]; s++) {
            const bool begins = s == stacking->first_step[i];
            vr_answer_f64(answer, position,
                          begins ? vr_shapes_begin(shapes, i) : vr_window_position(&shapes->window, stacking->step[s].event));
            vr_answer_f64(answer, base, (double)stacking->step[s].base_bytes);
        }
    }
    vr_answer_u32(answer, first, (uint32_t)stacking->first_step[stacking->count]);
}

static int stacked_by_event(const void *a, const void *b) {
    const struct vr_stack_step *x = a, *y = b;
    return (x->event > y->event) - (x->event < y->event);
}

// What all shapes together have, as changes by event; base_bytes is the total after the change.
static enum vram_status totals_of(const struct vr_shapes *shapes, const struct vr_stacking *stacking, struct vr_stack_step **totals,
                                  size_t *count) {
    const struct vr_lifetimes *lifetimes = shapes->lifetimes;
    struct vr_stack_step *list = malloc((2 * stacking->count + 1) * sizeof *list);
    if (list == NULL) return VRAM_NO_HOST_MEMORY;
    size_t filled = 0;
    for (size_t i = 0; i < stacking->count; i++) {
        const uint32_t r = stacking->row[i];
        list[filled++] = (struct vr_stack_step){stacking->step[stacking->first_step[i]].event, lifetimes->size_bytes[r]};
        if (lifetimes->death[r] < shapes->window.end)
            list[filled++] = (struct vr_stack_step){lifetimes->death[r], 0 - lifetimes->size_bytes[r]};
    }
    qsort(list, filled, sizeof *list, stacked_by_event);
    for (size_t i = 1; i < filled; i++) list[i].base_bytes += list[i - 1].base_bytes;
    *totals = list;
    *count = filled;
    return VRAM_OK;
}

// The largest of each total in a pixel's events, from the value that it begins with.
static void put_totals(const struct vr_curve *const *curves, const size_t *columns, struct vr_answer *answer, size_t first, size_t end) {
    for (size_t k = 0; k < VR_CURVE_COUNT; k++) {
        int64_t low, high;
        vr_curve_extremes(curves[k], first, end, &low, &high);
        vr_answer_f64(answer, columns[k], (double)high);
    }
}

// Where a pixel ends. One of many events ends a fraction of itself earlier or later, where totals are kept.
static size_t pixel_end(const struct vr_shapes *shapes, int64_t pixel, size_t first) {
    const struct vr_window *window = &shapes->window;
    const double edge = window->from + (window->to - window->from) * (double)(pixel + 1) / (double)shapes->pixels;
    const size_t end = vr_window_event(window, shapes->device, edge);
    if (end < first) return first;
    if (pixel + 1 == shapes->pixels || end - first < 4 * VR_CURVE_BUCKET) return end;
    return end / VR_CURVE_BUCKET * VR_CURVE_BUCKET;
}

// Per pixel: what the shapes have at its end, and the largest totals in it.
static enum vram_status put_pixels(const struct vr_shapes *shapes, const struct vr_stacking *stacking) {
    static const char *const names[VR_CURVE_COUNT] = {"allocated", "active", "reserved"};
    struct vr_answer *answer = shapes->query->answer;
    const struct vr_window *window = &shapes->window;
    const struct vr_curve *curves[VR_CURVE_COUNT] = {NULL};
    size_t columns[VR_CURVE_COUNT], count = 0, next = 0;
    struct vr_stack_step *totals = NULL;
    for (size_t k = 0; k < VR_CURVE_COUNT; k++) VR_TRY(vr_explored_curve(shapes->device, (enum vr_curve_kind)k, &curves[k]));
    VR_TRY(totals_of(shapes, stacking, &totals, &count));
    const size_t drawn = vr_answer_column(answer, "drawn", VR_F64);
    for (size_t k = 0; k < VR_CURVE_COUNT; k++) columns[k] = vr_answer_column(answer, names[k], VR_F64);
    size_t first = window->first;
    for (int64_t p = 0; p < shapes->pixels; p++) {
        const size_t end = pixel_end(shapes, p, first), reached = end > window->first ? end : window->first + 1;
        while (next < count && totals[next].event < reached) next++;
        vr_answer_f64(answer, drawn, next == 0 ? 0 : (double)totals[next - 1].base_bytes);
        put_totals(curves, columns, answer, first, end);
        first = end;
    }
    free(totals);
    return VRAM_OK;
}

// Where the memory of a shape was given back by the program, while streams still used it.
static enum vram_status put_requested(const struct vr_shapes *shapes) {
    struct vr_answer *answer = shapes->query->answer;
    const struct vr_lifetimes *allocated = NULL;
    VR_TRY(vr_explored_lifetimes(shapes->device, VR_LIFETIME_ALLOCATED, &allocated));
    const size_t requested = vr_answer_column(answer, "requested", VR_F64);
    for (size_t i = 0; i < shapes->count; i++) {
        const size_t row = vr_other_row(shapes->lifetimes, allocated, shapes->row[i]);
        vr_answer_f64(answer, requested, row == SIZE_MAX ? vr_shapes_begin(shapes, i) : vr_axis_span_death(&shapes->span, allocated, row));
    }
    return VRAM_OK;
}

static enum vram_status put_all(const struct vr_shapes *shapes, const struct vr_stacking *stacking) {
    VR_TRY(vr_shapes_put(shapes));
    put_stacked_steps(shapes, stacking);
    if (shapes->kind == VR_SHAPES_ACTIVE) VR_TRY(put_requested(shapes));
    return put_pixels(shapes, stacking);
}

enum vram_status vr_stacked_answer(struct vr_shapes *shapes, enum vr_shape_kind shape_kind, enum vr_curve_kind kind) {
    double top = 1;
    struct vr_stacking stacking = {0};
    VR_TRY(largest_total(shapes, kind, &top));
    vr_json_double(&shapes->query->answer->json, "top_bytes", top);
    VR_TRY(vr_shapes_pick(shapes, shape_kind, top));
    VR_TRY(vr_stacked_build(shapes, shapes->row, shapes->count, &stacking));
    const enum vram_status status = put_all(shapes, &stacking);
    vr_stacking_release(&stacking);
    return status;
}
