// chosen.h: the events of a device that a filter lets through, as a list that is kept, so that it scrolls by index.
//
// Parameters of the filter: `action` (names, separated by commas), `address` (events of what holds the byte there), `least` and `most`
// (bytes), `stream`, and `text` with `regex` (what `search` finds). Without any of them the list is all events, and takes no memory.
#ifndef VR_EXPLORE_CHOSEN_H
#define VR_EXPLORE_CHOSEN_H

#include "explore/explorer.h"

struct vr_chosen_list {
    const uint32_t *event; // ascending; NULL: all events
    size_t count;
};

struct vr_chosen;
// NULL is ignored.
void vr_chosen_destroy(struct vr_chosen *chosen);
// The list of the question's filter, valid until two other filters were asked for. INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_ask_chosen(const struct vr_ask *ask, struct vr_seen_recording *recording, struct vr_seen_device *device,
                               struct vr_chosen_list *list);
// The event at an index of the list; the index of the first one that is not before an event.
VR_INLINE size_t vr_chosen_at(const struct vr_chosen_list *list, size_t index) { return list->event == NULL ? index : list->event[index]; }
size_t vr_chosen_index(const struct vr_chosen_list *list, int64_t event);
// Which row of the allocated lifetimes an event is about (also one that completes a free); SIZE_MAX for none.
enum vram_status vr_event_allocation(struct vr_seen_device *device, size_t event, size_t *row);

#endif
