// drawn_shapes.h: the allocations or segments of a window that are drawn each for itself, and how they go into an answer.
#ifndef VR_EXPLORE_QUERY_DRAWN_SHAPES_H
#define VR_EXPLORE_QUERY_DRAWN_SHAPES_H

#include "explore/query/selection.h"
#include "explore/tables/picture_rows.h"

// ---- The allocations (or segments) of a window that are drawn each for itself, and how they stand in an answer.

// As many shapes and pixels as an answer may have.
enum { VR_MOST_SHAPES = 8192, VR_MOST_PIXELS = 16384 };

struct vr_shapes {
    const struct vr_query *query;
    struct vr_explored_recording *recording;
    struct vr_explored_device *device;
    enum vr_shape_kind kind;
    const struct vr_lifetimes *lifetimes;
    struct vr_window window;
    struct vr_axis_span span;      // the window's part of the history
    int64_t pixels, height, limit; // height 0: shapes too small to see are not left out
    int64_t event;                 // the selected moment, where the query names one
    uint32_t *row;                 // ascending; owned
    size_t count;
    size_t in_window; // allocations that live somewhere in the window
};

// Takes the query apart (rec, device, axis, from, to, pixels, height, limit); nothing is picked yet. INVALID_ARGUMENT, LIMIT,
// NO_HOST_MEMORY.
enum vram_status vr_shapes_init(const struct vr_query *query, struct vr_shapes *shapes);
// Picks the rows of the largest areas in a picture that is `top` bytes high. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_shapes_pick(struct vr_shapes *shapes, enum vr_shape_kind kind, double top);
void vr_shapes_release(struct vr_shapes *shapes);

// Where shape i begins and ends in the window.
VR_INLINE double vr_shapes_begin(const struct vr_shapes *shapes, size_t i) {
    return vr_axis_span_birth(&shapes->span, shapes->lifetimes, shapes->row[i]);
}
VR_INLINE double vr_shapes_end(const struct vr_shapes *shapes, size_t i) {
    return vr_axis_span_death(&shapes->span, shapes->lifetimes, shapes->row[i]);
}

// "pool not recorded", "default pool" for (0, 0), else "private pool (0, 1)".
void vr_pool_name(bool known, uint64_t first, uint64_t second, struct vr_text *text);

// How rows are grouped: a number per group, and its name.
struct vr_naming {
    void *user;
    enum vram_status (*key)(void *user, size_t row, uint64_t *key);
    void (*name)(void *user, uint64_t key, struct vr_text *text);
};
// Members `from`, `to`, `allocations`, and `event_position` where the query has an `event`; columns `row` (of the kind of lifetime
// `allocated`; UINT32_MAX: memory that was given back before the recording), `stack`, `flags`, `bytes`, `end`. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_shapes_put(const struct vr_shapes *shapes);
// Column `group` and the member `groups`: the names, the group with the largest area first; what comes after the 512th is the last one.
// NO_HOST_MEMORY.
enum vram_status vr_shapes_put_groups(const struct vr_shapes *shapes, const struct vr_naming *naming);
// The same by the parameters `by` (call sites where it is not there) and `regex`. INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_shapes_put_keys(const struct vr_shapes *shapes);

// ---- What the answers with stacked shapes have in common.

// Stacks rows of the shapes' lifetimes (ascending), coarser and coarser until an answer can carry it. Released by vr_stacking_release().
// NO_HOST_MEMORY.
enum vram_status vr_stacked_build(const struct vr_shapes *shapes, const uint32_t *rows, size_t count, struct vr_stacking *stacking);
// All of an answer but its groups: shapes of a kind, picked and stacked, and the totals along the window. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_stacked_answer(struct vr_shapes *shapes, enum vr_shape_kind shape_kind, enum vr_curve_kind kind);

#endif
