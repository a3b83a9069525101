// roles.h: the role of each allocation of a device: parameters, gradients, activations, ... (listed in vram/roles.h).
#ifndef VR_ANALYZE_ROLES_H
#define VR_ANALYZE_ROLES_H

#include "analyze/lifetimes.h"
#include "analyze/text_search.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/model.h"
#include "vram/roles.h"

// ---- Evidence from the frames of an allocation's call stack, as bits, and the forward() that made it.

// X(constant): set by the rows of roles.def, except for the last three.
#define VR_MARKS(X)                                                                                                                        \
    X(BACKWARD)      /* in the thread of the backward pass */                                                                              \
    X(ACCUMULATE)    /* where a gradient is stored */                                                                                      \
    X(ENGINE)        /* below the caller of the backward pass */                                                                           \
    X(RECOMPUTE)     /* a part of the forward pass that the backward pass runs again */                                                    \
    X(OPTIMIZER)     /* in an optimizer */                                                                                                 \
    X(STATE)         /* where an optimizer creates its state */                                                                            \
    X(COMMUNICATION) /* in a collective or its buffers */                                                                                  \
    X(REDUCE)        /* where gradients are reduced: the result is the gradient */                                                         \
    X(KV)            /* in a cache of keys and values */                                                                                   \
    X(WORKSPACE)     /* a library's scratch memory */                                                                                      \
    X(LOAD)          /* parameters are moved or loaded */                                                                                  \
    X(BUILD)         /* a constructor runs: a module's, unless other marks apply */                                                        \
    X(FORWARD)       /* in a module's call */                                                                                              \
    X(INPUT)         /* data for the model are prepared */                                                                                 \
    X(MADE)          /* a tensor is made or moved by name; known from C++ frames only */                                                   \
    X(TEMPORARY)     /* everything made here is temporary */                                                                               \
    X(FOREACH)       /* an optimizer processes all parameters at once */                                                                   \
    X(ATTENTION)     /* in code named attention */                                                                                         \
    X(LINEAR)        /* in a product with weights */                                                                                       \
    X(LOSS)          /* in code named loss, or where logits are computed */                                                                \
    X(CAST)          /* autocast's copy of a weight */                                                                                     \
    X(FRAMES)        /* the stack has frames */                                                                                            \
    X(PYTHON)        /* some are Python frames */                                                                                          \
    X(NATIVE)        /* some are not */

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

// The marks of a model's stacks, computed at first use. Use from one thread at a time.
struct vr_role_marks {
    const struct vr_model *model; // borrowed
    uint32_t *of_frame;           // marks, and bits private to the file; 0: not computed
    uint32_t *of_stack;           // marks; 0: not computed
};

// Initializes the marks. NO_HOST_MEMORY. The model must outlive them.
enum vram_status vr_role_marks_init(struct vr_role_marks *marks, const struct vr_model *model);
void vr_role_marks_release(struct vr_role_marks *marks);
// Returns the marks of a stack.
uint32_t vr_role_marks_of(struct vr_role_marks *marks, uint32_t stack);
// Returns the marks of a single frame.
uint32_t vr_role_marks_of_frame(struct vr_role_marks *marks, uint32_t frame);
// Returns whether a frame is the program's own Python code, outside torch's files.
bool vr_role_marks_is_own(struct vr_role_marks *marks, uint32_t frame);
// Returns the frame of the innermost forward() of the program, otherwise of torch, otherwise VR_NO_MODULE.
uint32_t vr_role_marks_module(struct vr_role_marks *marks, uint32_t stack);

// ---- The user's rules for roles: lines with a role's word and a regular expression.

// A zeroed struct has no rules.
struct vr_role_rules {
    struct vr_role_rule {
        enum vram_role role;
        struct vr_finder finder;
    } * rule;
    size_t count, capacity;
    uint8_t *of_frame; // for the last model: 0: not looked at, 1: no rule, 2 + index of the rule
    const struct vr_model *model;
};

