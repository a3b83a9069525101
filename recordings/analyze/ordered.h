// ordered.h: a set of small numbers that knows the next and the previous member of any number, in a few steps whatever its size.
#ifndef VR_ANALYZE_ORDERED_H
#define VR_ANALYZE_ORDERED_H

#include "base/base.h"

enum { VR_ORDERED_LEVELS = 7 }; // 64^7 numbers

// Bit i of a level says whether word i of the level below has any bit.
struct vr_ordered {
    uint64_t *level[VR_ORDERED_LEVELS];
    unsigned levels;
};

// An empty set of numbers below `limit`. NO_HOST_MEMORY; *set is untouched then.
enum vram_status vr_ordered_init(struct vr_ordered *set, size_t limit);
void vr_ordered_release(struct vr_ordered *set);
// The number must be below the limit.
void vr_ordered_add(struct vr_ordered *set, size_t number);
void vr_ordered_remove(struct vr_ordered *set, size_t number);
// The smallest member that is not below the number, the largest one that is not above it; SIZE_MAX if there is none.
size_t vr_ordered_next(const struct vr_ordered *set, size_t number);
size_t vr_ordered_previous(const struct vr_ordered *set, size_t number);

#endif
