// event_rows.h: maps events to rows of allocations: the row that an event concerns, the rows live after it, and the numbers in their
// labels.
#ifndef VR_EXPLORE_TABLES_EVENT_ROWS_H
#define VR_EXPLORE_TABLES_EVENT_ROWS_H

#include "analyze/device_view.h"
#include "analyze/lifetimes.h"

// ---- From events to the allocations that they begin or end, and from rows of one kind of lifetime to rows of the other.

// The allocation that each event begins or ends.
struct vr_event_rows {
    uint32_t *row; // by event: 1 + row of the lifetimes; 0 for other events
    // Allocations that ended because another one was made at their address, by ascending event.
    struct vr_replaced {
        uint32_t event;
        uint32_t row; // the row that ended; `row` of the event is the new one
    } * replaced;
    size_t replaced_count, replaced_capacity;
};
// Builds the table. NO_HOST_MEMORY; *rows is then unchanged.
enum vram_status vr_event_rows_build(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_event_rows *rows);
void vr_event_rows_release(struct vr_event_rows *rows);
// Returns 1 + the row that ended because this event began an allocation at its address; nearly always 0.
uint32_t vr_event_replaced(const struct vr_event_rows *rows, size_t event);
// Checks that every birth and death is found by its event, and that `replaced` is ascending. Looks at all rows.
bool vr_event_rows_check(const struct vr_event_rows *rows, const struct vr_lifetimes *lifetimes);

// Returns the row of `to` for the same allocation; SIZE_MAX if it does not exist there.
size_t vr_other_row(const struct vr_lifetimes *from, const struct vr_lifetimes *to, size_t row);

// ---- The rows live after any event, without walking the whole history: lists at checkpoints, plus the births since.

struct vr_live_rows;

// Makes checkpoints over the lifetimes (borrowed). They take at most 64 MiB in total, so there are fewer if more is live. The caller owns
// *live: vr_live_rows_destroy(). NO_HOST_MEMORY.
enum vram_status vr_live_rows_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_live_rows **live);
// NULL is ignored.
void vr_live_rows_destroy(struct vr_live_rows *live);
// Sets *rows to the rows live after `event` (-1: before event 0), ascending. The caller frees *rows. NO_HOST_MEMORY.
enum vram_status vr_live_rows_at(const struct vr_live_rows *live, int64_t event, uint32_t **rows, size_t *count);
// Returns the first row born at or after `event`.
size_t vr_first_born(const struct vr_lifetimes *lifetimes, size_t event);
// Checks that every checkpoint lists the rows live then, ascending. Looks at all rows for each: for tests.
bool vr_live_rows_check(const struct vr_live_rows *live);

// ---- The numbers in labels such as "b7f03c0000000_2": how many earlier allocations (or reservations) had the address.

// Counts versions by row of the allocated lifetimes, whose address ids are given. The caller frees *versions. NO_HOST_MEMORY.
enum vram_status vr_versions_count(const struct vr_address_ids *addresses, const struct vr_lifetimes *rows, uint32_t **versions);

// Counts the versions of segments, given their lifetimes. Borrows nothing. The caller owns *labels: vr_segment_labels_destroy().
// NO_HOST_MEMORY.
struct vr_segment_labels;
enum vram_status vr_segment_labels_create(const struct vr_history *history, const struct vr_lifetimes *rows,
                                          struct vr_segment_labels **labels);
// NULL is ignored.
void vr_segment_labels_destroy(struct vr_segment_labels *labels);
// Returns the version of a row of the segments.
uint32_t vr_segment_version(const struct vr_segment_labels *labels, size_t row);
// Returns the version of the segment that an event begins or ends at its address, for events that reserve or release a segment or pages. 0
// for other events.
uint32_t vr_segment_version_of_event(const struct vr_segment_labels *labels, size_t event);

// Finds the row of a label such as "b7f03c0000000_2", with or without its letter; without a number, the first row at the address. Returns
// false if there is no such row.
bool vr_label_find(const struct vr_lifetimes *lifetimes, char letter, const char *label, size_t *row);

#endif
