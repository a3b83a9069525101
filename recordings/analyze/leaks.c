// Judges what leaks or grows from step to step on one device.
#include "analyze/leaks.h"

// ---- Judges leaks. This needs enough steps, and steps that are certain.

// Leaked memory counts as freed after the last step if more than this part of it was. The program had not ended if at least this part of
// its memory from before the first step is still live.
#define ENDED_PART 0.5

const char *vr_leak_answer_word(enum vr_leak_answer answer) {
    static const char *const words[] = {
#define VR_LEAK_ANSWER(constant, word) #word,
        VR_LEAK_ANSWERS(VR_LEAK_ANSWER)
#undef VR_LEAK_ANSWER
    };
    return words[answer];
}

static bool ran_out(const struct vr_history *history) {
    for (size_t i = 0; i < history->count; i++) {
        if (history->action[i] == VR_ACTION_OOM) return true;
    }
    return false;
}

// Returns whether the program went on after the last step. A program that ends frees everything; if memory from before the first point is
// still live at the end, the program had not ended, and a list that it freed was not a leak.
static bool goes_on_after(const struct vr_lifetimes *lifetimes, const struct vr_growth *growth) {
    const size_t first = growth->point[0], last = growth->point[growth->point_count - 1];
    double base = 0, stays = 0;
    for (size_t row = 0; row < lifetimes->count; row++) {
        const bool old = lifetimes->birth[row] == VR_BEFORE_TRACE || lifetimes->birth[row] < first;
        if (!old || (lifetimes->death[row] != VR_NEVER && lifetimes->death[row] < last)) continue;
        base += (double)lifetimes->size_bytes[row];
        if (lifetimes->death[row] == VR_NEVER) stays += (double)lifetimes->size_bytes[row];
    }
    return base > 0 && stays >= ENDED_PART * base;
}

static bool was_freed_after(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const struct vr_growth *growth,
                            size_t leaks) {
    double kept = 0, ended = 0;
    for (size_t i = 0; i < leaks; i++) {
        kept += (double)growth->grower[i].kept_bytes;
        ended += (double)growth->grower[i].ended_bytes;
    }
    return ended > ENDED_PART * kept && !ran_out(view->history) && goes_on_after(lifetimes, growth);
}

static size_t count_of(const struct vr_growth *growth, enum vr_verdict verdict) {
    size_t count = 0;
    for (size_t i = 0; i < growth->count; i++) count += growth->grower[i].verdict == verdict;
    return count;
}

static enum vr_leak_answer answer_of_steps(const struct vr_steps *steps) {
    if (steps->count == 0) return VR_LEAKS_NO_STEPS;
    if (steps->pass_frame != 0) return VR_LEAKS_ONE_PASS;
    if (steps->unsure) return VR_LEAKS_UNSURE;
    return steps->count < VR_LEAST_STEPS ? VR_LEAKS_FEW_STEPS : VR_LEAKS_NONE;
}

struct vr_leak_finding vr_leaks_judge(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const struct vr_steps *steps,
                                      const struct vr_growth *growth) {
    struct vr_leak_finding finding = {.answer = answer_of_steps(steps)};
    if (finding.answer != VR_LEAKS_NONE) return finding;
    const size_t leaks = count_of(growth, VR_VERDICT_LEAK), grow = count_of(growth, VR_VERDICT_GROWTH);
    finding.shown = leaks != 0 ? leaks : grow;
    for (size_t i = 0; i < finding.shown; i++) finding.bytes_per_step += growth->grower[i].bytes_per_step;
    if (leaks != 0 && was_freed_after(view, lifetimes, growth, leaks)) {
        finding.answer = VR_LEAKS_RELEASED;
        finding.shown = 0;
    } else if (leaks != 0) {
        finding.answer = VR_LEAKS_LEAK;
        finding.leaks = leaks;
    } else if (grow != 0) {
        finding.answer = VR_LEAKS_GROWING;
    }
    return finding;
}

enum { DEFAULT_TOP = 10 };

void vr_leaks_close(struct vr_leaks *leaks) {
    vr_growth_release(&leaks->growth);
    vr_step_marks_release(&leaks->marks);
    vr_steps_release(&leaks->steps);
    vr_grouping_release(&leaks->grouping);
    vr_profile_close(&leaks->profile);
}

