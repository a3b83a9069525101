// slow_leaks.h: what grows over hours on one device of a recording, by call site and by call stack.
#ifndef VR_ANALYZE_SLOW_LEAKS_H
#define VR_ANALYZE_SLOW_LEAKS_H

#include "analyze/device_view.h"
#include "analyze/sites.h"
#include "analyze/slow_growth.h"
#include "analyze/steps.h"
#include "vram/profile.h"

// X(constant, word): the answer to "does it leak slowly?". NO_TIMES and TOO_SHORT: unknown.
#define VR_SLOW_ANSWERS(X)                                                                                                                 \
    X(NO_TIMES, no_times)   /* no events, or no times */                                                                                   \
    X(TOO_SHORT, too_short) /* less than VR_SLOW_LEAST_SECONDS */                                                                          \
    X(NONE, none)           /* nothing grows on */                                                                                         \
    X(LEAK, leak)

enum vr_slow_answer {
#define VR_SLOW_ANSWER(constant, word) VR_SLOW_ANSWER_##constant,
    VR_SLOW_ANSWERS(VR_SLOW_ANSWER)
#undef VR_SLOW_ANSWER
        VR_SLOW_ANSWER_COUNT
};
const char *vr_slow_answer_word(enum vr_slow_answer answer);

struct vr_slow_leak {
    struct vr_slow_course course;
    bool by_stack;  // only this stack of its call site grows; course.key is then the stack, otherwise the site's frame
    uint32_t stack; // a stack that grew, as an example
};

struct vr_slow_leaks {
    struct vr_views views;     // of vr_slow_leaks_open() only
    struct vr_sites own_sites; // likewise
    struct vr_sites *sites;
    const struct vr_view *view;
    enum vr_choice why;
    struct vr_steps steps; // of a recording that is too short: they may tell more
    enum vr_slow_answer answer;
    uint64_t seconds;
    int64_t first_us;
    struct vr_slow_leak *groups; // leaks first, then what grew without leaking
    size_t count, leaks;
    double bytes_per_hour; // of the leaks
    uint64_t peak_bytes;   // live, at most
    double hours_left;     // until the peak reaches the memory in the options; negative: no leak, or the memory is unknown
};

// Opens the device in the options; without one, the worst device (device_view.h) or, if that leaks nothing, the first one that does.
// INVALID_ARGUMENT with a message, BAD_INPUT, LIMIT, NO_HOST_MEMORY. The recording must outlive *leaks.
enum vram_status vr_slow_leaks_open(const struct vram_recording *recording, const struct vram_profile_options *options,
                                    struct vr_slow_leaks *leaks, struct vram_error *error);
// Judges one view, with the sites of its model; borrows both. NO_HOST_MEMORY, LIMIT; *leaks then needs no vr_slow_leaks_close().
enum vram_status vr_slow_leaks_of_view(const struct vr_view *view, struct vr_sites *sites, struct vr_slow_leaks *leaks);
void vr_slow_leaks_close(struct vr_slow_leaks *leaks);

#endif
