// What may be said of leaks: steps that are none, too few or not sure tell nothing, however memory goes.
#include "analyze/leaks.h"

// What piled up counts as freed after the last step where this part of it was; the rest of memory counts as kept where this part of it was.
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

// A program that ends frees everything. What was live before the first point and is live at the end tells that it has not ended: a list
// that is given back then was no leak.
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
