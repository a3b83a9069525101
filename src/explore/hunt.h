// hunt.h: a device's steps, what grows over them and what is made anew in each: found a piece at a time, so that nobody waits for all of
// it, and kept for the questions asked last.
#ifndef VR_EXPLORE_HUNT_H
#define VR_EXPLORE_HUNT_H

#include "analyze/churn.h"
#include "analyze/growth.h"
#include "explore/holders.h"

struct vr_hunts;
// NULL is ignored.
void vr_hunts_destroy(struct vr_hunts *hunts);

// The steps that the question's parameters `step` and `every` mean. Looks at up to `most` further events. *share: how much of the work is
// done; *steps is set when it is 1, and borrowed until other steps are asked for. INVALID_ARGUMENT, NO_HOST_MEMORY.
enum vram_status vr_asked_steps(const struct vr_ask *ask, struct vr_seen_device *device, size_t most, double *share,
                                const struct vr_steps **steps);

// The event at which the total of a notion was largest within step `step` (from 0, below steps->count), the first one of them; the last
// step ends with the history. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_step_peak(struct vr_seen_device *device, enum vr_notion notion, const struct vr_steps *steps, size_t step,
                              int64_t *event, int64_t *bytes);

enum vr_prey { VR_PREY_GROWTH, VR_PREY_CHURN, VR_PREY_COUNT };

struct vr_hunt {
    struct vr_holders chosen; // recording, device and lifetimes; nothing about a moment
    struct vr_steps steps;    // owned
    struct vr_grouping grouping;
    struct vr_growth_search *growth; // of VR_PREY_GROWTH
    struct vr_churn_search *churn;   // of VR_PREY_CHURN
};
// What the question's parameters `notion`, `by`, `regex`, `step`, `every` and `top` mean. Looks at up to `most` further rows or events.
// *share: how much of the work is done; *hunt is set when it is 1, and borrowed until another one is asked for. INVALID_ARGUMENT, LIMIT,
// NO_HOST_MEMORY.
enum vram_status vr_asked_hunt(const struct vr_ask *ask, enum vr_prey prey, size_t most, double *share, const struct vr_hunt **hunt);

#endif
