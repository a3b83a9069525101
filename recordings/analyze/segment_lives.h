// segment_lives.h: every reservation of one device's history with its beginning and end.
#ifndef VR_ANALYZE_SEGMENT_LIVES_H
#define VR_ANALYZE_SEGMENT_LIVES_H

#include "analyze/lifetimes.h"
#include "base/base.h"

// ---- A set of small numbers that finds the next and the previous member of any number in a few steps, whatever its size.

enum { VR_ORDERED_LEVELS = 7 }; // for 64^7 numbers

// Bit i of a level is set if word i of the level below is nonzero.
struct vr_ordered {
    uint64_t *level[VR_ORDERED_LEVELS];
    unsigned levels;
};

// Initializes an empty set of numbers below `limit`. NO_HOST_MEMORY; *set is then unchanged.
enum vram_status vr_ordered_init(struct vr_ordered *set, size_t limit);
void vr_ordered_release(struct vr_ordered *set);
// Add and remove a number, which must be below the limit.
void vr_ordered_add(struct vr_ordered *set, size_t number);
void vr_ordered_remove(struct vr_ordered *set, size_t number);
// Return the smallest member at or above the number, and the largest at or below it; SIZE_MAX if none exists.
size_t vr_ordered_next(const struct vr_ordered *set, size_t number);
size_t vr_ordered_previous(const struct vr_ordered *set, size_t number);

// ---- Every reservation of one device's history with its beginning and end: segments, and the mapped parts of expandable segments. As for
// allocations, the history is undone from the final segments to the state before event 0, and then walked forwards. An unmapping may cover
// part of what one event mapped, or parts of several; mapped memory is split there, so that a row is always a rectangle of addresses and
// events.

enum { VR_SEGMENT_MAPPED = 1, VR_SEGMENT_POOL_KNOWN = 2 };

struct vr_segment_lives {
    // Rows by birth, then address: address, size_bytes, birth, death, stack, count, start_count, and the counts of start and peak (which
    // may be slightly too large). Other members are zero.
    struct vr_lifetimes lifetimes;
    uint64_t *stream;
    uint64_t *pool_first, *pool_second; // 0, 0: the default pool, or unknown
    uint8_t *flags;                     // VR_SEGMENT_MAPPED: in an expandable segment; VR_SEGMENT_POOL_KNOWN
    uint32_t *by_address;               // rows by address, then birth
};

// Builds the rows. LIMIT, NO_HOST_MEMORY; *lives is then unchanged.
enum vram_status vr_segment_lives_build(const struct vr_view *view, struct vr_segment_lives *lives);
void vr_segment_lives_release(struct vr_segment_lives *lives);
// Returns the row that contains an address after an event (-1: before event 0); SIZE_MAX if none exists. Looks at a bounded number of
// rows.
size_t vr_segment_lives_find(const struct vr_segment_lives *lives, uint64_t address, int64_t event);

#endif
