// curve.h: a running total over a device's events, with a pyramid of smallest and largest values, so that any range is answered in
// O(log events).
#ifndef VR_EXPLORE_TABLES_CURVE_H
#define VR_EXPLORE_TABLES_CURVE_H

#include "analyze/lifetimes.h"
#include "analyze/view.h"

// The first two are those of enum vr_lifetime_kind.
enum vr_curve_kind { VR_CURVE_ALLOCATED, VR_CURVE_ACTIVE, VR_CURVE_RESERVED, VR_CURVE_COUNT };

// Events between two totals that are kept: queries about multiples of it are answered without adding up events.
enum { VR_CURVE_BUCKET = 64 };

struct vr_curve;

// Which allocation an event begins or ends.
struct vr_event_rows {
    uint32_t *row; // by event: 1 + row of the lifetimes, 0 for other events
    // Where an allocation was made at an address that was live, it ended what was there: by ascending event.
    struct vr_replaced {
        uint32_t event;
        uint32_t row; // of what ended; `row` of the event has what began
    } * replaced;
    size_t replaced_count;
};
// NO_HOST_MEMORY; *rows is untouched then.
enum vram_status vr_event_rows_build(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_event_rows *rows);
void vr_event_rows_release(struct vr_event_rows *rows);
// 1 + row of what ended at an event that begins an allocation; nearly always 0.
uint32_t vr_event_replaced(const struct vr_event_rows *rows, size_t event);

// The total of live bytes (rows and lifetimes given, both borrowed) or of reserved bytes (both NULL). Given to the caller:
// vr_curve_destroy(). NO_HOST_MEMORY.
enum vram_status vr_curve_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const struct vr_event_rows *rows,
                                 struct vr_curve **curve);
// NULL is ignored.
void vr_curve_destroy(struct vr_curve *curve);
// The total after `event`; -1: before event 0. Events past the end count as the last. Negative only in damaged recordings.
int64_t vr_curve_at(const struct vr_curve *curve, int64_t event);
// Smallest and largest total after the events [first, end), which must lie in the history; first < end.
void vr_curve_range(const struct vr_curve *curve, size_t first, size_t end, int64_t *low, int64_t *high);

#endif
