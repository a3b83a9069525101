// drawn_shapes.h: the allocations or segments of a window that are drawn individually, and their members of an answer.
#ifndef VR_EXPLORE_QUERY_DRAWN_SHAPES_H
#define VR_EXPLORE_QUERY_DRAWN_SHAPES_H

#include "explore/query/selection.h"
#include "explore/tables/picture_rows.h"

// ---- The allocations (or segments) of a window that are drawn individually, and their members of an answer.

// Maximum number of shapes and of pixels in an answer.
enum { VR_MOST_SHAPES = 8192, VR_MOST_PIXELS = 16384 };

struct vr_shapes {
    const struct vr_query *query;
    struct vr_explored_recording *recording;
    struct vr_explored_device *device;
    enum vr_shape_kind kind;
    const struct vr_lifetimes *lifetimes;
    struct vr_window window;
    struct vr_axis_span span;      // the part of the history in the window
    int64_t pixels, height, limit; // height 0: keep shapes that are too small to see
    int64_t event;                 // the selected moment, if the query names one
    uint32_t *row;                 // ascending; owned
    size_t count;
    size_t in_window; // number of allocations live somewhere in the window
};

// Reads the query's parameters (rec, device, axis, from, to, pixels, height, limit) without picking shapes. INVALID_ARGUMENT, LIMIT,
// NO_HOST_MEMORY.
enum vram_status vr_shapes_init(const struct vr_query *query, struct vr_shapes *shapes);
// Picks the rows with the largest areas in a picture that is `top` bytes high. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_shapes_pick(struct vr_shapes *shapes, enum vr_shape_kind kind, double top);
void vr_shapes_release(struct vr_shapes *shapes);

// Return where shape i begins and ends in the window.
VR_INLINE double vr_shapes_begin(const struct vr_shapes *shapes, size_t i) {
    return vr_axis_span_birth(&shapes->span, shapes->lifetimes, shapes->row[i]);
}
VR_INLINE double vr_shapes_end(const struct vr_shapes *shapes, size_t i) {
    return vr_axis_span_death(&shapes->span, shapes->lifetimes, shapes->row[i]);
}

// Appends the name of a pool: "default pool" for (0, 0), "private pool (0, 1)" for another, "pool not recorded" if it is unknown.
void vr_pool_name(bool known, uint64_t first, uint64_t second, struct vr_text *text);

// A grouping of rows: a number for each group, and its name.
struct vr_naming {
    void *user;
    enum vram_status (*key)(void *user, size_t row, uint64_t *key);
    void (*name)(void *user, uint64_t key, struct vr_text *text);
};
// Adds the members `from`, `to`, `allocations`, and `event_position` if the query has an `event`; the columns `row` (of the allocated
// lifetimes; UINT32_MAX: memory that was freed before the recording), `stack`, `flags`, `bytes`, `end`. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_shapes_put(const struct vr_shapes *shapes);
// Adds the column `group` and the member `groups` with their names, the group with the largest area first; groups after the 512th are
// combined in one last group. NO_HOST_MEMORY.
enum vram_status vr_shapes_put_groups(const struct vr_shapes *shapes, const struct vr_naming *naming);
// Adds the same, grouped by the parameters `by` (default: call sites) and `regex`. INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_shapes_put_keys(const struct vr_shapes *shapes);

// ---- The common part of answers with stacked shapes.

// Stacks rows of the shapes' lifetimes (ascending), more and more coarsely until the steps fit in an answer. Release by
// vr_stacking_release(). NO_HOST_MEMORY.
enum vram_status vr_stacked_build(const struct vr_shapes *shapes, const uint32_t *rows, size_t count, struct vr_stacking *stacking);
// Adds all of an answer except its groups: shapes of a kind, picked and stacked, and the totals along the window. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_stacked_answer(struct vr_shapes *shapes, enum vr_shape_kind shape_kind, enum vr_curve_kind kind);

#endif
