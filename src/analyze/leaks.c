#include "analyze/leaks.h"

enum { DEFAULT_TOP = 10 };

void vr_leaks_close(struct vr_leaks *leaks) {
    vr_growth_release(&leaks->growth);
    vr_steps_release(&leaks->steps);
    vr_grouping_release(&leaks->grouping);
    vr_profile_close(&leaks->profile);
}

// What depends on how allocations are grouped. Nothing stays to be released after a failure.
static enum vram_status find_by(struct vr_leaks *leaks, const struct vram_profile_options *options, struct vram_error *error) {
    VR_TRY(vr_profile_grouping(&leaks->profile, options, &leaks->grouping, error));
    const enum vram_status status = vr_growth_find(&leaks->grouping, &leaks->steps, leaks->top, &leaks->growth);
    if (status != VRAM_OK) {
        vr_grouping_release(&leaks->grouping);
        return status;
    }
    leaks->count = 0;
    for (size_t i = 0; i < leaks->growth.count; i++) leaks->count += leaks->growth.grower[i].verdict == VR_VERDICT_LEAK;
    return VRAM_OK;
}

// Programs in C and C++ often allocate through a function of their own, which is the call site of everything: what leaks is lost in what
// does not. So where no call site leaks, and nothing else was asked for, whole stacks may.
static enum vram_status find_by_stack(struct vr_leaks *leaks, const struct vram_profile_options *options, struct vram_error *error) {
    struct vram_profile_options by_stack = *options;
    struct vr_grouping sites = leaks->grouping;
    struct vr_growth growth = leaks->growth;
    by_stack.by = "stack";
    leaks->grouping = (struct vr_grouping){.by = VR_GROUP_STACK};
    leaks->growth = (struct vr_growth){.count = 0};
    const enum vram_status status = find_by(leaks, &by_stack, error);
    const bool found = status == VRAM_OK && leaks->count != 0;
    vr_growth_release(found ? &growth : &leaks->growth);
    vr_grouping_release(found ? &sites : &leaks->grouping);
    if (found) return VRAM_OK;
    leaks->grouping = sites;
    leaks->growth = growth;
    return status;
}

enum vram_status vr_leaks_open(const struct vram_recording *recording, const struct vram_profile_options *options, struct vr_leaks *leaks,
                               struct vram_error *error) {
    *leaks = (struct vr_leaks){.top = options == NULL || options->top == 0 ? DEFAULT_TOP : options->top};
    VR_TRY(vr_profile_open(recording, options, &leaks->profile, error));
    const struct vr_step_wish wish = {.name = options->step, .every = options->every_events};
    enum vram_status status = vr_steps_find(leaks->profile.view, &wish, &leaks->steps);
    if (status == VRAM_OK) status = find_by(leaks, options, error);
    if (status == VRAM_OK && leaks->count == 0 && options->by == NULL) status = find_by_stack(leaks, options, error);
    if (status != VRAM_OK) vr_leaks_close(leaks);
    return status;
}
