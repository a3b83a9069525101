// steps.h: where the steps of a training loop begin: by the program's marks, as requested, or by repetitions of allocations.
#ifndef VR_ANALYZE_STEPS_H
#define VR_ANALYZE_STEPS_H

#include "analyze/device_view.h"

// ---- The marks of a recording by name; steps can begin at them.

struct vr_step_mark {
    uint32_t name; // string id
    size_t count;  // number of times that it begins
};

// By descending count, then by the number of their name.
struct vr_step_marks {
    struct vr_step_mark *mark;
    size_t count;
};

// Lists annotations, and marks among the events, of the device. NO_HOST_MEMORY; *marks is then unchanged.
enum vram_status vr_step_marks_find(const struct vr_view *view, struct vr_step_marks *marks);
void vr_step_marks_release(struct vr_step_marks *marks);

// ---- The period with which a history's allocations (stack and size) repeat, and where its iterations begin. Computed in pieces, to keep a
// caller responsive.

struct vr_repeats;

// Borrows the history. The caller owns *repeats: vr_repeats_destroy(). NO_HOST_MEMORY.
enum vram_status vr_repeats_create(const struct vr_history *history, struct vr_repeats **repeats);
// NULL is ignored.
void vr_repeats_destroy(struct vr_repeats *repeats);
// Processes up to `events` more events. *share is the completed share of the work, 1 when finished. NO_HOST_MEMORY.
enum vram_status vr_repeats_go_on(struct vr_repeats *repeats, size_t events, double *share);
// Takes the result of a finished search: *first are the events that begin iterations, ascending; *loop is whether the iterations are those
// of a loop instead of, for example, layers. The caller frees *first (NULL if there are no iterations). Call once.
void vr_repeats_take(struct vr_repeats *repeats, size_t **first, size_t *count, bool *loop);

// ---- Where the steps of a training loop begin: by the program's marks, as requested, or by repetitions of allocations.

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
    uint32_t name; // string id of the marks; 0: no marks
    bool asked;    // marks with a given name were requested
    bool unsure;   // REPEATED: they may be the layers of a model
    // REPEATED: 1 + the frame of the pass that contains all steps (steps.c), so they are its layers; 0: no such frame.
    uint32_t pass_frame;
};

struct vr_step_wish {
    const char *name; // marks with this name; NULL: STEP marks, ProfilerStep#N, Optimizer.step..., and any name with step or iteration
    uint64_t every;   // steps of this many events; 0: not given
};

// Finds the steps. Without marks and without a request, they are the longest period with which the sequence of allocations (stack and size)
// repeats; they are unsure if memory does not behave as in a loop (repeats.c). Fewer than three steps do not count. NO_HOST_MEMORY; *steps
// is then unchanged.
enum vram_status vr_steps_find(const struct vr_view *view, const struct vr_step_wish *wish, struct vr_steps *steps);
void vr_steps_release(struct vr_steps *steps);

// Finds the steps like vr_steps_find(), but in pieces, to keep a caller responsive.
struct vr_steps_search;
// Borrows the view. Finds marks and requested steps in this call. The caller owns *search: vr_steps_search_destroy(). NO_HOST_MEMORY.
enum vram_status vr_steps_search_create(const struct vr_view *view, const struct vr_step_wish *wish, struct vr_steps_search **search);
// NULL is ignored.
void vr_steps_search_destroy(struct vr_steps_search *search);
// Processes up to `events` more events. *share is the completed share of the work, 1 when finished. NO_HOST_MEMORY.
enum vram_status vr_steps_search_go_on(struct vr_steps_search *search, size_t events, double *share);
// Returns the result of a finished search; borrowed from it.
const struct vr_steps *vr_steps_search_found(const struct vr_steps_search *search);

#endif
