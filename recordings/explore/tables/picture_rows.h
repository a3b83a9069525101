// picture_rows.h: the rows of a picture: the largest allocations of a window, and how they lie on each other.
#ifndef VR_EXPLORE_TABLES_PICTURE_ROWS_H
#define VR_EXPLORE_TABLES_PICTURE_ROWS_H

#include "analyze/lifetimes.h"

// ---- Which allocations have the largest area (bytes times length of life) in a window, without looking at all of them.
// A tree over the rows of the lifetimes keeps, for runs of rows, the largest area and the largest size. A window clips lives, so what the
// tree says is an upper bound; the runs of the highest bounds are opened first until enough rows are known exactly.

struct vr_largest;

// A part of the history; positions are events, or with time_us microseconds since the first event.
struct vr_axis_span {
    double from, to;
    const int64_t *time_us; // by event, never falling; NULL: positions are events
    size_t events;          // of the history
};

// Where a life begins and ends on the span's axis, clipped to the span.
double vr_axis_span_birth(const struct vr_axis_span *span, const struct vr_lifetimes *lifetimes, size_t row);
double vr_axis_span_death(const struct vr_axis_span *span, const struct vr_lifetimes *lifetimes, size_t row);
// Bytes times the length of life in the span, which counts one more (an event, a microsecond), so that no life has no area.
double vr_axis_span_area(const struct vr_axis_span *span, const struct vr_lifetimes *lifetimes, size_t row);

// The tree over the lifetimes (borrowed) for the axis of a span (its window does not matter). About 0.6 bytes per row. Given to the
// caller: vr_largest_destroy(). NO_HOST_MEMORY.
enum vram_status vr_largest_create(const struct vr_lifetimes *lifetimes, const struct vr_axis_span *axis, struct vr_largest **largest);
// NULL is ignored.
void vr_largest_destroy(struct vr_largest *largest);
// Which rows are wanted: of those listed and of [begin, end) the ones of the largest areas in the span, at most `limit`, none below
// `least`.
struct vr_largest_choice {
    const struct vr_axis_span *span;
    const uint32_t *listed;
    size_t listed_count;
    size_t begin, end;
    size_t limit;
    double least;
};
// *rows is ascending and given to the caller (free()). NO_HOST_MEMORY.
enum vram_status vr_largest_pick(const struct vr_largest *largest, const struct vr_largest_choice *choice, uint32_t **rows, size_t *count);
// No row is larger than its run's bound, and no run's bound than that of the run it is part of. Looks at all rows.
bool vr_largest_check(const struct vr_largest *largest);

// ---- The picture that users of memory timelines know: allocations lie on each other in the order of their births, and what lies above one
// that is freed slides down.
// Since a newcomer always lies on top, rows of the lifetimes are stacked in ascending order at every moment, and the base of an allocation
// only changes when one below it is freed.

// From `event` on (the window's first event for what was live before it) the shape's base is at `base` bytes.
struct vr_stack_step {
    uint32_t event;
    uint64_t base_bytes;
};

// The drawn allocations, by ascending row; the steps of one are ascending and lie one after the other.
struct vr_stacking {
    uint32_t *row;
    size_t *first_step; // count + 1
    size_t count;
    struct vr_stack_step *step;
};

// What part of the history is stacked, and how finely.
struct vr_stack_window {
    size_t first, end;      // events
    const int64_t *time_us; // by event: `grain` is microseconds; NULL: it is events
    double grain;           // two steps of a shape that are closer than this are merged; 0 merges nothing
    size_t most_steps;      // of all shapes together
};

// Stacks the rows (ascending; each alive somewhere in the window). NO_HOST_MEMORY; LIMIT when there would be too many steps (with a
// coarser grain there are fewer; at least two per shape must be allowed).
enum vram_status vr_stacking_build(const struct vr_lifetimes *lifetimes, const uint32_t *rows, size_t count,
                                   const struct vr_stack_window *window, struct vr_stacking *stacking);
void vr_stacking_release(struct vr_stacking *stacking);
// Rows are ascending, each has a step, and its steps only go down.
bool vr_stacking_check(const struct vr_stacking *stacking);

#endif
