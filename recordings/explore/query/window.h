// window.h: the part of a history that a query is about, on one of the two axes.
#ifndef VR_EXPLORE_QUERY_WINDOW_H
#define VR_EXPLORE_QUERY_WINDOW_H

#include "explore/query/query.h"

// The part of a device's history that a picture shows. Positions count events (position p lies before event p, so that event i covers
// [i, i + 1)) or, on the axis of time, microseconds since the device's first event.
struct vr_window {
    bool by_time;
    double from, to;        // to > from
    size_t first, end;      // events that lie in it, at least in part; may be none
    const int64_t *time_us; // with by_time
};
// The parameters `axis` (event or time), `from` and `to` (the whole history where they are not there). INVALID_ARGUMENT.
enum vram_status vr_select_window(const struct vr_query *query, struct vr_explored_device *device, struct vr_window *window);
// The first event at or after a position; the count of events past the last.
size_t vr_window_event(const struct vr_window *window, const struct vr_explored_device *device, double position);
// The position of an event.
double vr_window_position(const struct vr_window *window, size_t event);

#endif
