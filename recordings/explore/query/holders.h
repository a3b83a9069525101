// holders.h: which allocations a query about groups means: of which device, at which moment or made in which window, grouped by what.
#ifndef VR_EXPLORE_QUERY_HOLDERS_H
#define VR_EXPLORE_QUERY_HOLDERS_H

#include "explore/query/selection.h"

struct vr_holders {
    struct vr_selection selection;
    int64_t event;  // the moment: what is live after it
    uint32_t *rows; // owned
    size_t count;
    bool made; // rows made in the window, not rows live at a moment
};

// Of the query's parameters `rec`, `device`, `notion`, `event` (default: the peak; `end`: after the last; `step:N`:
// the peak of the Nth step), and with `made=1` `axis`,
// `from`, `to`. INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_select_holders(const struct vr_query *query, struct vr_holders *holders);
// The same for the other side of a comparison: `rec2` (default: the same), `device2`, `event2`.
enum vram_status vr_select_other_holders(const struct vr_query *query, struct vr_holders *holders);
void vr_holders_release(struct vr_holders *holders);
// "moment", "peak" and what was selected, as members of the answer.
void vr_put_holders(const struct vr_query *query, const struct vr_holders *holders);

#endif
