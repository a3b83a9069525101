// leaks.h: what piles up or grows from step to step in one device of a recording, and what may be said of it.
#ifndef VR_ANALYZE_LEAKS_H
#define VR_ANALYZE_LEAKS_H

#include "analyze/growth.h"
#include "analyze/profile.h"
#include "analyze/steps.h"

// X(constant, word): the answer to "does it leak?". NO_STEPS to FEW_STEPS: that cannot be said.
#define VR_LEAK_ANSWERS(X)                                                                                                                 \
    X(NO_STEPS, no_steps)   /* nothing marks a step, and allocations do not repeat */                                                      \
    X(ONE_PASS, one_pass)   /* what repeats are the layers of one forward pass */                                                          \
    X(UNSURE, unsure)       /* what repeats may be layers or steps */                                                                      \
    X(FEW_STEPS, few_steps) /* fewer than VR_LEAST_STEPS */                                                                                \
    X(NONE, none)           /* no leak: nothing piles up */                                                                                \
    X(GROWING, growing)     /* no leak, but requests grow from step to step */                                                             \
    X(RELEASED, released)   /* no leak: what piled up was freed after the last step, while other memory stayed */                          \
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
    size_t leaks;          // groups that leak: 0 unless the answer is LEAK
    size_t shown;          // how many of the growers, from the first on, belong to the answer
    double bytes_per_step; // of these together
};

// The growth is that of these steps, the lifetimes those of its grouping. All borrowed.
struct vr_leak_finding vr_leaks_judge(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const struct vr_steps *steps,
                                      const struct vr_growth *growth);

struct vr_leaks {
    struct vr_profile profile;
    struct vr_grouping grouping; // as asked for; by stack where no call site leaks and nothing else was asked for
    struct vr_steps steps;
    struct vr_step_marks marks; // what the recording marks
    struct vr_growth growth;
    struct vr_leak_finding finding;
    size_t top; // groups to show
};

// Without a device in the options: the one in trouble (device_view.h), or where that leaks nothing the first one that does.
// INVALID_ARGUMENT with a sentence, BAD_INPUT, LIMIT, NO_HOST_MEMORY. The recording must outlive it.
enum vram_status vr_leaks_open(const struct vram_recording *recording, const struct vram_profile_options *options, struct vr_leaks *leaks,
                               struct vram_error *error);
void vr_leaks_close(struct vr_leaks *leaks);

#endif
