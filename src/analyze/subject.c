#include "analyze/subject.h"

#include "analyze/page.h"
#include "base/json.h"
#include "model/recording.h"

// Whether the view is the better guess of what is meant by no number: the device of the most events, host memory where there is no device.
static bool is_likelier(const struct vr_view *view, const struct vr_view *than) {
    const bool is_host = vr_model_is_host(view->model, view->device);
    return than == NULL || (!is_host && view->history->count > than->history->count);
}

static enum vram_status choose_view(struct vr_subject *subject, int64_t device, struct vram_error *error) {
    const struct vr_view *views = subject->views.view;
    for (size_t d = 0; d < subject->views.count; d++) {
        if (device >= 0 ? views[d].device == device : is_likelier(&views[d], subject->view)) subject->view = &views[d];
    }
    if (subject->view != NULL) return VRAM_OK;
    if (device < 0) return vr_fail(error, VRAM_BAD_INPUT, VRAM_NO_OFFSET, "the recording has neither events nor segments");
    return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no device %lld", (long long)device);
}

static enum vram_status choose_moment(struct vr_subject *subject, const struct vram_profile_options *options, struct vram_error *error) {
    const int64_t last = (int64_t)subject->view->history->count - 1;
    subject->event = options->moment == VRAM_PROFILE_PEAK ? subject->lifetimes.peak_event : last;
    if (options->moment == VRAM_PROFILE_EVENT) subject->event = options->event;
    if (subject->event < -1 || subject->event > last)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no event %lld; the last one is %lld",
                       (long long)subject->event, (long long)last);
    VR_TRY(vr_rows_live_at(&subject->lifetimes, subject->event, &subject->rows, &subject->count));
    for (size_t i = 0; i < subject->count; i++) subject->bytes += subject->lifetimes.size_bytes[subject->rows[i]];
    return VRAM_OK;
}

static enum vram_status open_subject(const struct vram_profile_options *options, struct vr_subject *subject, struct vram_error *error) {
    VR_TRY(vr_views_build(subject->model, &subject->views, error));
    VR_TRY(vr_sites_init(&subject->sites, subject->model));
    VR_TRY(choose_view(subject, options->device, error));
    VR_TRY(vr_lifetimes_build(subject->view, options->active ? VR_LIFETIME_ACTIVE : VR_LIFETIME_ALLOCATED, NULL, 0, &subject->lifetimes));
    subject->has_lifetimes = true;
    return choose_moment(subject, options, error);
}

enum vram_status vr_subject_open(const struct vram_recording *recording, const struct vram_profile_options *options,
                                 struct vr_subject *subject, struct vram_error *error) {
    struct vram_error unfilled = {.status = VRAM_OK}, *detail = error == NULL ? &unfilled : error;
    detail->status = VRAM_OK;
    if (recording == NULL || options == NULL)
        return vr_fail(detail, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "recording and options must not be NULL");
    struct vr_subject made = {.model = vr_recording_model(recording)};
    const enum vram_status status = open_subject(options, &made, detail);
    if (status == VRAM_OK) {
        *subject = made;
        return VRAM_OK;
    }
    vr_subject_close(&made);
    return detail->status == VRAM_OK ? vr_fail(detail, status, VRAM_NO_OFFSET, "%s", vram_status_text(status)) : status;
}

void vr_subject_close(struct vr_subject *subject) {
    if (subject->has_lifetimes) vr_lifetimes_release(&subject->lifetimes);
    if (subject->has_segments) vr_segment_lives_release(&subject->segments);
    if (subject->sites.model != NULL) vr_sites_release(&subject->sites);
    vr_views_release(&subject->views);
    free(subject->rows);
    subject->rows = NULL;
}

static enum vram_status find_by(const char *word, enum vr_group_by *by, struct vram_error *error) {
    *by = VR_GROUP_SITE;
    if (word == NULL) return VRAM_OK;
    for (size_t i = 0; i < VR_GROUP_COUNT; i++) {
        if (strcmp(vr_grouping_words[i], word) != 0) continue;
        *by = (enum vr_group_by)i;
        return VRAM_OK;
    }
    return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "nothing is grouped by '%.40s'", word);
}

enum vram_status vr_subject_grouping(struct vr_subject *subject, const struct vram_profile_options *options, struct vr_grouping *grouping,
                                     struct vram_error *error) {
    enum vr_group_by by;
    VR_TRY(find_by(options->by, &by, error));
    const bool wants_segments = by == VR_GROUP_POOL || by == VR_GROUP_STREAM;
    if (wants_segments && !subject->has_segments) {
        VR_TRY(vr_segment_lives_build(subject->view, &subject->segments));
        subject->has_segments = true;
    }
    return vr_grouping_init(grouping, by, subject->view, &subject->lifetimes, &subject->sites, wants_segments ? &subject->segments : NULL,
                            options->expression, error);
}

void vr_subject_moment(const struct vr_subject *subject, const struct vram_profile_options *options, struct vr_text *text) {
    if (options->moment == VRAM_PROFILE_PEAK) vr_text_puts(text, "the peak, ");
    if (options->moment == VRAM_PROFILE_END) vr_text_puts(text, "the end, ");
    if (subject->event < 0)
        vr_text_puts(text, "before the first event");
    else
        vr_text_printf(text, "after event %s", vr_count((uint64_t)subject->event).text);
}

void vr_title_print(enum vr_group_by by, const char *name, size_t length, struct vr_text *text) {
    if (by == VR_GROUP_SITE || by == VR_GROUP_STACK) {
        vr_page_site(text, name, length);
    } else if (by == VR_GROUP_FUNCTION) {
        vr_page_function(text, name, length);
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

enum vram_status vr_text_hand_over(const struct vr_text *text, vram_write write, void *user) {
    VR_TRY(vr_text_status(text));
    return text->length == 0 || write(user, text->bytes, text->length) ? VRAM_OK : VRAM_IO;
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
