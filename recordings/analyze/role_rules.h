// role_rules.h: rules of the user for roles: lines of a role's word and a regular expression.
#ifndef VR_ANALYZE_ROLE_RULES_H
#define VR_ANALYZE_ROLE_RULES_H

#include "analyze/finder.h"
#include "model/model.h"
#include "vram/roles.h"

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

#endif
