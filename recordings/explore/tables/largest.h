// largest.h: which allocations have the largest area (bytes times length of life) in a window, without looking at all of them.
//
// A tree over the rows of the lifetimes keeps, for runs of rows, the largest area and the largest size. A window clips lives, so what the
// tree says is an upper bound; the runs of the highest bounds are opened first until enough rows are known exactly.
#ifndef VR_EXPLORE_TABLES_LARGEST_H
#define VR_EXPLORE_TABLES_LARGEST_H

#include "analyze/lifetimes.h"

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

#endif
