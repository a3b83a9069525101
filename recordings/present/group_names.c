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

void vr_profile_device(const struct vr_profile *subject, struct vr_text *text) {
    static const char *const reasons[] = {
        [VR_CHOICE_OOM] = " (out of memory)", [VR_CHOICE_PEAK] = " (highest peak)", [VR_CHOICE_EVENTS] = " (most events)"};
    const char *why = subject->why < VR_COUNT_OF(reasons) ? reasons[subject->why] : NULL;
    vr_text_printf(text, "%s%s", vr_view_name(subject->view).text, why == NULL ? "" : why);
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

static void frame_line(const struct vr_model *model, uint32_t frame, const char *before, struct vr_text *text) {
    const uint32_t name = model->frames.name[frame], file = model->frames.filename[frame];
    const size_t name_length = vr_model_string_length(model, name);
    vr_text_puts(text, before);
    if (vr_text_unnamed(text, vr_model_string(model, file), vr_model_string_length(model, file), vr_model_string(model, name),
                        name_length)) {
        vr_text_puts(text, "\n");
        return;
    }
    vr_text_printable(text, vr_model_string(model, name), name_length);
    vr_text_puts(text, "  ");
    vr_text_printable(text, vr_model_string(model, file), vr_model_string_length(model, file));
    vr_text_printf(text, ":%lld\n", (long long)model->frames.line[frame]);
}

// Whether a kind before this one is told by the same word and is there, too.
static bool is_repeated(const bool *has, size_t kind) {
    for (size_t before = 0; before < kind; before++) {
        if (has[before] && strcmp(vr_frame_kind_word((enum vr_frame_kind)before), vr_frame_kind_word((enum vr_frame_kind)kind)) == 0)
            return true;
    }
    return false;
}

// One line for the frames from `from` to `to`, which are all folded: how many, and what they are, in the order of the table.
static void fold_line(struct vr_sites *sites, uint64_t from, uint64_t to, struct vr_text *text) {
    bool has[VR_FRAME_KIND_COUNT] = {false};
    const char *between = "";
    for (uint64_t i = from; i < to; i++) has[vr_sites_kind(sites, sites->model->stacks.frame[i])] = true;
    vr_text_printf(text, "       (%llu frames: ", (unsigned long long)(to - from));
    for (size_t kind = 0; kind < VR_FRAME_KIND_COUNT; kind++) {
        if (!has[kind] || is_repeated(has, kind)) continue;
        vr_text_printf(text, "%s%s", between, vr_frame_kind_word((enum vr_frame_kind)kind));
        between = ", ";
    }
    vr_text_puts(text, ")\n");
}

void vr_stack_print(struct vr_sites *sites, uint32_t stack, const struct vram_style *style, struct vr_text *text) {
    enum { STACK_LINES = 12 };
    const struct vr_model *model = sites->model;
    const uint64_t first = model->stacks.offset[stack], end = model->stacks.offset[stack + 1];
    if (first == end) return;
    frame_line(model, vr_sites_frame(sites, stack), style->unicode ? "     \xe2\x86\x92 " : "    -> ", text);
    vr_text_colour(text, style, VR_DIM);
    uint64_t at = first;
    for (unsigned lines = 0; at < end && lines < STACK_LINES; lines++) {
        uint64_t next = at;
        while (next < end && vr_sites_folds(sites, stack, model->stacks.frame[next])) next++;
        if (next - at > 1)
            fold_line(sites, at, next, text);
        else
            frame_line(model, model->stacks.frame[at], "       ", text);
        at = next - at > 1 ? next : at + 1;
    }
    if (at < end) vr_text_printf(text, "       and %s frame%s further out\n", vr_count(end - at).text, end - at == 1 ? "" : "s");
    vr_text_colour(text, style, VR_PLAIN);
}
