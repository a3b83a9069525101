// holders.h: which allocations a question about groups means: of which device, at which moment or made in which window, grouped by what.
#ifndef VR_EXPLORE_HOLDERS_H
#define VR_EXPLORE_HOLDERS_H

#include "analyze/grouping.h"
#include "explore/explorer.h"

struct vr_holders {
    struct vr_seen_recording *recording;
    struct vr_seen_device *device;
    const struct vr_lifetimes *lifetimes;
    int64_t event;  // the moment: what is live after it
    uint32_t *rows; // owned
    size_t count;
    bool made; // rows made in the window, not rows live at a moment
};

// Of the question's parameters `rec`, `device`, `notion`, `event` (default: the peak; `end`: after the last; `step:N`:
// the peak of the Nth step), and with `made=1` `axis`,
// `from`, `to`. INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_ask_holders(const struct vr_ask *ask, struct vr_holders *chosen);
// The same for the other side of a comparison: `rec2` (default: the same), `device2`, `event2`.
enum vram_status vr_ask_other_holders(const struct vr_ask *ask, struct vr_holders *chosen);
void vr_holders_release(struct vr_holders *chosen);
// The grouping of the parameters `by` (default site) and `regex`. Released by vr_grouping_release(). As above.
enum vram_status vr_ask_grouping(const struct vr_ask *ask, const struct vr_holders *chosen, struct vr_grouping *grouping);
// "moment", "peak" and what was chosen, as members of the answer.
void vr_put_holders(const struct vr_ask *ask, const struct vr_holders *chosen);

#endif
