// stacking.h: the picture that users of memory timelines know: allocations lie on each other in the order of their births, and what lies
// above one that is freed slides down.
//
// Since a newcomer always lies on top, rows of the lifetimes are stacked in ascending order at every moment, and the base of an
// allocation only changes when one below it is freed. A few allocations are drawn each for itself, the others are one band on top.
#ifndef VR_EXPLORE_STACKING_H
#define VR_EXPLORE_STACKING_H

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

// Picks at most `limit` of the rows (ascending; each alive somewhere in the events [first, end)) by size times the events it lives in
// there, and stacks them. The last two steps of a shape are at least `grain` events apart or are merged; grain 0 or 1 merges nothing.
// NO_HOST_MEMORY.
enum vram_status vr_stacking_build(const struct vr_lifetimes *lifetimes, const uint32_t *rows, size_t count, size_t first, size_t end,
                                   size_t limit, size_t grain, struct vr_stacking *stacking);
void vr_stacking_release(struct vr_stacking *stacking);

#endif
