#include "analyze/profile.h"

#include "model/recording.h"

static enum vram_status choose_view(struct vr_profile *subject, int64_t device, struct vram_error *error) {
    const struct vr_views *views = &subject->views;
    size_t found = 0;
    if (device < 0) {
        if (views->count == 0) return vr_fail(error, VRAM_BAD_INPUT, VRAM_NO_OFFSET, "the recording has neither events nor segments");
        VR_TRY(vr_views_in_trouble(views, &found, &subject->why));
    }
    while (device >= 0 && found < views->count && views->view[found].device != device) found++;
    if (found == views->count)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no device %lld", (long long)device);
    subject->view = &views->view[found];
    return VRAM_OK;
}

static enum vram_status choose_moment(struct vr_profile *subject, const struct vram_profile_options *options, struct vram_error *error) {
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

static enum vram_status open_subject(const struct vram_profile_options *options, struct vr_profile *subject, struct vram_error *error) {
    VR_TRY(vr_views_build(subject->model, &subject->views, error));
    VR_TRY(vr_sites_init(&subject->sites, subject->model));
    VR_TRY(choose_view(subject, options->device, error));
    VR_TRY(vr_lifetimes_build(subject->view, options->active ? VR_LIFETIME_ACTIVE : VR_LIFETIME_ALLOCATED, NULL, 0, &subject->lifetimes));
    subject->has_lifetimes = true;
    return choose_moment(subject, options, error);
}

enum vram_status vr_profile_open(const struct vram_recording *recording, const struct vram_profile_options *options,
                                 struct vr_profile *subject, struct vram_error *error) {
    struct vram_error unfilled = {.status = VRAM_OK}, *detail = error == NULL ? &unfilled : error;
    detail->status = VRAM_OK;
    if (recording == NULL || options == NULL)
        return vr_fail(detail, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "recording and options must not be NULL");
    struct vr_profile made = {.model = vr_recording_model(recording)};
    const enum vram_status status = open_subject(options, &made, detail);
    if (status == VRAM_OK) {
        *subject = made;
        return VRAM_OK;
    }
    vr_profile_close(&made);
    return detail->status == VRAM_OK ? vr_fail(detail, status, VRAM_NO_OFFSET, "%s", vram_status_text(status)) : status;
}

void vr_profile_close(struct vr_profile *subject) {
    if (subject->has_lifetimes) vr_lifetimes_release(&subject->lifetimes);
    if (subject->has_segments) vr_segment_lives_release(&subject->segments);
    if (subject->sites.model != NULL) vr_sites_release(&subject->sites);
    vr_role_rules_release(&subject->rules);
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

enum vram_status vr_profile_grouping(struct vr_profile *subject, const struct vram_profile_options *options, struct vr_grouping *grouping,
                                     struct vram_error *error) {
    enum vr_group_by by;
    VR_TRY(find_by(options->by, &by, error));
    const bool wants_segments = by == VR_GROUP_POOL || by == VR_GROUP_STREAM;
    if (wants_segments && !subject->has_segments) {
        VR_TRY(vr_segment_lives_build(subject->view, &subject->segments));
        subject->has_segments = true;
    }
    vr_role_rules_release(&subject->rules);
    VR_TRY(vr_role_rules_parse(options->roles, &subject->rules, error));
    const struct vr_grouped grouped = {.view = subject->view,
                                       .lifetimes = &subject->lifetimes,
                                       .sites = &subject->sites,
                                       .segments = wants_segments ? &subject->segments : NULL,
                                       .rules = &subject->rules};
    return vr_grouping_init(grouping, by, &grouped, options->expression, error);
}
