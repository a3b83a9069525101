// labels.h: the numbers in labels such as "b7f03c0000000_2": how many allocations (or reservations) at the address came before.
#ifndef VR_EXPLORE_TABLES_LABELS_H
#define VR_EXPLORE_TABLES_LABELS_H

#include "analyze/lifetimes.h"

// By row of the allocated lifetimes, whose addresses have these numbers. Given to the caller (free()). NO_HOST_MEMORY.
enum vram_status vr_versions_count(const struct vr_address_ids *addresses, const struct vr_lifetimes *rows, uint32_t **versions);

// Those of segments, whose lives the rows are. Borrows nothing. Given to the caller: vr_segment_labels_destroy(). NO_HOST_MEMORY.
struct vr_segment_labels;
enum vram_status vr_segment_labels_create(const struct vr_history *history, const struct vr_lifetimes *rows,
                                          struct vr_segment_labels **labels);
// NULL is ignored.
void vr_segment_labels_destroy(struct vr_segment_labels *labels);
// Of a row of the segments.
uint32_t vr_segment_version(const struct vr_segment_labels *labels, size_t row);
// Of an event that reserves or gives back a segment or pages: of the segment at its address that it begins or ends. 0 for other events.
uint32_t vr_segment_version_of_event(const struct vr_segment_labels *labels, size_t event);

// The row that a label names among the rows of lifetimes: "b7f03c0000000_2", with or without its letter; without a number the first one at
// the address. False when there is none.
bool vr_label_find(const struct vr_lifetimes *lifetimes, char letter, const char *label, size_t *row);

#endif
