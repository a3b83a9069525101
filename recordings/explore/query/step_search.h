// step_search.h: a device's steps, what grows over them and what is made anew in each: found a piece at a time, so that nobody waits for
// all of it, and kept for the queries asked last.
#ifndef VR_EXPLORE_QUERY_STEP_SEARCH_H
#define VR_EXPLORE_QUERY_STEP_SEARCH_H

#include "analyze/growth.h"
#include "analyze/leaks.h"
#include "explore/query/selection.h"

struct vr_step_searches;
// NULL is ignored.
void vr_step_searches_destroy(struct vr_step_searches *searches);

// The steps that the query's parameters `step` and `every` mean. Looks at up to `most` further events. *share: how much of the work is
// done; *steps is set when it is 1, and borrowed until other steps are asked for. INVALID_ARGUMENT, NO_HOST_MEMORY.
enum vram_status vr_step_search_steps(const struct vr_query *query, struct vr_explored_device *device, size_t most, double *share,
                                      const struct vr_steps **steps);

// The event at which the total of a kind of lifetime was largest within step `step` (from 0, below steps->count), the first one of them;
// the last step ends with the history. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_step_peak(struct vr_explored_device *device, enum vr_lifetime_kind kind, const struct vr_steps *steps, size_t step,
                              int64_t *event, int64_t *bytes);

enum vr_step_pattern { VR_PATTERN_GROWTH, VR_PATTERN_CHURN, VR_PATTERN_COUNT };

struct vr_pattern_search {
    struct vr_selection selection;
    struct vr_steps steps; // owned
    struct vr_grouping grouping;
    struct vr_growth_search *growth; // of VR_PATTERN_GROWTH
    struct vr_leak_finding finding;  // what is said of it
    // Where no call site leaks and nothing else was asked for, whole stacks are looked at: what was found by site meanwhile.
    struct vr_grouping site_grouping;
    struct vr_growth_search *site_growth;
    struct vr_leak_finding site_finding;
    bool stacks_tried;
    struct vr_churn_search *churn; // of VR_PATTERN_CHURN
};
// What the query's parameters `notion`, `by`, `regex`, `step`, `every` and `top` mean. Looks at up to `most` further rows or
// events. *share: how much of the work is done; *search is set when it is 1, and borrowed until another one is asked for. INVALID_ARGUMENT,
// LIMIT, NO_HOST_MEMORY.
enum vram_status vr_step_search_pattern(const struct vr_query *query, enum vr_step_pattern pattern, size_t most, double *share,
                                        const struct vr_pattern_search **search);

#endif
