// picture_rows.h: selects the rows of a picture, the largest allocations of a window, and stacks them.
#ifndef VR_EXPLORE_TABLES_PICTURE_ROWS_H
#define VR_EXPLORE_TABLES_PICTURE_ROWS_H

#include "analyze/lifetimes.h"

// ---- The allocations with the largest area (bytes times lifetime) in a window, without looking at all of them. A tree over the rows of
// the lifetimes stores the largest area and size of each run of rows. A window clips lifetimes, so these are upper bounds; the runs with
// the highest bounds are opened first until enough rows are known exactly.

struct vr_largest;

// A part of the history. Positions are events or, with time_us, microseconds since the first event.
struct vr_axis_span {
    double from, to;
    const int64_t *time_us; // by event, never decreasing; NULL: positions are events
    size_t events;          // number of events of the history
};

// Return where a lifetime begins and ends on the span's axis, clipped to the span.
double vr_axis_span_birth(const struct vr_axis_span *span, const struct vr_lifetimes *lifetimes, size_t row);
double vr_axis_span_death(const struct vr_axis_span *span, const struct vr_lifetimes *lifetimes, size_t row);
// Returns bytes times the lifetime within the span, plus one (event or microsecond), so that no area is 0.
double vr_axis_span_area(const struct vr_axis_span *span, const struct vr_lifetimes *lifetimes, size_t row);

// Builds the tree over the lifetimes (borrowed) for the axis of a span, ignoring its window. Takes about 0.6 bytes per row. The caller owns
// *largest: vr_largest_destroy(). NO_HOST_MEMORY.
enum vram_status vr_largest_create(const struct vr_lifetimes *lifetimes, const struct vr_axis_span *axis, struct vr_largest **largest);
// NULL is ignored.
void vr_largest_destroy(struct vr_largest *largest);
// Selects, from the listed rows and those of [begin, end), at most `limit` rows with the largest areas in the span, none below `least`.
struct vr_largest_choice {
    const struct vr_axis_span *span;
    const uint32_t *listed;
    size_t listed_count;
    size_t begin, end;
    size_t limit;
    double least;
};
// Picks rows; *rows is ascending, and the caller frees it. NO_HOST_MEMORY.
enum vram_status vr_largest_pick(const struct vr_largest *largest, const struct vr_largest_choice *choice, uint32_t **rows, size_t *count);
// Checks that no row exceeds its run's bound, and no run's bound that of its parent. Looks at all rows.
bool vr_largest_check(const struct vr_largest *largest);

// ---- The picture known from memory timelines: allocations are stacked in the order of their births, and when one is freed, those above it
// slide down. A new allocation is always on top. So rows are stacked in ascending order at every moment, and the base of an allocation
// changes only when one below it is freed.

// The shape's base from `event` on (from the window's first event on, if it was live before).
struct vr_stack_step {
    uint32_t event;
    uint64_t base_bytes;
};

// The drawn allocations, by ascending row; the steps of each are consecutive and ascending.
struct vr_stacking {
    uint32_t *row;
    size_t *first_step; // count + 1
    size_t count;
    struct vr_stack_step *step;
};

// The part of the history to stack, and how finely.
struct vr_stack_window {
    size_t first, end;      // range of events
    const int64_t *time_us; // by event: `grain` is in microseconds; NULL: `grain` is in events
    double grain;           // merge steps of a shape that are closer than this; 0: merge none
    size_t most_steps;      // of all shapes together
};

// Stacks the rows, which are ascending and each live somewhere in the window. NO_HOST_MEMORY; LIMIT if there would be too many steps (a
// coarser grain makes fewer; at least two per shape must be allowed).
enum vram_status vr_stacking_build(const struct vr_lifetimes *lifetimes, const uint32_t *rows, size_t count,
                                   const struct vr_stack_window *window, struct vr_stacking *stacking);
void vr_stacking_release(struct vr_stacking *stacking);
// Checks that rows are ascending, each has a step, and its steps only go down.
bool vr_stacking_check(const struct vr_stacking *stacking);

#endif
