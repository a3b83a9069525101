// event_selection.h: the events of a device that a filter lets through, as a list that is kept, so that it scrolls by index.
//
// Parameters of the filter: `action` (names, separated by commas), `address` (events of what holds the byte there), `least` and `most`
// (bytes), `stream`, and `text` with `regex` (what `search` finds). Without any of them the list is all events, and takes no memory.
#ifndef VR_EXPLORE_QUERY_EVENT_SELECTION_H
#define VR_EXPLORE_QUERY_EVENT_SELECTION_H

#include "explore/query/query.h"

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
