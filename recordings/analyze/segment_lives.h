// segment_lives.h: every reservation of one device's history with its beginning and end: segments, and of expandable segments what is
// mapped of them.
//
// As with allocations, the final segments are rolled back through the history to what was there before event 0, and from there the history
// is walked forwards. An unmapping may take a part of what one event mapped, or parts of many: what was mapped is cut there, so that a row
// is always a rectangle of addresses and events.
#ifndef VR_ANALYZE_SEGMENT_LIVES_H
#define VR_ANALYZE_SEGMENT_LIVES_H

#include "analyze/lifetimes.h"

enum { VR_SEGMENT_MAPPED = 1, VR_SEGMENT_POOL_KNOWN = 2 };

struct vr_segment_lives {
    // Rows by birth, then address: address, size_bytes, birth, death, stack, count, start_count, and the counts of start and peak (a little
    // more than there were, perhaps). The other members are zero.
    struct vr_lifetimes lifetimes;
    uint64_t *stream;
    uint64_t *pool_first, *pool_second; // 0, 0: the default one, or not known
    uint8_t *flags;                     // VR_SEGMENT_MAPPED: of an expandable segment; VR_SEGMENT_POOL_KNOWN
    uint32_t *by_address;               // rows by address, then birth
};

// LIMIT, NO_HOST_MEMORY; *lives is untouched then.
enum vram_status vr_segment_lives_build(const struct vr_view *view, struct vr_segment_lives *lives);
void vr_segment_lives_release(struct vr_segment_lives *lives);
// The row that has an address after an event (-1: before event 0); SIZE_MAX if none has. Looks at a bounded number of rows.
size_t vr_segment_lives_find(const struct vr_segment_lives *lives, uint64_t address, int64_t event);

#endif
