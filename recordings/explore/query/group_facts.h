// group_facts.h: what is said of groups besides their sums: the role that most of their bytes have, and what of them a search finds.
#ifndef VR_EXPLORE_QUERY_GROUP_FACTS_H
#define VR_EXPLORE_QUERY_GROUP_FACTS_H

#include "explore/query/holders.h"

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
