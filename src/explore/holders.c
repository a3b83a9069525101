#include "explore/hunt.h"

#include "model/recording.h"

static enum vram_status find_recording(const struct vr_ask *ask, const char *key, const char *fallback,
                                       struct vr_seen_recording **recording) {
    int64_t first = 0, index = 0;
    VR_TRY(vr_question_whole(ask->question, fallback, 0, (int64_t)ask->explorer->count - 1, 0, &first));
    VR_TRY(vr_question_whole(ask->question, key, 0, (int64_t)ask->explorer->count - 1, first, &index));
    if (ask->explorer->count == 0) return vr_fail(ask->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "no recording is open");
    *recording = &ask->explorer->recordings[index];
    return VRAM_OK;
}

// The device of an ordinal; without one the device of `like`'s number, else the one with the most events.
static enum vram_status find_device(const struct vr_ask *ask, const char *key, struct vr_seen_recording *recording,
                                    const struct vr_seen_device *like, struct vr_seen_device **device) {
    int64_t ordinal = -1;
    size_t best = 0;
    VR_TRY(vr_question_whole(ask->question, key, 0, UINT32_MAX, -1, &ordinal));
    const struct vr_view *views = recording->views.view;
    for (size_t d = 0; d < recording->views.count; d++) {
        if (ordinal < 0 && like != NULL && views[d].device == like->view->device && views[d].history->count != 0) ordinal = views[d].device;
        if (views[d].history->count > views[best].history->count) best = d;
    }
    for (size_t d = 0; d < recording->views.count && ordinal >= 0; d++) {
        if (views[d].device == ordinal) {
            *device = &recording->devices[d];
            return VRAM_OK;
        }
    }
    if (ordinal >= 0 || recording->views.count == 0)
        return vr_fail(ask->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no such device");
    *device = &recording->devices[best];
    return VRAM_OK;
}

// "step:N": the moment of the largest total within the Nth step, from 1.
static enum vram_status find_step(const struct vr_ask *ask, const char *number, enum vr_notion notion, struct vr_holders *chosen) {
    const struct vr_steps *steps = NULL;
    double share = 0;
    int64_t bytes = 0;
    char *end = NULL;
    VR_TRY(vr_asked_steps(ask, chosen->device, SIZE_MAX, &share, &steps));
    const unsigned long long step = strtoull(number, &end, 10);
    if (end == number || *end != '\0' || step == 0 || step > steps->count)
        return vr_fail(ask->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "there is no step '%.20s': '%.80s' has %zu", number,
                       chosen->recording->name, steps->count);
    return vr_step_peak(chosen->device, notion, steps, (size_t)step - 1, &chosen->event, &bytes);
}

static enum vram_status find_event(const struct vr_ask *ask, const char *key, enum vr_notion notion, struct vr_holders *chosen) {
    const char *text = vr_question_text(ask->question, key);
    const int64_t last = (int64_t)chosen->device->view->history->count - 1;
    chosen->event = chosen->lifetimes->peak_event;
    if (text == NULL || strcmp(text, "peak") == 0) return VRAM_OK;
    chosen->event = last;
    if (strcmp(text, "end") == 0) return VRAM_OK;
    if (strncmp(text, "step:", 5) == 0) return find_step(ask, text + 5, notion, chosen);
    return vr_question_whole(ask->question, key, -1, last, last, &chosen->event);
}

static enum vram_status list_made(const struct vr_ask *ask, struct vr_holders *chosen) {
    struct vr_window window;
    VR_TRY(vr_ask_window(ask, chosen->device, &window));
    const size_t first = vr_first_born(chosen->lifetimes, window.first), end = vr_first_born(chosen->lifetimes, window.end);
    chosen->rows = malloc((end - first + 1) * sizeof *chosen->rows);
    if (chosen->rows == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t row = first; row < end; row++) chosen->rows[chosen->count++] = (uint32_t)row;
    return VRAM_OK;
}

enum vram_status vr_ask_holders(const struct vr_ask *ask, struct vr_holders *chosen) {
    struct vr_holders made = {.event = 0};
    enum vr_notion notion = VR_ALLOCATED;
    int64_t in_window = 0;
    VR_TRY(vr_ask_device(ask, &made.recording, &made.device));
    VR_TRY(vr_ask_notion(ask, &notion));
    VR_TRY(vr_question_whole(ask->question, "made", 0, 1, 0, &in_window));
    VR_TRY(vr_seen_lifetimes(made.device, notion, &made.lifetimes));
    VR_TRY(find_event(ask, "event", notion, &made));
    made.made = in_window == 1;
    VR_TRY(made.made ? list_made(ask, &made) : vr_seen_live(made.device, notion, made.event, &made.rows, &made.count));
    *chosen = made;
    return VRAM_OK;
}

enum vram_status vr_ask_other_holders(const struct vr_ask *ask, struct vr_holders *chosen) {
    struct vr_holders made = {.event = 0};
    struct vr_seen_recording *first = NULL;
    struct vr_seen_device *like = NULL;
    enum vr_notion notion = VR_ALLOCATED;
    VR_TRY(vr_ask_device(ask, &first, &like));
    VR_TRY(find_recording(ask, "rec2", "rec", &made.recording));
    VR_TRY(find_device(ask, "device2", made.recording, like, &made.device));
    VR_TRY(vr_ask_notion(ask, &notion));
    VR_TRY(vr_seen_lifetimes(made.device, notion, &made.lifetimes));
    VR_TRY(find_event(ask, "event2", notion, &made));
    VR_TRY(vr_seen_live(made.device, notion, made.event, &made.rows, &made.count));
    *chosen = made;
    return VRAM_OK;
}

void vr_holders_release(struct vr_holders *chosen) {
    free(chosen->rows);
    chosen->rows = NULL;
}

enum vram_status vr_ask_grouping(const struct vr_ask *ask, const struct vr_holders *chosen, struct vr_grouping *grouping) {
    size_t by = VR_GROUP_SITE;
    const struct vr_segment_lives *segments = NULL;
    VR_TRY(vr_question_word(ask->question, "by", vr_grouping_words, VR_GROUP_SITE, &by));
    if (by == VR_GROUP_POOL || by == VR_GROUP_STREAM) VR_TRY(vr_seen_segments(chosen->device, &segments));
    return vr_grouping_init(grouping, (enum vr_group_by)by, chosen->device->view, chosen->lifetimes, &chosen->recording->sites, segments,
                            vr_question_text(ask->question, "regex"), ask->error);
}

void vr_put_holders(const struct vr_ask *ask, const struct vr_holders *chosen) {
    struct vr_json *json = &ask->answer->json;
    uint64_t bytes = 0;
    for (size_t i = 0; i < chosen->count; i++) bytes += chosen->lifetimes->size_bytes[chosen->rows[i]];
    vr_json_i64(json, "event", chosen->event);
    vr_json_i64(json, "peak_event", chosen->lifetimes->peak_event);
    vr_json_u64(json, "bytes", bytes);
    vr_json_u64(json, "allocations", chosen->count);
}
