// holders.h: which allocations a query about groups means: of which device, at which moment or made in which window, grouped by what.
#ifndef VR_EXPLORE_QUERY_HOLDERS_H
#define VR_EXPLORE_QUERY_HOLDERS_H

#include "analyze/grouping.h"
#include "explore/explored/explored.h"

struct vr_holders {
    struct vr_explored_recording *recording;
    struct vr_explored_device *device;
    const struct vr_lifetimes *lifetimes;
    int64_t event;  // the moment: what is live after it
    uint32_t *rows; // owned
    size_t count;
    bool made; // rows made in the window, not rows live at a moment
};

// Of the query's parameters `rec`, `device`, `kind of lifetime`, `event` (default: the peak; `end`: after the last; `step:N`:
// the peak of the Nth step), and with `made=1` `axis`,
// `from`, `to`. INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_select_holders(const struct vr_query *query, struct vr_holders *holders);
// The same for the other side of a comparison: `rec2` (default: the same), `device2`, `event2`.
enum vram_status vr_select_other_holders(const struct vr_query *query, struct vr_holders *holders);
void vr_holders_release(struct vr_holders *holders);
// The grouping of the parameters `by` (default site) and `regex`. Released by vr_grouping_release(). As above.
enum vram_status vr_select_grouping(const struct vr_query *query, const struct vr_holders *holders, struct vr_grouping *grouping);
// "moment", "peak" and what was selected, as members of the answer.
void vr_put_holders(const struct vr_query *query, const struct vr_holders *holders);

#endif
