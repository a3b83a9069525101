// group_selection.h: which allocations a query about groups means: of which device, at which moment or made in which window, grouped by
// what.
#ifndef VR_EXPLORE_QUERY_GROUP_SELECTION_H
#define VR_EXPLORE_QUERY_GROUP_SELECTION_H

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

// ---- What is said of groups besides their sums: the role that most of their bytes have, and what of them a search finds.

struct vr_group_facts {
    uint8_t *role;         // by group: enum vram_role; NULL: not asked for
    uint64_t *found_bytes; // by group; NULL: not asked for
};

// By the parameters `roles` (1: asked for), `find` and `find_regex` as `search` has them. INVALID_ARGUMENT with a sentence, LIMIT,
// NO_HOST_MEMORY; *facts is released by vr_group_facts_release() all the same.
enum vram_status vr_group_facts_find(const struct vr_query *query, const struct vr_holders *holders, struct vr_grouping *grouping,
                                     const struct vr_group *groups, size_t count, struct vr_group_facts *facts);
void vr_group_facts_release(struct vr_group_facts *facts);

#endif
