// steps.h: where the steps of a training loop begin: by marks of the program, by what was asked for, or by how the allocations repeat.
#ifndef VR_ANALYZE_STEPS_H
#define VR_ANALYZE_STEPS_H

#include "analyze/device_view.h"

// ---- The marks of a recording by name, as steps can begin at them.

struct vr_step_mark {
    uint32_t name; // string id
    size_t count;  // how often it begins
};

// By falling count, then by the number of their name.
struct vr_step_marks {
    struct vr_step_mark *mark;
    size_t count;
};

// Annotations and marks among the events that concern the device. NO_HOST_MEMORY; *marks is untouched then.
enum vram_status vr_step_marks_find(const struct vr_view *view, struct vr_step_marks *marks);
void vr_step_marks_release(struct vr_step_marks *marks);

// ---- The period in which a history's allocations (stack and size) repeat, and where its turns begin. Worked out a piece at a time, for
// those who must not wait.

struct vr_repeats;

// Borrows the history. Given to the caller: vr_repeats_destroy(). NO_HOST_MEMORY.
enum vram_status vr_repeats_create(const struct vr_history *history, struct vr_repeats **repeats);
// NULL is ignored.
void vr_repeats_destroy(struct vr_repeats *repeats);
// Looks at up to `events` further events. *share: how much of all is done, 1 when it is finished. NO_HOST_MEMORY.
enum vram_status vr_repeats_go_on(struct vr_repeats *repeats, size_t events, double *share);
// Of what is finished: the events that turns begin with, ascending, and whether they are those of a loop, not layers say. *first is given
// to the caller (free(); NULL for none), once.
void vr_repeats_take(struct vr_repeats *repeats, size_t **first, size_t *count, bool *loop);

// ---- Where the steps of a training loop begin: by marks of the program, by what was asked for, or by how the allocations repeat.

// X(constant, word): how the steps were found.
#define VR_STEP_SOURCES(X)                                                                                                                 \
    X(NONE, "none")                                                                                                                        \
    X(MARKED, "marked")                                                                                                                    \
    X(EVERY, "given")                                                                                                                      \
    X(REPEATED, "repeated")

enum vr_step_source {
#define VR_STEP_SOURCE(constant, word) VR_STEPS_##constant,
    VR_STEP_SOURCES(VR_STEP_SOURCE)
#undef VR_STEP_SOURCE
        VR_STEP_SOURCE_COUNT
};
const char *vr_step_source_word(enum vr_step_source source);

// Step i begins before event first[i]. The last one may be incomplete.
struct vr_steps {
    enum vr_step_source source;
    size_t *first; // ascending
    size_t count;
    uint32_t name; // string id of the marks, 0 without
    bool asked;    // marks of a name were asked for
    bool unsure;   // REPEATED: they may be the layers of a model
    // REPEATED: 1 + the frame of the pass that all of them happen in (steps.c), which makes them its layers; 0: no such frame.
    uint32_t pass_frame;
};

struct vr_step_wish {
    const char *name; // marks of this name; NULL: STEP marks, ProfilerStep#N, Optimizer.step..., whatever is called a step or iteration
    uint64_t every;   // steps of so many events; 0: not given
};

// Without marks and without a wish the longest period that the sequence of allocations (stack and size) repeats in is taken; they are
// unsure where memory does not do in them what it does in those of a loop (repeats.c). Fewer than
// three steps are none. NO_HOST_MEMORY; *steps is untouched then.
enum vram_status vr_steps_find(const struct vr_view *view, const struct vr_step_wish *wish, struct vr_steps *steps);
void vr_steps_release(struct vr_steps *steps);

// The same a piece at a time, for those who must not wait.
struct vr_steps_search;
// Borrows the view. Marks and what is given are found here. Given to the caller: vr_steps_search_destroy(). NO_HOST_MEMORY.
enum vram_status vr_steps_search_create(const struct vr_view *view, const struct vr_step_wish *wish, struct vr_steps_search **search);
// NULL is ignored.
void vr_steps_search_destroy(struct vr_steps_search *search);
// Looks at up to `events` further events. *share: how much of all is done, 1 when it is finished. NO_HOST_MEMORY.
enum vram_status vr_steps_search_go_on(struct vr_steps_search *search, size_t events, double *share);
// Of a finished search; borrowed from it.
const struct vr_steps *vr_steps_search_found(const struct vr_steps_search *search);

#endif
