// Recordings come in, queries are handed to the function of their name.
#include "explore/explored/explored.h"

#include "model/recording.h"

enum { MOST_RECORDINGS = 4096 };

static const struct {
    const char *name;
    vr_query_function answer;
} queries[] = {
#define QUERY(name) {#name, vr_query_##name},
#include "explore/queries.def"
#undef QUERY
};

enum vram_status vram_explorer_create(struct vram_explorer **explorer) {
    VR_REQUIRE(explorer);
    struct vram_explorer *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    *explorer = made;
    return VRAM_OK;
}

static void release(struct vr_explored_recording *recording) {
    for (size_t d = 0; d < recording->views.count && recording->devices != NULL; d++) vr_explored_release(&recording->devices[d]);
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

static enum vram_status look_at(struct vr_explored_recording *explored, struct vram_recording *recording, const char *name, uint64_t bytes,
                                struct vram_error *error) {
    const struct vr_model *model = vr_recording_model(recording);
    explored->bytes = bytes;
    explored->recording = recording;
    VR_TRY(vr_views_build(model, &explored->views, error));
    VR_TRY(vr_sites_init(&explored->sites, model));
    explored->name = malloc(strlen(name) + 1);
    explored->devices = calloc(explored->views.count + 1, sizeof *explored->devices);
    if (explored->name == NULL || explored->devices == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(explored->name, name, strlen(name) + 1);
    for (size_t d = 0; d < explored->views.count; d++) explored->devices[d].view = &explored->views.view[d];
    return VRAM_OK;
}

enum vram_status vram_explorer_add(struct vram_explorer *explorer, struct vram_recording *recording, const char *name, uint64_t bytes,
                                   struct vram_error *error) {
    if (explorer == NULL || recording == NULL || name == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "explorer, recording and name must not be NULL");
    if (explorer->count == MOST_RECORDINGS)
        return vr_fail(error, VRAM_LIMIT, VRAM_NO_OFFSET, "more than %d recordings in one view", MOST_RECORDINGS);
    VR_TRY(vr_grow((void **)&explorer->recordings, &explorer->capacity, explorer->count + 1, sizeof *explorer->recordings));
    struct vr_explored_recording *explored = &explorer->recordings[explorer->count];
    memset(explored, 0, sizeof *explored);
    const enum vram_status status = look_at(explored, recording, name, bytes, error);
    if (status == VRAM_OK) explorer->count++;
    if (status != VRAM_OK) release(explored);
    return status;
}

static vr_query_function find(const char *name) {
    for (size_t i = 0; i < VR_COUNT_OF(queries); i++) {
        if (strcmp(queries[i].name, name) == 0) return queries[i].answer;
    }
    return NULL;
}

static enum vram_status query(struct vram_explorer *explorer, const struct vr_parameters *parameters, vram_write write, void *user,
                              struct vram_error *error) {
    const vr_query_function answerer = find(parameters->name);
    if (answerer == NULL) return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "there is no query '%.40s'", parameters->name);
    struct vr_answer answer;
    vr_answer_init(&answer);
    enum vram_status status = answerer(&(struct vr_query){explorer, parameters, &answer, error});
    if (status == VRAM_OK) status = vr_answer_send(&answer, write, user);
    vr_answer_release(&answer);
    return status;
}

enum vram_status vram_explorer_ask(struct vram_explorer *explorer, const char *text, vram_write write, void *user,
                                   struct vram_error *error) {
    if (explorer == NULL || text == NULL || write == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "explorer, query and write must not be NULL");
    struct vram_error unfilled = {.status = VRAM_OK}, *detail = error == NULL ? &unfilled : error;
    detail->status = VRAM_OK;
    struct vr_parameters parameters;
    enum vram_status status = vr_parameters_parse(&parameters, text, detail);
    if (status == VRAM_OK) {
        status = query(explorer, &parameters, write, user, detail);
        vr_parameters_release(&parameters);
    }
    if (status != VRAM_OK && detail->status == VRAM_OK) return vr_fail(detail, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
    return status;
}

enum vram_status vr_select_recording(const struct vr_query *query, struct vr_explored_recording **recording) {
    int64_t index;
    VR_TRY(vr_parameter_whole(query->parameters, "rec", 0, (int64_t)query->explorer->count - 1, 0, &index));
    if (query->explorer->count == 0) return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "no recording is open");
    *recording = &query->explorer->recordings[index];
    return VRAM_OK;
}

static size_t busiest(const struct vr_explored_recording *recording) {
    size_t best = 0;
    for (size_t d = 1; d < recording->views.count; d++) {
        if (recording->views.view[d].history->count > recording->views.view[best].history->count) best = d;
    }
    return best;
}

enum vram_status vr_select_device(const struct vr_query *query, struct vr_explored_recording **recording,
                                  struct vr_explored_device **device) {
    struct vr_explored_recording *explored = NULL;
    VR_TRY(vr_select_recording(query, &explored));
    if (explored->views.count == 0)
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no device: neither events nor segments");
    int64_t ordinal;
    VR_TRY(vr_parameter_whole(query->parameters, "device", 0, UINT32_MAX, -1, &ordinal));
    size_t found = ordinal < 0 ? busiest(explored) : 0;
    while (ordinal >= 0 && found < explored->views.count && explored->views.view[found].device != ordinal) found++;
    if (found == explored->views.count)
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no device %lld", (long long)ordinal);
    *recording = explored;
    *device = &explored->devices[found];
    return VRAM_OK;
}

enum vram_status vr_select_lifetime_kind(const struct vr_query *query, enum vr_lifetime_kind *kind) {
    static const char *const words[] = {"allocated", "active", NULL};
    size_t index = VR_LIFETIME_ALLOCATED;
    VR_TRY(vr_parameter_word(query->parameters, "notion", words, VR_LIFETIME_ALLOCATED, &index));
    *kind = (enum vr_lifetime_kind)index;
    return VRAM_OK;
}
