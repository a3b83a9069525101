// report_lifetimes.h: what a report says of the lifetimes of one device, found in one pass over its history that keeps few rows.
//
// A history of ten million events has millions of lifetimes (lifetimes.h), and a report looks at those that were live at a few moments and
// at the longest. Whether something was live before event 0 follows from the first event at its address, so that no pass backwards is
// needed, and totals are counted from the start, whatever it comes to.
#ifndef VR_ANALYZE_REPORT_LIFETIMES_H
#define VR_ANALYZE_REPORT_LIFETIMES_H

#include "analyze/lifetimes.h"

enum { VR_LIFETIME_KINDS = 2 };

struct vr_report_lifetimes {
    // The rows that were live at the peak, at an out of memory or at the end, the `top` longest, and whatever else was at hand. In the
    // order of lifetimes.h; totals, anomalies and final blocks are those of all.
    struct vr_lifetimes rows;
    // Of all, by where the ends of their lives lie; and the largest that the history made.
    struct vram_report_sum born_and_freed, born_and_kept, inherited_and_freed, inherited_and_kept;
    uint64_t largest_bytes;
};

// found[kind] by enum vr_lifetime_kind; totals[kind] as vr_lifetimes_build() has them, both NULL where point_count is 0. LIMIT and
// NO_HOST_MEMORY as there; nothing is held then.
enum vram_status vr_report_lifetimes_find(const struct vr_view *view, size_t top, uint64_t *const totals[VR_LIFETIME_KINDS],
                                          size_t point_count, struct vr_report_lifetimes found[VR_LIFETIME_KINDS]);
// Zeroed ones are fine.
void vr_report_lifetimes_release(struct vr_report_lifetimes found[VR_LIFETIME_KINDS]);

#endif
