// growth.h: by group, what grows from step to step, and what is made and freed within every step.
#ifndef VR_ANALYZE_GROWTH_H
#define VR_ANALYZE_GROWTH_H

#include "analyze/profile.h"
#include "analyze/steps.h"

// ---- What grows from step to step, by call site.

// X(constant, word). LEAK: objects accumulate: in each step, some outlive the step and stay until the end. GROWTH: nothing accumulates, but
// live bytes between steps grow steadily, by larger requests or a buffer that is replaced by a larger one. STEADY: neither.
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

enum { VR_GROWTH_POINTS = 256, VR_LEAST_STEPS = 6 }; // fewer steps are not enough to judge leaks

// A group that holds more at the beginning of later steps than of earlier ones.
struct vr_grower {
    uint64_t key;
    uint32_t row; // an allocation of the group that was live at the last point
    // LEAK: the bytes that stay per step, counted from the step in which the first of them was allocated. Otherwise the slope of a line
    // through the bytes live at the points.
    double bytes_per_step, objects_per_step;
    size_t grew_points, course_points; // of the course_points points since the growth began, those with more than the point before
    uint64_t first_bytes, last_bytes;
    uint64_t kept_bytes;  // allocated after the first point, outlived a whole step, live at the last point
    uint64_t freed_bytes; // outlived a whole step, too, but freed before the last point
    uint64_t ended_bytes; // part of kept_bytes that was freed after the last point
    enum vr_verdict verdict;
    uint64_t *bytes; // live bytes at each point
    uint64_t *kept;  // part of kept_bytes live at each point
};

// Points are beginnings of steps, before their first event. The first step, which warms up, has no point.
struct vr_growth {
    struct vr_grower *grower; // leaks first, then growth, each by descending slope
    size_t count;
    size_t *point;   // events
    uint64_t *total; // live bytes at each point
    size_t point_count;
    double steps_per_point; // 1; more if there are more steps than points
};

// Finds the groups that grow fastest, at most `most`. NO_HOST_MEMORY; *growth is then unchanged.
enum vram_status vr_growth_find(struct vr_grouping *grouping, const struct vr_steps *steps, size_t most, struct vr_growth *growth);
void vr_growth_release(struct vr_growth *growth);

// Finds the groups like vr_growth_find(), but in pieces, to keep a caller responsive. Borrows grouping and steps. The caller owns *search:
// vr_growth_search_destroy(). NO_HOST_MEMORY.
struct vr_growth_search;
enum vram_status vr_growth_search_create(struct vr_grouping *grouping, const struct vr_steps *steps, size_t most,
                                         struct vr_growth_search **search);
// NULL is ignored.
void vr_growth_search_destroy(struct vr_growth_search *search);
// Processes up to `rows` more rows. *share is the completed share of the work, 1 when finished. NO_HOST_MEMORY.
enum vram_status vr_growth_search_go_on(struct vr_growth_search *search, size_t rows, double *share);
// Returns the result of a finished search; borrowed from it.
const struct vr_growth *vr_growth_search_found(const struct vr_growth_search *search);

// ---- What is made and freed within every step, by group.

// By group, allocations made and freed within one step (without steps: within a hundredth of the events).
struct vr_churn {
    struct vr_group *group; // by descending bytes
    size_t count;
    uint64_t bytes, allocations; // of all groups
    size_t steps;                // number of steps with such allocations, at least 1
};

// Computes the churn in pieces, to keep a caller responsive. Borrows grouping and steps. The caller owns *search:
// vr_churn_search_destroy(). NO_HOST_MEMORY.
struct vr_churn_search;
enum vram_status vr_churn_search_create(struct vr_grouping *grouping, const struct vr_steps *steps, struct vr_churn_search **search);
// NULL is ignored.
void vr_churn_search_destroy(struct vr_churn_search *search);
// Processes up to `rows` more rows. *share is the completed share of the work, 1 when finished. NO_HOST_MEMORY.
enum vram_status vr_churn_search_go_on(struct vr_churn_search *search, size_t rows, double *share);
// Returns the result of a finished search; borrowed from it.
const struct vr_churn *vr_churn_search_found(const struct vr_churn_search *search);

#endif
