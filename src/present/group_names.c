#include "present/group_names.h"

#include "present/text_parts.h"

void vr_profile_moment(const struct vr_profile *subject, const struct vram_profile_options *options, struct vr_text *text) {
    if (options->moment == VRAM_PROFILE_PEAK) vr_text_puts(text, "the peak, ");
    if (options->moment == VRAM_PROFILE_END) vr_text_puts(text, "the end, ");
    if (subject->event < 0)
        vr_text_puts(text, "before the first event");
    else
        vr_text_printf(text, "after event %s", vr_count((uint64_t)subject->event).text);
}

// The title of a role, by its word.
static const char *role_title(const char *word, size_t length) {
    size_t role = 0;
    while (vram_role_word(role) != NULL && (strlen(vram_role_word(role)) != length || memcmp(vram_role_word(role), word, length) != 0))
        role++;
    return vram_role_title(role);
}

void vr_title_print(enum vr_group_by by, const char *name, size_t length, struct vr_text *text) {
    if (by == VR_GROUP_SITE || by == VR_GROUP_STACK) {
        vr_text_site(text, name, length);
    } else if (by == VR_GROUP_ROLE && role_title(name, length) != NULL) {
        vr_text_puts(text, role_title(name, length));
    } else if (by == VR_GROUP_FUNCTION) {
        vr_text_function(text, name, length);
    } else {
        vr_text_printable(text, name, length);
    }
}

void vr_group_title(const struct vr_grouping *grouping, uint64_t key, struct vr_text *text) {
    struct vr_text name = {0};
    vr_grouping_name(grouping, key, &name);
    vr_title_print(grouping->by, vr_text_string(&name), name.length, text);
    text->failed = text->failed || name.failed;
    vr_text_release(&name);
}

enum vram_status vr_group_name_json(const struct vr_grouping *grouping, uint64_t key, struct vr_json *json) {
    struct vr_text name = {0};
    vr_grouping_name(grouping, key, &name);
    const enum vram_status status = vr_text_status(&name);
    vr_json_string_bytes(json, "name", vr_text_string(&name), name.length);
    vr_text_release(&name);
    return status;
}

void vr_stack_print(const struct vr_model *model, uint64_t stack, const struct vram_style *style, struct vr_text *text) {
    enum { STACK_FRAMES = 12 };
    const uint64_t first = model->stacks.offset[stack], end = model->stacks.offset[stack + 1];
    vr_text_colour(text, style, VR_DIM);
    for (uint64_t i = first; i < end && i - first < STACK_FRAMES; i++) {
        const uint32_t frame = model->stacks.frame[i], name = model->frames.name[frame], file = model->frames.filename[frame];
        vr_text_puts(text, "       ");
        vr_text_printable(text, vr_model_string(model, name), vr_model_string_length(model, name));
        vr_text_puts(text, "  ");
        vr_text_printable(text, vr_model_string(model, file), vr_model_string_length(model, file));
        vr_text_printf(text, ":%lld\n", (long long)model->frames.line[frame]);
    }
    const uint64_t further = end - first > STACK_FRAMES ? end - first - STACK_FRAMES : 0;
    if (further != 0) vr_text_printf(text, "       and %s frame%s further out\n", vr_count(further).text, further == 1 ? "" : "s");
    vr_text_colour(text, style, VR_PLAIN);
}
