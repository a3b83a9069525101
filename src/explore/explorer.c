// Recordings come in, questions are handed to the function of their name.
#include "explore/explorer.h"

#include "model/recording.h"

enum { MOST_RECORDINGS = 4096 };

static const struct {
    const char *name;
    vr_asker answer;
} questions[] = {
#define QUESTION(name) {#name, vr_ask_##name},
#include "explore/questions.def"
#undef QUESTION
};

enum vram_status vram_explorer_create(struct vram_explorer **explorer) {
    VR_REQUIRE(explorer);
    struct vram_explorer *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    *explorer = made;
    return VRAM_OK;
}

static void release(struct vr_seen_recording *recording) {
    for (size_t d = 0; d < recording->views.count && recording->devices != NULL; d++) vr_seen_release(&recording->devices[d]);
    free(recording->devices);
    vr_sites_release(&recording->sites);
    vr_views_release(&recording->views);
    free(recording->name);
}

void vram_explorer_destroy(struct vram_explorer *explorer) {
    if (explorer == NULL) return;
    for (size_t i = 0; i < explorer->count; i++) {
        release(&explorer->recordings[i]);
        vram_recording_destroy(explorer->recordings[i].recording);
    }
    free(explorer->recordings);
    free(explorer);
}

static enum vram_status look_at(struct vr_seen_recording *seen, struct vram_recording *recording, const char *name, uint64_t bytes,
                                struct vram_error *error) {
    const struct vr_model *model = vr_recording_model(recording);
    seen->bytes = bytes;
    seen->recording = recording;
    VR_TRY(vr_views_build(model, &seen->views, error));
    VR_TRY(vr_sites_init(&seen->sites, model));
    seen->name = malloc(strlen(name) + 1);
    seen->devices = calloc(seen->views.count + 1, sizeof *seen->devices);
    if (seen->name == NULL || seen->devices == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(seen->name, name, strlen(name) + 1);
    for (size_t d = 0; d < seen->views.count; d++) seen->devices[d].view = &seen->views.view[d];
    return VRAM_OK;
}

enum vram_status vram_explorer_add(struct vram_explorer *explorer, struct vram_recording *recording, const char *name, uint64_t bytes,
                                   struct vram_error *error) {
    if (explorer == NULL || recording == NULL || name == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "explorer, recording and name must not be NULL");
    if (explorer->count == MOST_RECORDINGS)
        return vr_fail(error, VRAM_LIMIT, VRAM_NO_OFFSET, "more than %d recordings in one view", MOST_RECORDINGS);
    VR_TRY(vr_grow((void **)&explorer->recordings, &explorer->capacity, explorer->count + 1, sizeof *explorer->recordings));
    struct vr_seen_recording *seen = &explorer->recordings[explorer->count];
    memset(seen, 0, sizeof *seen);
    const enum vram_status status = look_at(seen, recording, name, bytes, error);
    if (status == VRAM_OK) explorer->count++;
    if (status != VRAM_OK) release(seen);
    return status;
}

static vr_asker find(const char *name) {
    for (size_t i = 0; i < VR_COUNT_OF(questions); i++) {
        if (strcmp(questions[i].name, name) == 0) return questions[i].answer;
    }
    return NULL;
}

static enum vram_status ask(struct vram_explorer *explorer, const struct vr_question *question, vram_write write, void *user,
                            struct vram_error *error) {
    const vr_asker answerer = find(question->name);
    if (answerer == NULL) return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "there is no question '%.40s'", question->name);
    struct vr_answer answer;
    vr_answer_init(&answer);
    enum vram_status status = answerer(&(struct vr_ask){explorer, question, &answer, error});
    if (status == VRAM_OK) status = vr_answer_send(&answer, write, user);
    vr_answer_release(&answer);
    return status;
}

enum vram_status vram_explorer_ask(struct vram_explorer *explorer, const char *text, vram_write write, void *user,
                                   struct vram_error *error) {
    if (explorer == NULL || text == NULL || write == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "explorer, question and write must not be NULL");
    struct vram_error unfilled = {.status = VRAM_OK}, *detail = error == NULL ? &unfilled : error;
    detail->status = VRAM_OK;
    struct vr_question question;
    enum vram_status status = vr_question_parse(&question, text, detail);
    if (status == VRAM_OK) {
        status = ask(explorer, &question, write, user, detail);
        vr_question_release(&question);
    }
    if (status != VRAM_OK && detail->status == VRAM_OK) return vr_fail(detail, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
    return status;
}

enum vram_status vr_ask_recording(const struct vr_ask *ask, struct vr_seen_recording **recording) {
    int64_t index;
    VR_TRY(vr_question_whole(ask->question, "rec", 0, (int64_t)ask->explorer->count - 1, 0, &index));
    if (ask->explorer->count == 0) return vr_fail(ask->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "no recording is open");
    *recording = &ask->explorer->recordings[index];
    return VRAM_OK;
}

static size_t busiest(const struct vr_seen_recording *recording) {
    size_t best = 0;
    for (size_t d = 1; d < recording->views.count; d++) {
        if (recording->views.view[d].history->count > recording->views.view[best].history->count) best = d;
    }
    return best;
}

enum vram_status vr_ask_device(const struct vr_ask *ask, struct vr_seen_recording **recording, struct vr_seen_device **device) {
    struct vr_seen_recording *seen = NULL;
    VR_TRY(vr_ask_recording(ask, &seen));
    if (seen->views.count == 0)
        return vr_fail(ask->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no device: neither events nor segments");
    int64_t ordinal;
    VR_TRY(vr_question_whole(ask->question, "device", 0, UINT32_MAX, -1, &ordinal));
    size_t found = ordinal < 0 ? busiest(seen) : 0;
    while (ordinal >= 0 && found < seen->views.count && seen->views.view[found].device != ordinal) found++;
    if (found == seen->views.count)
        return vr_fail(ask->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no device %lld", (long long)ordinal);
    *recording = seen;
    *device = &seen->devices[found];
    return VRAM_OK;
}

enum vram_status vr_ask_notion(const struct vr_ask *ask, enum vr_notion *notion) {
    static const char *const words[] = {"allocated", "active", NULL};
    size_t index = VR_ALLOCATED;
    VR_TRY(vr_question_word(ask->question, "notion", words, VR_ALLOCATED, &index));
    *notion = (enum vr_notion)index;
    return VRAM_OK;
}