// Finds growth and leaks by a grouping. Needs no release after a failure.
static enum vram_status find_by(struct vr_leaks *leaks, const struct vram_profile_options *options, struct vram_error *error) {
    VR_TRY(vr_profile_grouping(&leaks->profile, options, &leaks->grouping, error));
    const enum vram_status status = vr_growth_find(&leaks->grouping, &leaks->steps, leaks->top, &leaks->growth);
    if (status != VRAM_OK) {
        vr_grouping_release(&leaks->grouping);
        return status;
    }
    leaks->finding = vr_leaks_judge(leaks->profile.view, &leaks->profile.lifetimes, &leaks->steps, &leaks->growth);
    return VRAM_OK;
}

// Groups by whole stacks. C and C++ programs often allocate through their own function, which is then the call site of everything and hides
// leaks. Therefore whole stacks are tried if no call site leaks and the user did not choose a grouping.
static enum vram_status find_by_stack(struct vr_leaks *leaks, const struct vram_profile_options *options, struct vram_error *error) {
    struct vram_profile_options by_stack = *options;
    struct vr_grouping sites = leaks->grouping;
    struct vr_growth growth = leaks->growth;
    const struct vr_leak_finding finding = leaks->finding;
    by_stack.by = "stack";
    leaks->grouping = (struct vr_grouping){.by = VR_GROUP_STACK};
    leaks->growth = (struct vr_growth){.count = 0};
    const enum vram_status status = find_by(leaks, &by_stack, error);
    const bool found = status == VRAM_OK && leaks->finding.leaks != 0;
    vr_growth_release(found ? &growth : &leaks->growth);
    vr_grouping_release(found ? &sites : &leaks->grouping);
    if (found) return VRAM_OK;
    leaks->grouping = sites;
    leaks->growth = growth;
    leaks->finding = finding;
    return status;
}

static enum vram_status open_device(const struct vram_recording *recording, const struct vram_profile_options *options,
                                    struct vr_leaks *leaks, struct vram_error *error) {
    *leaks = (struct vr_leaks){.top = options == NULL || options->top == 0 ? DEFAULT_TOP : options->top};
    VR_TRY(vr_profile_open(recording, options, &leaks->profile, error));
    const struct vr_step_wish wish = {.name = options->step, .every = options->every_events};
    enum vram_status status = vr_steps_find(leaks->profile.view, &wish, &leaks->steps);
    if (status == VRAM_OK) status = vr_step_marks_find(leaks->profile.view, &leaks->marks);
    if (status == VRAM_OK) status = find_by(leaks, options, error);
    if (status == VRAM_OK && leaks->finding.answer >= VR_LEAKS_NONE && leaks->finding.leaks == 0 && options->by == NULL)
        status = find_by_stack(leaks, options, error);
    if (status != VRAM_OK) vr_leaks_close(leaks);
    return status;
}

// Finds the first other device that leaks; the device of *leaks if no other leaks.
static enum vram_status find_leaking(const struct vram_recording *recording, const struct vram_profile_options *options,
                                     const struct vr_leaks *leaks, uint32_t *device, struct vram_error *error) {
    const struct vr_views *views = &leaks->profile.views;
    *device = leaks->profile.view->device;
    for (size_t d = 0; d < views->count; d++) {
        struct vram_profile_options other = *options;
        struct vr_leaks found;
        if (views->view[d].device == leaks->profile.view->device || views->view[d].history->count == 0) continue;
        other.device = views->view[d].device;
        VR_TRY(open_device(recording, &other, &found, error));
        const bool leaking = found.finding.leaks != 0;
        vr_leaks_close(&found);
        if (!leaking) continue;
        *device = views->view[d].device;
        return VRAM_OK;
    }
    return VRAM_OK;
}

enum vram_status vr_leaks_open(const struct vram_recording *recording, const struct vram_profile_options *options, struct vr_leaks *leaks,
                               struct vram_error *error) {
    VR_TRY(open_device(recording, options, leaks, error));
    const uint32_t likely = leaks->profile.view->device;
    if (options->device >= 0 || leaks->finding.leaks != 0) return VRAM_OK;
    struct vram_profile_options other = *options;
    uint32_t device = likely;
    const enum vram_status status = find_leaking(recording, options, leaks, &device, error);
    if (status != VRAM_OK || device != likely) vr_leaks_close(leaks);
    if (status != VRAM_OK || device == likely) return status;
    other.device = device;
    return open_device(recording, &other, leaks, error);
}
