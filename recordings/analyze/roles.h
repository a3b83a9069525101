// roles.h: what each allocation of a device is for: parameters, gradients, activations, ... (vram/roles.h has the list).
#ifndef VR_ANALYZE_ROLES_H
#define VR_ANALYZE_ROLES_H

#include "analyze/lifetimes.h"
#include "analyze/text_search.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/model.h"
#include "vram/roles.h"

// ---- What the frames of a call stack say of the allocation, as bits, and the forward() that it was made in.

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

// ---- Rules of the user for roles: lines of a role's word and a regular expression.

// All-zero is no rules.
struct vr_role_rules {
    struct vr_role_rule {
        enum vram_role role;
        struct vr_finder finder;
    } * rule;
    size_t count, capacity;
    uint8_t *of_frame; // of the model that was asked last: 0 not looked at, 1 no rule, 2 + number of the rule
    const struct vr_model *model;
};

// Reads the lines of `text` (NULL: none). Empty lines and what begins with '#' are passed over; else "ROLE EXPRESSION", with blanks
// between; the expression is looked for in file:line:function of every frame. INVALID_ARGUMENT with one sentence that names the line,
// LIMIT for more than 200 rules, NO_HOST_MEMORY; *rules is untouched then.
enum vram_status vr_role_rules_parse(const char *text, struct vr_role_rules *rules, struct vram_error *error);
void vr_role_rules_release(struct vr_role_rules *rules);
// The role that the first rule (in their order) gives which a frame of the stack matches; VRAM_ROLE_COUNT: none. Frames are looked at once
// per model. NO_HOST_MEMORY.
enum vram_status vr_role_rules_find(struct vr_role_rules *rules, const struct vr_model *model, uint32_t stack, enum vram_role *role);

// ---- What a program said itself of its allocations (an annotation): roles by address, and whose module asked.
// "vram.role ROLE NAME" is said of a live block, by an event `annotate`; "vram.role ROLE 0xADDRESS NAME" is the same as an annotation of
// the recording, at its time. "vram.module NAME" is the metadata of events, or an annotation that begins and ends.

// Columns by row of the lifetimes.
struct vr_role_notes {
    uint8_t *role;   // enum vram_role; VRAM_ROLE_COUNT: nothing was said
    uint32_t *named; // 1 + number of a module's name; 0: none
    struct vr_module_name {
        const char *text; // borrowed from the model
        size_t length;
    } * name;
    size_t name_count, name_capacity;
    struct vr_hash_index index; // of the names
};

// NO_HOST_MEMORY, LIMIT; *notes is untouched then.
enum vram_status vr_role_notes_find(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_role_notes *notes);
// A zeroed one is fine.
void vr_role_notes_release(struct vr_role_notes *notes);

// ---- What each allocation of a device is for: parameters, gradients, activations, ... (vram/roles.h has the list).
// A training program goes through passes: forward, backward, optimizer. The stack of an allocation says in which pass it was made; which
// later pass it lives to see says what it is for. So an allocation of the backward pass that the next optimizer step still sees is a
// gradient, and one of the forward pass that its backward pass sees an activation.

// What the program does while an allocation is made. IDLE is neither: between the passes.
enum vr_role_pass { VR_PASS_IDLE, VR_PASS_FORWARD, VR_PASS_BACKWARD, VR_PASS_OPTIMIZER, VR_PASS_LOAD, VR_PASS_INPUT, VR_PASS_COUNT };

// Columns by row of the lifetimes.
struct vr_roles {
    uint8_t *role; // enum vram_role
    uint8_t *pass; // enum vr_role_pass
    struct vr_role_marks marks;
    struct vr_role_notes notes;
    bool models; // something says that a model is loaded, asked or trained
    bool python; // some stack has Python frames
};

// rules may be NULL. NO_HOST_MEMORY, LIMIT; *roles is untouched then. The view's model must outlive it.
enum vram_status vr_roles_find(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_role_rules *rules,
                               struct vr_roles *roles);
// One word for programs; "" for none.
const char *vr_role_pass_word(enum vr_role_pass pass);
// A zeroed one is fine.
void vr_roles_release(struct vr_roles *roles);

// What each role has over a whole history, of `events` events.
struct vr_role_totals {
    struct vram_report_sum made[VRAM_ROLE_COUNT];    // all allocations, and what was live before the first event
    struct vram_report_sum highest[VRAM_ROLE_COUNT]; // the most at any moment, each at its own
};
// NO_HOST_MEMORY; *totals must be zeroed.
enum vram_status vr_roles_count(const struct vr_roles *roles, const struct vr_lifetimes *lifetimes, size_t events,
                                struct vr_role_totals *totals);

// The module of a row: a number that is the same for all rows of a module, or VR_NO_MODULE_KEY.
#define VR_NO_MODULE_KEY UINT64_MAX
uint64_t vr_roles_module(struct vr_roles *roles, const struct vr_lifetimes *lifetimes, size_t row);
// Appends the name of a module.
void vr_roles_module_name(const struct vr_roles *roles, uint64_t key, struct vr_text *text);

#endif
