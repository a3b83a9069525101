// Adds recordings, and passes each query to its function.
#include "explore/explored/state_at_event.h"
#include "explore/query/selection.h"
#include "explore/query/step_search.h"
#include "explore/tables/lanes.h"
#include "model/recording.h"
#include "replay/cure.h"

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

void vr_explored_release(struct vr_explored_device *device) {
    for (size_t n = 0; n < VR_COUNT_OF(device->lifetimes); n++) {
        if (device->has_lifetimes[n]) vr_lifetimes_release(&device->lifetimes[n]);
        if (device->has_roles[n]) vr_roles_release(&device->roles[n]);
        if (device->has_rows[n]) vr_event_rows_release(&device->rows[n]);
        vr_live_rows_destroy(device->live[n]);
    }
    vr_address_ids_release(&device->addresses);
    for (size_t k = 0; k < VR_COUNT_OF(device->curve); k++) vr_curve_destroy(device->curve[k]);
    vr_explored_release_shapes(device);
    vr_moments_destroy(device->moments);
    free(device->versions);
    vr_event_selections_destroy(device->event_selections);
    vr_step_searches_destroy(device->step_searches);
    vr_cure_end(device->cure);
    vr_paged_search_end(device->paged);
    free(device->own_time_us);
}

static void release_explored(struct vr_explored_recording *recording) {
    for (size_t d = 0; d < recording->views.count && recording->devices != NULL; d++) vr_explored_release(&recording->devices[d]);
    free(recording->devices);
    vr_sites_release(&recording->sites);
    vr_views_release(&recording->views);
    free(recording->name);
}

void vram_explorer_destroy(struct vram_explorer *explorer) {
    if (explorer == NULL) return;
    for (size_t i = 0; i < explorer->count; i++) {
        release_explored(&explorer->recordings[i]);
        vram_recording_destroy(explorer->recordings[i].recording);
    }
    free(explorer->recordings);
    free(explorer->skip);
    free(explorer);
}

static enum vram_status explore_recording(struct vr_explored_recording *explored, struct vram_recording *recording, const char *name,
                                          uint64_t bytes, struct vram_error *error) {
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
        return vr_fail(error, VRAM_LIMIT, VRAM_NO_OFFSET, "a view can have at most %d recordings", MOST_RECORDINGS);
    VR_TRY(VR_GROW(explorer, recordings, explorer->count + 1));
    struct vr_explored_recording *explored = &explorer->recordings[explorer->count];
    memset(explored, 0, sizeof *explored);
    const enum vram_status status = explore_recording(explored, recording, name, bytes, error);
    if (status == VRAM_OK) {
        explorer->count++;
        explorer->skip_new = explorer->skip_new || explorer->skip != NULL;
    }
    if (status != VRAM_OK) release_explored(explored);
    return status;
}

static vr_query_function find_query(const char *name) {
    for (size_t i = 0; i < VR_COUNT_OF(queries); i++) {
        if (strcmp(queries[i].name, name) == 0) return queries[i].answer;
    }
    return NULL;
}

// Discards all results, because groups, roles and cures depend on call sites.
static void forget_recording(struct vr_explored_recording *recording) {
    vr_sites_forget(&recording->sites);
    for (size_t d = 0; d < recording->views.count; d++) {
        const struct vr_view *view = recording->devices[d].view;
        vr_explored_release(&recording->devices[d]);
        recording->devices[d] = (struct vr_explored_device){.view = view};
    }
}

// Applies the parameter `skip`, which every query may have: frames that match are not call sites in this answer. INVALID_ARGUMENT for an
// invalid expression.
static enum vram_status use_skip(struct vram_explorer *explorer, const char *expression, struct vram_error *error) {
    const bool same = strcmp(expression, explorer->skip == NULL ? "" : explorer->skip) == 0;
    if (same && !explorer->skip_new) return VRAM_OK;
    char *kept = malloc(strlen(expression) + 1);
    if (kept == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(kept, expression, strlen(expression) + 1);
    for (size_t i = 0; i < explorer->count; i++) {
        const enum vram_status status = vr_sites_skip_for_now(explorer->recordings[i].recording, expression, error);
        if (status != VRAM_OK) {
            explorer->skip_new = explorer->skip_new || i != 0;
            free(kept);
            return status;
        }
        forget_recording(&explorer->recordings[i]);
    }
    free(explorer->skip);
    explorer->skip = kept;
    explorer->skip_new = false;
    return VRAM_OK;
}

static enum vram_status answer_query(struct vram_explorer *explorer, const struct vr_parameters *parameters, vram_write write, void *user,
                                     struct vram_error *error) {
    const vr_query_function answerer = find_query(parameters->name);
    if (answerer == NULL) return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "unknown query '%.40s'", parameters->name);
    const char *skip = vr_parameter_text(parameters, "skip");
    VR_TRY(use_skip(explorer, skip == NULL ? "" : skip, error));
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
        status = answer_query(explorer, &parameters, write, user, detail);
        vr_parameters_release(&parameters);
    }
    if (status != VRAM_OK && detail->status == VRAM_OK) return vr_fail(detail, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
    return status;
}
