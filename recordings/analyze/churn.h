// churn.h: what is made and freed again within every step, by group.
#ifndef VR_ANALYZE_CHURN_H
#define VR_ANALYZE_CHURN_H

#include "analyze/grouping.h"
#include "analyze/steps.h"

// A group's allocations that were made and freed within one step (without steps: within a hundredth of the events).
struct vr_churn {
    struct vr_group *group; // by falling bytes
    size_t count;
    uint64_t bytes, allocations; // of all groups
    size_t steps;                // that they were made in, at least 1
};

// Found a piece at a time, for those who must not wait. Borrows grouping and steps. Given to the caller: vr_churn_search_destroy().
// NO_HOST_MEMORY.
struct vr_churn_search;
enum vram_status vr_churn_search_create(struct vr_grouping *grouping, const struct vr_steps *steps, struct vr_churn_search **search);
// NULL is ignored.
void vr_churn_search_destroy(struct vr_churn_search *search);
// Looks at up to `rows` further rows. *share: how much of all is done, 1 when it is finished. NO_HOST_MEMORY.
enum vram_status vr_churn_search_go_on(struct vr_churn_search *search, size_t rows, double *share);
// Of a finished search; borrowed from it.
const struct vr_churn *vr_churn_search_found(const struct vr_churn_search *search);

#endif
