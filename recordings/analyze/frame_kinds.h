// frame_kinds.h: what a frame of a call stack is: the program's own, or what unwinds, dispatches, interprets, allocates or wraps.
#ifndef VR_ANALYZE_FRAME_KINDS_H
#define VR_ANALYZE_FRAME_KINDS_H

#include "model/model.h"

// X(constant, word), as good as the name of a stack as they stand here, the best first. The word is what a fold of such frames is told by;
// "" where they are shown.
#define VR_FRAME_KINDS(X)                                                                                                                  \
    X(UNSEEN, "")                                                                                                                          \
    X(OWN, "")                  /* Python of the program, or of a library that is none of these */                                         \
    X(COMPILED, "")             /* Python that torch.compile wrote */                                                                      \
    X(TORCH, "PyTorch")         /* Python of PyTorch */                                                                                    \
    X(BINDING, "bindings")      /* Python of what wraps a device's library */                                                              \
    X(NODE, "autograd")         /* the node of autograd's graph that is worked off */                                                      \
    X(OUTSIDE, "")              /* machine code of the program outside all of PyTorch's */                                                 \
    X(OPERATOR, "operators")    /* an operator of PyTorch as it is called; they call each other, the outermost one was asked for */        \
    X(NATIVE, "")               /* other machine code */                                                                                   \
    X(KERNEL, "PyTorch")        /* machine code of PyTorch */                                                                              \
    X(DISPATCHER, "dispatcher") /* between the two */                                                                                      \
    X(ALLOCATOR, "allocator")                                                                                                              \
    X(RUNTIME, "runtime")                                                                                                                  \
    X(INTERPRETER, "interpreter")                                                                                                          \
    X(SKIPPED, "skipped")    /* what the user does not want to be named */                                                                 \
    X(UNWINDER, "unwinding") /* what recorded the stack */

enum vr_frame_kind {
#define VR_FRAME_KIND_ROW(constant, word) VR_FRAME_##constant,
    VR_FRAME_KINDS(VR_FRAME_KIND_ROW)
#undef VR_FRAME_KIND_ROW
        VR_FRAME_KIND_COUNT
};

// File and function of a frame; of machine code without a source the library's file.
struct vr_frame_text {
    const char *file, *name; // the text ends in a zero after that many bytes
    size_t file_length, name_length;
};

// By the table frame_kinds.def; never UNSEEN, OUTSIDE or SKIPPED.
enum vr_frame_kind vr_frame_kind_of(const struct vr_frame_text *frame);
enum vr_frame_kind vr_frame_kind(const struct vr_model *model, uint32_t frame);
// Whether the frame is Python of a file outside torch itself, whatever wraps what: what other tools name a stack by.
bool vr_frame_is_python(const struct vr_model *model, uint32_t frame, bool outside_torch);
// Which frame of a stack is its call site. All-zero is a stack of which no frame was seen.
struct vr_site_choice {
    uint64_t frame[VR_FRAME_KIND_COUNT]; // the one that counts of each kind
    bool has[VR_FRAME_KIND_COUNT];
};
// The next frame, innermost first. True when none that follows can be better.
bool vr_site_choice_add(struct vr_site_choice *choice, enum vr_frame_kind kind, uint64_t frame);
// After at least one frame.
uint64_t vr_site_choice_best(const struct vr_site_choice *choice);

// The word of a fold; "" for what is shown.
const char *vr_frame_kind_word(enum vr_frame_kind kind);

#endif
