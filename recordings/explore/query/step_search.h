// step_search.h: a device's steps, what grows over them, and what is made and freed in each: computed in pieces, so that the page stays
// responsive, and kept for the latest queries.
#ifndef VR_EXPLORE_QUERY_STEP_SEARCH_H
#define VR_EXPLORE_QUERY_STEP_SEARCH_H

#include "analyze/growth.h"
#include "analyze/leaks.h"
#include "explore/query/selection.h"

struct vr_step_searches;
// NULL is ignored.
void vr_step_searches_destroy(struct vr_step_searches *searches);

// Finds the steps that the parameters `step` and `every` select. Processes up to `most` more events. *share is the completed share of the
// work; *steps is set when it is 1, and borrowed until other steps are requested. INVALID_ARGUMENT, NO_HOST_MEMORY.
enum vram_status vr_step_search_steps(const struct vr_query *query, struct vr_explored_device *device, size_t most, double *share,
                                      const struct vr_steps **steps);

// Finds the first event at which the total of a lifetime kind was largest in step `step` (from 0, below steps->count); the last step ends
// with the history. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_step_peak(struct vr_explored_device *device, enum vr_lifetime_kind kind, const struct vr_steps *steps, size_t step,
                              int64_t *event, int64_t *bytes);

enum vr_step_pattern { VR_PATTERN_GROWTH, VR_PATTERN_CHURN, VR_PATTERN_COUNT };

struct vr_pattern_search {
    struct vr_selection selection;
    struct vr_steps steps; // owned
    struct vr_grouping grouping;
    struct vr_growth_search *growth; // for VR_PATTERN_GROWTH
    struct vr_leak_finding finding;  // the judgement of `growth`
    // If no call site leaks and the query names no grouping, whole stacks are searched: keeps the result by site meanwhile.
    struct vr_grouping site_grouping;
    struct vr_growth_search *site_growth;
    struct vr_leak_finding site_finding;
    bool stacks_tried;
    struct vr_churn_search *churn; // for VR_PATTERN_CHURN
};
// Searches for the pattern by the parameters `notion`, `by`, `regex`, `step`, `every` and `top`. Processes up to `most` more rows or
// events. *share is the completed share of the work; *search is set when it is 1, and borrowed until another search is requested.
// INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_step_search_pattern(const struct vr_query *query, enum vr_step_pattern pattern, size_t most, double *share,
                                        const struct vr_pattern_search **search);

#endif
