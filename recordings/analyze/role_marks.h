// role_marks.h: what the frames of a call stack say of the allocation, as bits; and in which forward() it stands.
#ifndef VR_ANALYZE_ROLE_MARKS_H
#define VR_ANALYZE_ROLE_MARKS_H

#include "model/model.h"

// X(constant): said by the rows of roles.def, but for the last three.
#define VR_MARKS(X)                                                                                                                        \
    X(BACKWARD)      /* in the thread of the backward pass */                                                                              \
    X(ACCUMULATE)    /* where a gradient is put down */                                                                                    \
    X(ENGINE)        /* in who called the backward pass */                                                                                 \
    X(RECOMPUTE)     /* a piece of the forward pass that the backward pass runs once more */                                               \
    X(OPTIMIZER)     /* in an optimizer */                                                                                                 \
    X(STATE)         /* where an optimizer makes its state */                                                                              \
    X(COMMUNICATION) /* in a collective or its buffers */                                                                                  \
    X(REDUCE)        /* where gradients are reduced: what comes out of it is the gradient */                                               \
    X(KV)            /* in a cache of keys and values */                                                                                   \
    X(WORKSPACE)     /* scratch of a library */                                                                                            \
    X(LOAD)          /* parameters are moved or loaded */                                                                                  \
    X(BUILD)         /* something is constructed: a module, where nothing else is said */                                                  \
    X(FORWARD)       /* in a module's call */                                                                                              \
    X(INPUT)         /* data for the model */                                                                                              \
    X(MADE)          /* a tensor made or moved by name; only C++ frames tell */                                                            \
    X(TEMPORARY)     /* nothing that is made here stays */                                                                                 \
    X(FOREACH)       /* an optimizer works on all parameters at once */                                                                    \
    X(ATTENTION)     /* in what is called attention */                                                                                     \
    X(LINEAR)        /* in a product with weights */                                                                                       \
    X(LOSS)          /* in what is called a loss, or where logits are made */                                                              \
    X(CAST)          /* autocast's copy of a weight */                                                                                     \
    X(FRAMES)        /* the stack has frames */                                                                                            \
    X(PYTHON)        /* among them Python's */                                                                                             \
    X(NATIVE)        /* and others */

enum vr_role_mark_number {
#define VR_MARK(constant) VR_MARK_NUMBER_##constant,
    VR_MARKS(VR_MARK)
#undef VR_MARK
        VR_MARK_NUMBER_COUNT
};
enum vr_role_mark {
#define VR_MARK(constant) VR_MARK_##constant = 1 << VR_MARK_NUMBER_##constant,
    VR_MARKS(VR_MARK)
#undef VR_MARK
};

#define VR_NO_MODULE UINT32_MAX

// Of one model's stacks, found when first asked for. One thread at a time.
struct vr_role_marks {
    const struct vr_model *model; // borrowed
    uint32_t *of_frame;           // marks, and bits of the file's own; 0: not looked at
    uint32_t *of_stack;           // marks; 0: not looked at
};

// NO_HOST_MEMORY. The model must outlive the marks.
enum vram_status vr_role_marks_init(struct vr_role_marks *marks, const struct vr_model *model);
void vr_role_marks_release(struct vr_role_marks *marks);
// The marks of a stack.
uint32_t vr_role_marks_of(struct vr_role_marks *marks, uint32_t stack);
// The marks of one frame alone.
uint32_t vr_role_marks_of_frame(struct vr_role_marks *marks, uint32_t frame);
// Whether a frame is Python code of the program's own: no file of torch's.
bool vr_role_marks_is_own(struct vr_role_marks *marks, uint32_t frame);
// The frame of the innermost forward() of the program's own, else of torch's own, else VR_NO_MODULE.
uint32_t vr_role_marks_module(struct vr_role_marks *marks, uint32_t stack);

#endif
