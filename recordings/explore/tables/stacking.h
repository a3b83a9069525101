// stacking.h: the picture that users of memory timelines know: allocations lie on each other in the order of their births, and what lies
// above one that is freed slides down.
//
// Since a newcomer always lies on top, rows of the lifetimes are stacked in ascending order at every moment, and the base of an
// allocation only changes when one below it is freed.
#ifndef VR_EXPLORE_TABLES_STACKING_H
#define VR_EXPLORE_TABLES_STACKING_H

#include "analyze/lifetimes.h"

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
