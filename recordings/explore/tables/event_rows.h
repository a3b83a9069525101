// event_rows.h: rows of allocations by event: which one an event is about, which are live after it, and the numbers in their labels.
#ifndef VR_EXPLORE_TABLES_EVENT_ROWS_H
#define VR_EXPLORE_TABLES_EVENT_ROWS_H

#include "analyze/device_view.h"
#include "analyze/lifetimes.h"

// ---- From an event to the allocation that it begins or ends, and from the rows of one kind of lifetime to those of the other.

// Which allocation an event begins or ends.
struct vr_event_rows {
    uint32_t *row; // by event: 1 + row of the lifetimes, 0 for other events
    // Where an allocation was made at an address that was live, it ended what was there: by ascending event.
    struct vr_replaced {
        uint32_t event;
        uint32_t row; // of what ended; `row` of the event has what began
    } * replaced;
    size_t replaced_count, replaced_capacity;
};
// NO_HOST_MEMORY; *rows is untouched then.
enum vram_status vr_event_rows_build(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_event_rows *rows);
void vr_event_rows_release(struct vr_event_rows *rows);
// 1 + row of what ended at an event that begins an allocation; nearly always 0.
uint32_t vr_event_replaced(const struct vr_event_rows *rows, size_t event);
// Every birth and death is found from its event; what was replaced is ascending. Looks at all rows.
bool vr_event_rows_check(const struct vr_event_rows *rows, const struct vr_lifetimes *lifetimes);

// Which row of the other kind of lifetime a row of a kind of lifetime is; SIZE_MAX for what only one of them has.
size_t vr_other_row(const struct vr_lifetimes *from, const struct vr_lifetimes *to, size_t row);

// ---- What is live after any event, without walking the whole history: lists at checkpoints, and the births since.

struct vr_live_rows;

// Checkpoints over the lifetimes (borrowed). They take at most 64 MiB, fewer of them where more is live. Given to the caller:
// vr_live_rows_destroy(). NO_HOST_MEMORY.
enum vram_status vr_live_rows_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_live_rows **live);
// NULL is ignored.
void vr_live_rows_destroy(struct vr_live_rows *live);
// The rows live after `event` (-1: before event 0), ascending. *rows is given to the caller (free()). NO_HOST_MEMORY.
enum vram_status vr_live_rows_at(const struct vr_live_rows *live, int64_t event, uint32_t **rows, size_t *count);
// The first row born at or after `event`.
size_t vr_first_born(const struct vr_lifetimes *lifetimes, size_t event);
// Every checkpoint holds what is live then, ascending. Looks at all rows for each: for tests.
bool vr_live_rows_check(const struct vr_live_rows *live);

// ---- The numbers in labels such as "b7f03c0000000_2": how many allocations (or reservations) at the address came before.

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
// the address. False if there is no such row.
bool vr_label_find(const struct vr_lifetimes *lifetimes, char letter, const char *label, size_t *row);

#endif
