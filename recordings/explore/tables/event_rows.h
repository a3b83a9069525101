// event_rows.h: from an event to the allocation that it begins or ends, and from the rows of one kind of lifetime to those of the other.
#ifndef VR_EXPLORE_TABLES_EVENT_ROWS_H
#define VR_EXPLORE_TABLES_EVENT_ROWS_H

#include "analyze/lifetimes.h"
#include "analyze/view.h"

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

#endif
