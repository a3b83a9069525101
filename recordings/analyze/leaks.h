// leaks.h: what leaks or grows from step to step on one device of a recording, and the judgement.
#ifndef VR_ANALYZE_LEAKS_H
#define VR_ANALYZE_LEAKS_H

#include "analyze/growth.h"
#include "analyze/profile.h"
#include "analyze/steps.h"

// X(constant, word): the answer to "does it leak?". NO_STEPS to FEW_STEPS: unknown.
#define VR_LEAK_ANSWERS(X)                                                                                                                 \
    X(NO_STEPS, no_steps)   /* nothing marks a step, and allocations do not repeat */                                                      \
    X(ONE_PASS, one_pass)   /* the repetitions are the layers of one forward pass */                                                       \
    X(UNSURE, unsure)       /* the repetitions may be layers or steps */                                                                   \
    X(FEW_STEPS, few_steps) /* fewer than VR_LEAST_STEPS */                                                                                \
    X(NONE, none)           /* no leak: nothing accumulates */                                                                             \
    X(GROWING, growing)     /* no leak, but requests grow from step to step */                                                             \
    X(RELEASED, released)   /* no leak: what accumulated was freed after the last step, while other memory stayed */                       \
    X(LEAK, leak)

enum vr_leak_answer {
#define VR_LEAK_ANSWER(constant, word) VR_LEAKS_##constant,
    VR_LEAK_ANSWERS(VR_LEAK_ANSWER)
#undef VR_LEAK_ANSWER
        VR_LEAK_ANSWER_COUNT
};
const char *vr_leak_answer_word(enum vr_leak_answer answer);

struct vr_leak_finding {
    enum vr_leak_answer answer;
    size_t leaks;          // number of leaking groups: 0 unless the answer is LEAK
    size_t shown;          // number of growers, from the first on, that belong to the answer
    double bytes_per_step; // their total
};

// Judges the growth, which must be of these steps, with the lifetimes of its grouping. Borrows everything.
struct vr_leak_finding vr_leaks_judge(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const struct vr_steps *steps,
                                      const struct vr_growth *growth);

struct vr_leaks {
    struct vr_profile profile;
    struct vr_grouping grouping; // as requested; by stack if no call site leaks and no grouping was requested
    struct vr_steps steps;
    struct vr_step_marks marks; // the recording's marks
    struct vr_growth growth;
    struct vr_leak_finding finding;
    size_t top; // number of groups to show
};

// Opens the device in the options; without one, the worst device (device_view.h) or, if that leaks nothing, the first one that does.
// INVALID_ARGUMENT with a message, BAD_INPUT, LIMIT, NO_HOST_MEMORY. The recording must outlive *leaks.
enum vram_status vr_leaks_open(const struct vram_recording *recording, const struct vram_profile_options *options, struct vr_leaks *leaks,
                               struct vram_error *error);
void vr_leaks_close(struct vr_leaks *leaks);

#endif