// Parses the lines of `text` (NULL: no rules). Ignores empty lines and those that begin with '#'; other lines are "ROLE EXPRESSION",
// separated by blanks; the expression is searched for in file:line:function of every frame. INVALID_ARGUMENT with a message that names the
// line, LIMIT for more than 200 rules, NO_HOST_MEMORY; *rules is then unchanged.
enum vram_status vr_role_rules_parse(const char *text, struct vr_role_rules *rules, struct vram_error *error);
void vr_role_rules_release(struct vr_role_rules *rules);
// Sets *role to that of the first rule that matches a frame of the stack; VRAM_ROLE_COUNT if none does. Looks at each frame once per model.
// NO_HOST_MEMORY.
enum vram_status vr_role_rules_find(struct vr_role_rules *rules, const struct vr_model *model, uint32_t stack, enum vram_role *role);

// ---- The program's own notes about its allocations: roles by address, and the module of a request. "vram.role ROLE NAME" in an event
// `annotate` is about a live block; "vram.role ROLE 0xADDRESS NAME" is the same as an annotation of the recording, at its time.
// "vram.module NAME" is the metadata of events, or an annotation with a beginning and an end.

// Columns by row of the lifetimes.
struct vr_role_notes {
    uint8_t *role;   // enum vram_role; VRAM_ROLE_COUNT: no note
    uint32_t *named; // 1 + number of a module's name; 0: no module
    struct vr_module_name {
        const char *text; // borrowed from the model
        size_t length;
    } * name;
    size_t name_count, name_capacity;
    struct vr_hash_index index; // of the names
};

// Finds the notes. NO_HOST_MEMORY, LIMIT; *notes is then unchanged.
enum vram_status vr_role_notes_find(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_role_notes *notes);
// Accepts a zeroed struct.
void vr_role_notes_release(struct vr_role_notes *notes);

// ---- The role of each allocation of a device: parameters, gradients, activations, ... (listed in vram/roles.h). A training program goes
// through passes: forward, backward, optimizer. An allocation's stack shows the pass that made it, and the later passes in which it is live
// show its role. So an allocation of the backward pass that is live in the next optimizer step is a gradient, and one of the forward pass
// that is live in its backward pass an activation.

// The activity of the program during an allocation. IDLE: between the passes.
enum vr_role_pass { VR_PASS_IDLE, VR_PASS_FORWARD, VR_PASS_BACKWARD, VR_PASS_OPTIMIZER, VR_PASS_LOAD, VR_PASS_INPUT, VR_PASS_COUNT };

// Columns by row of the lifetimes.
struct vr_roles {
    uint8_t *role; // enum vram_role
    uint8_t *pass; // enum vr_role_pass
    struct vr_role_marks marks;
    struct vr_role_notes notes;
    bool models; // there is evidence that a model is loaded, queried or trained
    bool python; // some stack has Python frames
};

// Finds the roles. rules may be NULL. NO_HOST_MEMORY, LIMIT; *roles is then unchanged. The view's model must outlive them.
enum vram_status vr_roles_find(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_role_rules *rules,
                               struct vr_roles *roles);
// Returns the JSON name of a pass; "" for IDLE.
const char *vr_role_pass_word(enum vr_role_pass pass);
// Accepts a zeroed struct.
void vr_roles_release(struct vr_roles *roles);

// Totals by role over a whole history.
struct vr_role_totals {
    struct vram_report_sum made[VRAM_ROLE_COUNT];    // all allocations, including those live before the first event
    struct vram_report_sum highest[VRAM_ROLE_COUNT]; // each role's maximum, at its own moment
};
// Counts the totals of a history of `events` events. NO_HOST_MEMORY; *totals must be zeroed.
enum vram_status vr_roles_count(const struct vr_roles *roles, const struct vr_lifetimes *lifetimes, size_t events,
                                struct vr_role_totals *totals);

// Returns the module of a row: a key common to all rows of the module, or VR_NO_MODULE_KEY.
#define VR_NO_MODULE_KEY UINT64_MAX
uint64_t vr_roles_module(struct vr_roles *roles, const struct vr_lifetimes *lifetimes, size_t row);
// Appends the name of a module.
void vr_roles_module_name(const struct vr_roles *roles, uint64_t key, struct vr_text *text);

#endif
