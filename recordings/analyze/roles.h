// roles.h: what each allocation of a device is for: parameters, gradients, activations, ... (vram/roles.h has the list).
//
// A training program goes through passes: forward, backward, optimizer. The stack of an allocation says in which pass it was made; which
// later pass it lives to see says what it is for. So an allocation of the backward pass that the next optimizer step still sees is a
// gradient, and one of the forward pass that its backward pass sees an activation.
#ifndef VR_ANALYZE_ROLES_H
#define VR_ANALYZE_ROLES_H

#include "analyze/role_marks.h"
#include "analyze/role_notes.h"
#include "analyze/role_rules.h"
#include "base/text.h"
#include "vram/roles.h"

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
