// curve.h: a running total over a device's events, with a pyramid of minima and maxima that answers any range in O(log events).
#ifndef VR_EXPLORE_TABLES_CURVE_H
#define VR_EXPLORE_TABLES_CURVE_H

#include "explore/tables/event_rows.h"

// The first two values equal those of enum vr_lifetime_kind.
enum vr_curve_kind { VR_CURVE_ALLOCATED, VR_CURVE_ACTIVE, VR_CURVE_RESERVED, VR_CURVE_COUNT };

// Events between two stored totals: queries at multiples of this need not add up events.
enum { VR_CURVE_BUCKET = 64 };

struct vr_curve;

// Creates the curve of live bytes (rows and lifetimes given, both borrowed) or of reserved bytes (both NULL). The caller owns *curve:
// vr_curve_destroy(). NO_HOST_MEMORY.
enum vram_status vr_curve_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const struct vr_event_rows *rows,
                                 struct vr_curve **curve);
// NULL is ignored.
void vr_curve_destroy(struct vr_curve *curve);
// Returns the total after `event`; -1: before event 0. Events past the end count as the last one. Negative only for damaged recordings.
int64_t vr_curve_at(const struct vr_curve *curve, int64_t event);
// Sets *low and *high to the smallest and largest total after the events [first, end), which must be in the history; first < end.
void vr_curve_range(const struct vr_curve *curve, size_t first, size_t end, int64_t *low, int64_t *high);
// Like vr_curve_range(), but includes the total before `first`, as a part of a picture shows it; first <= end.
void vr_curve_extremes(const struct vr_curve *curve, size_t first, size_t end, int64_t *low, int64_t *high);
// Checks that every bucket has its starting total and extremes, and every level those of the level below. Looks at all events.
bool vr_curve_check(const struct vr_curve *curve);

#endif
