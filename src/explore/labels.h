// labels.h: the numbers in labels such as "b7f03c0000000_2": how many allocations (or reservations) at the address came before.
#ifndef VR_EXPLORE_LABELS_H
#define VR_EXPLORE_LABELS_H

#include "explore/explorer.h"

struct vr_labels;

// Of the allocated lifetimes and of those of the segments; nothing is kept of them. Given to the caller: vr_labels_destroy().
// NO_HOST_MEMORY.
enum vram_status vr_labels_create(const struct vr_view *view, const struct vr_lifetimes *allocated, const struct vr_lifetimes *segments,
                                  struct vr_labels **labels);
// NULL is ignored.
void vr_labels_destroy(struct vr_labels *labels);
// Of a row of the allocated lifetimes.
uint32_t vr_label_of_row(const struct vr_labels *labels, size_t row);
// Of a row of the segments.
uint32_t vr_label_of_segment(const struct vr_labels *labels, size_t row);
// Of an event that reserves or gives back a segment or pages: of the segment at its address that it begins or ends. 0 for other events.
uint32_t vr_label_of_segment_event(const struct vr_labels *labels, size_t event);
// The row that a label names among the rows of lifetimes: "b7f03c0000000_2", with or without its letter; without a number the first one at
// the address. False when there is none.
bool vr_label_find(const struct vr_lifetimes *lifetimes, char letter, const char *label, size_t *row);
// The device's own, made when first asked for; borrowed. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_seen_labels(struct vr_seen_device *device, const struct vr_labels **labels);

#endif
