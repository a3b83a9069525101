// group_names.h: moments, groups and stacks as people and programs read them.
#ifndef VR_PRESENT_GROUP_NAMES_H
#define VR_PRESENT_GROUP_NAMES_H

#include "analyze/profile.h"
#include "base/json.h"

// "peak", "the end", "event 7": as people say it.
void vr_profile_moment(const struct vr_profile *subject, const struct vram_profile_options *options, struct vr_text *text);
// "device 1"; where nothing named it, with the reason: "device 1 (out of memory)".
void vr_profile_device(const struct vr_profile *subject, struct vr_text *text);
// The name of a group of that kind for people: printable, and functions without their arguments where these would hide them.
void vr_title_print(enum vr_group_by by, const char *name, size_t length, struct vr_text *text);
// A group's name for people.
void vr_group_title(const struct vr_grouping *grouping, uint64_t key, struct vr_text *text);
// A group's name as a member of a JSON object. NO_HOST_MEMORY.
enum vram_status vr_group_name_json(const struct vr_grouping *grouping, uint64_t key, struct vr_json *json);
// The frames of a stack, innermost first, a line each, the call site before them; what is folded counts as one.
void vr_stack_print(struct vr_sites *sites, uint32_t stack, const struct vram_style *style, struct vr_text *text);

#endif
