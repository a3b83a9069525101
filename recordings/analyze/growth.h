// growth.h: what grows from step to step, and what is made and freed within every step, by group.
#ifndef VR_ANALYZE_GROWTH_H
#define VR_ANALYZE_GROWTH_H

#include "analyze/profile.h"
#include "analyze/steps.h"

// ---- What grows from step to step, by call site.

// X(constant, word). LEAK: objects pile up: what outlives its step stays, step after step, until the end. GROWTH: nothing piles up, but
// what is live between the steps grows steadily: larger requests, or a buffer that is replaced by a larger one. STEADY: neither.
#define VR_VERDICTS(X)                                                                                                                     \
    X(STEADY, steady)                                                                                                                      \
    X(GROWTH, growth)                                                                                                                      \
    X(LEAK, leak)

enum vr_verdict {
#define VR_VERDICT(constant, word) VR_VERDICT_##constant,
    VR_VERDICTS(VR_VERDICT)
#undef VR_VERDICT
        VR_VERDICT_COUNT
};
const char *vr_verdict_word(enum vr_verdict verdict);

enum { VR_GROWTH_POINTS = 256, VR_LEAST_STEPS = 6 }; // fewer steps tell nothing about leaks

// A group that holds more at the beginnings of later steps than of earlier ones.
struct vr_grower {
    uint64_t key;
    uint32_t row; // an allocation of the group that was alive at the last point
    // LEAK: what stays per step, from the step on in which the first of it was allocated. Else the slope of a straight line through what is
    // live at the points.
    double bytes_per_step, objects_per_step;
    size_t grew_points, course_points; // points at which there was more than at the one before, of those since the growth began
    uint64_t first_bytes, last_bytes;
    uint64_t kept_bytes;  // allocated after the first point, outlived a whole step, live at the last point
    uint64_t freed_bytes; // outlived a whole step as well, but was freed before the last point
    uint64_t ended_bytes; // of kept_bytes: freed after the last point
    enum vr_verdict verdict;
    uint64_t *bytes; // live at each point
    uint64_t *kept;  // of kept_bytes, at each point
};

// Points are beginnings of steps: what is live before their first event. The first step warms up and has none.
struct vr_growth {
    struct vr_grower *grower; // leaks first, then what grows, each by falling slope
    size_t count;
    size_t *point;   // events
    uint64_t *total; // live bytes at each point
    size_t point_count;
    double steps_per_point; // 1, more where there are more steps than points
};

// The groups that grow fastest, at most `most`. NO_HOST_MEMORY; *growth is untouched then.
enum vram_status vr_growth_find(struct vr_grouping *grouping, const struct vr_steps *steps, size_t most, struct vr_growth *growth);
void vr_growth_release(struct vr_growth *growth);

// The same a piece at a time, for those who must not wait. Borrows grouping and steps. Given to the caller: vr_growth_search_destroy().
// NO_HOST_MEMORY.
struct vr_growth_search;
enum vram_status vr_growth_search_create(struct vr_grouping *grouping, const struct vr_steps *steps, size_t most,
                                         struct vr_growth_search **search);
// NULL is ignored.
void vr_growth_search_destroy(struct vr_growth_search *search);
// Looks at up to `rows` further rows. *share: how much of all is done, 1 when it is finished. NO_HOST_MEMORY.
enum vram_status vr_growth_search_go_on(struct vr_growth_search *search, size_t rows, double *share);
// Of a finished search; borrowed from it.
const struct vr_growth *vr_growth_search_found(const struct vr_growth_search *search);

// ---- What is made and freed again within every step, by group.

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
