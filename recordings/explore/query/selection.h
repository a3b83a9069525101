// selection.h: what the parameters of a query select: recording, device, lifetimes, how they are grouped, and the part of the history.
#ifndef VR_EXPLORE_QUERY_SELECTION_H
#define VR_EXPLORE_QUERY_SELECTION_H

#include "analyze/profile.h"
#include "explore/query/query.h"

// ---- The part of a history that a query is about, on one of the two axes.

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

// ---- What the parameters of a query select: recording, device, lifetimes, and how they are grouped.

// All borrowed from the explorer.
struct vr_selection {
    struct vr_explored_recording *recording;
    struct vr_explored_device *device;
    const struct vr_lifetimes *lifetimes;
};

// The recording that the parameter `rec` names (0 when it is not there), and its device of parameter `device` (an ordinal; when it is not
// there, the one in trouble, analyze/device_view.h). INVALID_ARGUMENT.
enum vram_status vr_select_recording(const struct vr_query *query, struct vr_explored_recording **recording);
enum vram_status vr_select_device(const struct vr_query *query, struct vr_explored_recording **recording,
                                  struct vr_explored_device **device);
// The place of the view that a query without a device is about; the recording has one at least. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_explored_worst(struct vr_explored_recording *recording, size_t *index);
// The parameter `notion`: allocated (the default) or active.
enum vram_status vr_select_lifetime_kind(const struct vr_query *query, enum vr_lifetime_kind *kind);
// Recording, device and, by `notion`, lifetimes. INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_select_lifetimes(const struct vr_query *query, struct vr_selection *selection);
// What grouping by a role or a module (`by`, else *roles is NULL) has to know of lifetimes of the device; borrowed, found once. As above.
enum vram_status vr_select_roles(struct vr_explored_device *device, const struct vr_lifetimes *lifetimes, size_t by,
                                 struct vr_roles **roles);
// The grouping of the parameters `by` (default site) and `regex`. Released by vr_grouping_release(). As above.
enum vram_status vr_select_grouping(const struct vr_query *query, const struct vr_selection *selection, struct vr_grouping *grouping);

// ---- The events of a device that a filter lets through, as a list that is kept, so that it scrolls by index.
// Parameters of the filter: `action` (names, separated by commas), `address` (events of what holds the byte there), `least` and `most`
// (bytes), `stream`, and `text` with `regex` (what `search` finds). Without any of them the list is all events, and takes no memory.

struct vr_event_selection {
    const uint32_t *event; // ascending; NULL: all events
    size_t count;
};

struct vr_event_selections;
// NULL is ignored.
void vr_event_selections_destroy(struct vr_event_selections *event_selections);
// The list of the query's filter, valid until two other filters were asked for. INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_select_events(const struct vr_query *query, struct vr_explored_recording *recording, struct vr_explored_device *device,
                                  struct vr_event_selection *list);
// The event at an index of the list; the index of the first one that is not before an event.
VR_INLINE size_t vr_event_selection_at(const struct vr_event_selection *list, size_t index) {
    return list->event == NULL ? index : list->event[index];
}
size_t vr_event_selection_index(const struct vr_event_selection *list, int64_t event);

#endif
