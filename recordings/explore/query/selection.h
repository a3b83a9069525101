// selection.h: what a query's parameters select: recording, device, lifetimes, their grouping, and the part of the history.
#ifndef VR_EXPLORE_QUERY_SELECTION_H
#define VR_EXPLORE_QUERY_SELECTION_H

#include "analyze/profile.h"
#include "explore/query/query.h"

// ---- The part of a history that a query is about, on one of the two axes.

// The part of a device's history in a picture. Positions count events (position p is before event p, so that event i covers [i, i + 1)) or,
// on the time axis, microseconds since the device's first event.
struct vr_window {
    bool by_time;
    double from, to;        // to > from
    size_t first, end;      // events at least partly in it; may be empty
    const int64_t *time_us; // with by_time
};
// Reads the parameters `axis` (event or time), `from` and `to` (default: the whole history). INVALID_ARGUMENT.
enum vram_status vr_select_window(const struct vr_query *query, struct vr_explored_device *device, struct vr_window *window);
// Returns the first event at or after a position; the number of events if none exists.
size_t vr_window_event(const struct vr_window *window, const struct vr_explored_device *device, double position);
// Returns the position of an event.
double vr_window_position(const struct vr_window *window, size_t event);

// ---- What a query's parameters select: recording, device, lifetimes, and their grouping.

// Everything is borrowed from the explorer.
struct vr_selection {
    struct vr_explored_recording *recording;
    struct vr_explored_device *device;
    const struct vr_lifetimes *lifetimes;
};

// Select the recording by the parameter `rec` (default: 0), and its device by the ordinal `device` (default: the worst device, see
// analyze/device_view.h). INVALID_ARGUMENT.
enum vram_status vr_select_recording(const struct vr_query *query, struct vr_explored_recording **recording);
enum vram_status vr_select_device(const struct vr_query *query, struct vr_explored_recording **recording,
                                  struct vr_explored_device **device);
// Sets *index to the index of the view for queries without a device; the recording must have a view. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_explored_worst(struct vr_explored_recording *recording, size_t *index);
// Reads the parameter `notion`: allocated (the default) or active.
enum vram_status vr_select_lifetime_kind(const struct vr_query *query, enum vr_lifetime_kind *kind);
// Selects recording, device and, by `notion`, lifetimes. INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_select_lifetimes(const struct vr_query *query, struct vr_selection *selection);
// Sets *roles to the roles of the device's lifetimes, computed once and borrowed, if `by` groups by role or module; otherwise to NULL.
// Returns the statuses of vr_select_lifetimes().
enum vram_status vr_select_roles(struct vr_explored_device *device, const struct vr_lifetimes *lifetimes, size_t by,
                                 struct vr_roles **roles);
// Creates the grouping of the parameters `by` (default: site) and `regex`. Release by vr_grouping_release(). Returns the statuses of
// vr_select_lifetimes().
enum vram_status vr_select_grouping(const struct vr_query *query, const struct vr_selection *selection, struct vr_grouping *grouping);

// ---- The events of a device that match a filter, as a cached list, so that a view can scroll by index. The filter's parameters: `action`
// (names, separated by commas), `address` (events whose memory has this address), `least` and `most` (bytes), `stream`, and `text` with
// `regex` (as in `search`). Without any of them the list is all events and takes no memory.

struct vr_event_selection {
    const uint32_t *event; // ascending; NULL: all events
    size_t count;
};

struct vr_event_selections;
// NULL is ignored.
void vr_event_selections_destroy(struct vr_event_selections *event_selections);
// Fills in *list for the query's filter; it is valid until two other filters were used. INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_select_events(const struct vr_query *query, struct vr_explored_recording *recording, struct vr_explored_device *device,
                                  struct vr_event_selection *list);
// Return the event at an index of the list, and the index of the first event at or after `event`.
VR_INLINE size_t vr_event_selection_at(const struct vr_event_selection *list, size_t index) {
    return list->event == NULL ? index : list->event[index];
}
size_t vr_event_selection_index(const struct vr_event_selection *list, int64_t event);

#endif
