#include "present/leak_words.h"

#include "present/text_parts.h"

static void put_row_name(const struct vr_model *model, uint32_t name, struct vr_text *text) {
    const char *string = vr_model_string(model, name);
    vr_text_puts(text, " (");
    vr_text_printable(text, string, strlen(string));
    vr_text_puts(text, ")");
}

void vr_leak_steps_text(const struct vr_model *model, const struct vr_steps *steps, struct vr_text *text) {
    static const char *const found[VR_STEP_SOURCE_COUNT] = {[VR_STEPS_MARKED] = "marked by the program",
                                                            [VR_STEPS_EVERY] = "as given",
                                                            [VR_STEPS_REPEATED] = "guessed from how allocations repeat"};
    if (steps->count == 0) {
        vr_text_puts(text, "no steps");
    } else if (steps->pass_frame != 0 || steps->unsure) {
        vr_text_printf(text, "allocations repeat %s times", vr_count(steps->count).text);
    } else {
        vr_text_printf(text, "%s step%s, %s", vr_count(steps->count).text, steps->count == 1 ? "" : "s", found[steps->source]);
        if (steps->name != 0) put_row_name(model, steps->name, text);
    }
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/'), *backslash = strrchr(path, '\\');
    if (slash == NULL || (backslash != NULL && backslash > slash)) slash = backslash;
    return slash == NULL ? path : slash + 1;
}

static void put_pass(const struct vr_model *model, const struct vr_steps *steps, struct vr_text *text) {
    const uint32_t frame = steps->pass_frame - 1;
    const char *file = base_name(vr_model_string(model, model->frames.filename[frame]));
    const char *name = vr_model_string(model, model->frames.name[frame]);
    const int64_t line = model->frames.line[frame];
    vr_text_printf(text, "one step of %s layers: all of them in one ", vr_count(steps->count).text);
    if (line > 0 && strcmp(name, "forward") == 0) {
        vr_text_puts(text, "forward pass (");
        vr_text_printable(text, file, strlen(file));
        vr_text_printf(text, ":%lld)", (long long)line);
    } else {
        vr_text_puts(text, strcmp(name, "__call__") == 0 ? "forward pass" : "backward pass");
    }
    vr_text_puts(text, "; record several steps");
}

static struct vr_formatted format_rate(double bytes) { return vr_bytes(bytes <= 0 ? 0 : (uint64_t)(bytes + 0.5)); }

void vr_leak_answer_text(const struct vr_model *model, const struct vr_steps *steps, const struct vr_leak_finding *finding,
                         struct vr_text *text) {
    switch (finding->answer) {
    case VR_LEAKS_NO_STEPS:
        vr_text_puts(text, steps->asked ? "cannot tell: fewer than three marks have the name that was asked for"
                                        : "cannot tell: nothing marks a step, and allocations do not repeat");
        break;
    case VR_LEAKS_ONE_PASS: put_pass(model, steps, text); break;
    case VR_LEAKS_UNSURE:
        vr_text_puts(text, "cannot tell: what repeats may be steps or the layers of one step; record several steps, or mark them");
        break;
    case VR_LEAKS_FEW_STEPS:
        vr_text_printf(text, "cannot tell: %zu step%s too few, at least %d are needed", steps->count, steps->count == 1 ? " is" : "s are",
                       VR_LEAST_STEPS);
        break;
    case VR_LEAKS_NONE: vr_text_puts(text, "no leak: nothing piles up from step to step"); break;
    case VR_LEAKS_GROWING:
        vr_text_printf(text, "no leak: nothing piles up, but requests grow: %s more in every step",
                       format_rate(finding->bytes_per_step).text);
        break;
    case VR_LEAKS_RELEASED:
        vr_text_printf(text, "no leak: what piled up, %s in every step, was freed after the last one",
                       format_rate(finding->bytes_per_step).text);
        break;
    default:
        vr_text_printf(text, "%zu leak%s: %s more in every step", finding->leaks, finding->leaks == 1 ? "" : "s",
                       format_rate(finding->bytes_per_step).text);
    }
}

void vr_leak_points_grown(const struct vr_grower *grower, struct vr_text *text) {
    vr_text_printf(text, "%zu of %zu", grower->grew_points, grower->course_points);
}

void vr_leak_answer_json(const struct vr_model *model, const struct vr_steps *steps, const struct vr_leak_finding *finding,
                         struct vr_json *json) {
    struct vr_text sentence = {0};
    vr_leak_answer_text(model, steps, finding, &sentence);
    vr_json_string(json, "answer", vr_leak_answer_word(finding->answer));
    vr_json_string(json, "sentence", vr_text_string(&sentence));
    vr_text_release(&sentence);
}
