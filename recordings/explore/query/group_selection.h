// group_selection.h: the allocations of a query about groups: their device, the moment at which they are live or the window in which they
// were made, and the grouping.
#ifndef VR_EXPLORE_QUERY_GROUP_SELECTION_H
#define VR_EXPLORE_QUERY_GROUP_SELECTION_H

#include "explore/query/selection.h"

struct vr_holders {
    struct vr_selection selection;
    int64_t event;  // the moment: rows are live after it
    uint32_t *rows; // owned
    size_t count;
    bool made; // rows were made in the window, instead of being live at a moment
};

// Selects by the parameters `rec`, `device`, `notion`, `event` (default: the peak; `end`: after the last event; `step:N`: the peak of the
// Nth step), or, with `made=1`, by `axis`, `from` and `to`. INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_select_holders(const struct vr_query *query, struct vr_holders *holders);
// Selects the other side of a comparison by `rec2` (default: the same recording), `device2` and `event2`.
enum vram_status vr_select_other_holders(const struct vr_query *query, struct vr_holders *holders);
void vr_holders_release(struct vr_holders *holders);
// Adds "moment", "peak" and the selection as members of the answer.
void vr_put_holders(const struct vr_query *query, const struct vr_holders *holders);

// ---- Facts about groups other than their sums: the role of most of their bytes, and the part that a search finds.

struct vr_group_facts {
    uint8_t *role;         // by group: enum vram_role; NULL: not requested
    uint64_t *found_bytes; // by group; NULL: not requested
};

// Computes the facts that the parameters request: `roles` (1: requested), `find` and `find_regex` as in `search`. INVALID_ARGUMENT with a
// message, LIMIT, NO_HOST_MEMORY; release *facts by vr_group_facts_release() even on failure.
enum vram_status vr_group_facts_find(const struct vr_query *query, const struct vr_holders *holders, struct vr_grouping *grouping,
                                     const struct vr_group *groups, size_t count, struct vr_group_facts *facts);
void vr_group_facts_release(struct vr_group_facts *facts);

#endif
