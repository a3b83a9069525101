// open.c: vram_create() and vram_destroy(): the core's allocator, with the features that VRAM_HISTORY, VRAM_ON_OOM and VRAM_PROMETHEUS
// request.
#include "core/allocator.h"
#include "core/state.h"
#include "entry/history_text.h"
#include "entry/on_oom.h"
#include "live/file.h"
#include "live/prometheus.h"
#include "live/tracer.h"
#include "os/os.h"
#include "verify/verify.h"
#include "vram/snapshot.h"

// Actions that the environment requests: one when memory runs out, and a snapshot when the allocator is destroyed.
struct environment {
    struct vram_allocator *allocator;
    char *on_oom; // the text of VRAM_ON_OOM; watch.pattern points into it
    struct vr_watch watch;
    char *dump; // pattern of the final snapshot; NULL: no snapshot
};

static enum vram_status copy_text(const char *text, char **copy) {
    const size_t size = strlen(text) + 1;
    *copy = malloc(size);
    if (*copy == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(*copy, text, size);
    return VRAM_OK;
}

static enum vram_status check_pattern(const char *variable, const char *pattern, struct vram_error *error) {
    if (vram_expand_path(pattern, NULL, 0, NULL) == VRAM_OK) return VRAM_OK;
    return vr_fail(error, VRAM_BAD_OPTION, VRAM_NO_OFFSET, "%s: invalid file name \"%s\": %% must be followed by p, r, h, t or %%",
                   variable, pattern);
}

static enum vram_status read_on_oom(struct environment *environment, const char *text, struct vram_error *error) {
    if (text == NULL || text[0] == '\0' || strcmp(text, "0") == 0 || strcmp(text, "off") == 0) return VRAM_OK;
    VR_TRY(copy_text(text, &environment->on_oom));
    char *colon = strchr(environment->on_oom, ':');
    if (colon != NULL) *colon++ = '\0';
    environment->watch.report = strcmp(environment->on_oom, "report") == 0;
    if (!environment->watch.report && strcmp(environment->on_oom, "dump") != 0) {
        return vr_fail(error, VRAM_BAD_OPTION, 0,
                       "VRAM_ON_OOM: unknown value \"%s\"; expected dump, dump:PATTERN, report or report:PATTERN", text);
    }
    const char *usual = environment->watch.report ? "vram_oom_%h_%p_%t.txt" : "vram_oom_%h_%p_%t.pickle";
    environment->watch.pattern = colon == NULL || *colon == '\0' ? usual : colon;
    VR_TRY(check_pattern("VRAM_ON_OOM", environment->watch.pattern, error));
    environment->watch.allocator = environment->allocator;
    return vram_add_oom_observer(environment->allocator, vr_on_oom, &environment->watch);
}

// --- the history ---------------------------------------------------------------------------------------------------------------------

// Starts the history with the file's pattern expanded.
static enum vram_status start_history(struct vram_allocator *allocator, struct vram_history_options *options, struct vram_error *error) {
    char path[VR_PATH_BYTES];
    if (options->file != NULL) {
        size_t length = 0;
        VR_TRY(check_pattern("VRAM_HISTORY", options->file, error));
        VR_TRY(vram_expand_path(options->file, path, sizeof path, &length));
        if (length >= sizeof path) return vr_fail(error, VRAM_BAD_OPTION, VRAM_NO_OFFSET, "VRAM_HISTORY: the file name is too long");
    }
    const char *pattern = options->file;
    if (pattern != NULL) options->file = path;
    VR_TRY(vram_history_start(allocator, options, error));
    struct vr_tracer *tracer = vr_tracer_of(allocator);
    if (pattern != NULL && tracer != NULL) vr_tracer_set_pattern(tracer, pattern);
    return VRAM_OK;
}

// dump: receives the pattern of the final snapshot; NULL: `dump` is not allowed.
static enum vram_status start_text(struct vram_allocator *allocator, struct vr_history_text *text, char **dump, struct vram_error *error) {
    struct vram_history_options options;
    const char *pattern = NULL;
    bool wanted = false;
    VR_TRY(vr_history_parse(text, &options, &pattern, &wanted, error));
    if (!wanted) return dump == NULL ? vram_history_stop(allocator) : VRAM_OK;
    if (pattern != NULL && dump == NULL)
        return vr_fail(error, VRAM_BAD_OPTION, VRAM_NO_OFFSET,
                       "VRAM_HISTORY: dump is allowed only in the environment variable; call vram_snapshot_save() to write a snapshot now");
    if (pattern != NULL) {
        VR_TRY(check_pattern("VRAM_HISTORY", pattern, error));
        VR_TRY(copy_text(pattern, dump));
    }
    return start_history(allocator, &options, error);
}

enum vram_status vram_history_start_text(struct vram_allocator *allocator, const char *value, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && value);
    struct vr_history_text text = {0};
    if (copy_text(value, &text.storage) != VRAM_OK)
        return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for options");
    const enum vram_status status = start_text(allocator, &text, NULL, error);
    free(text.storage);
    return status;
}

static enum vram_status read_history(struct environment *environment, const char *value, struct vram_error *error) {
    struct vr_history_text text = {0};
    if (value == NULL) return VRAM_OK;
    VR_TRY(copy_text(value, &text.storage));
    const enum vram_status status = start_text(environment->allocator, &text, &environment->dump, error);
    free(text.storage);
    return status;
}

static void release_environment(struct environment *environment) {
    free(environment->on_oom);
    free(environment->dump);
    free(environment);
}

static void end_environment(void *value) {
    struct environment *environment = value;
    // A failure cannot be reported here.
    if (environment->dump != NULL) (void)!vram_snapshot_save(environment->allocator, NULL, environment->dump, NULL);
    (void)!vram_remove_oom_observer(environment->allocator, vr_on_oom, &environment->watch);
    release_environment(environment);
}

// Order 1: runs before the history is released, because the snapshot needs it.
static const struct vr_extension_kind extension_kind = {.destroy = end_environment, .order = 1};

// Starts what the variables request. Returns BAD_OPTION, naming the variable and the character, NO_HOST_MEMORY or IO, with nothing started.
static enum vram_status apply_environment(struct vram_allocator *allocator, struct vram_error *error) {
    const char *history = vr_os_getenv("VRAM_HISTORY"), *oom = vr_os_getenv("VRAM_ON_OOM");
    if (history == NULL && oom == NULL) return VRAM_OK;
    struct environment *made = calloc(1, sizeof *made);
    if (made == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for the history");
    if (error != NULL) *error = (struct vram_error){.offset = VRAM_NO_OFFSET};
    made->allocator = allocator;
    enum vram_status status = read_on_oom(made, oom, error);
    if (status == VRAM_OK) status = read_history(made, history, error);
    if (status != VRAM_OK) {
        (void)!vram_remove_oom_observer(allocator, vr_on_oom, &made->watch);
        release_environment(made);
        if (error != NULL && error->status == VRAM_OK) (void)vr_fail(error, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
        return status;
    }
    vr_mutex_lock(&allocator->mutex);
    status = vr_extension_attach(&allocator->extensions, &extension_kind, made);
    vr_mutex_unlock(&allocator->mutex);
    assert(status == VRAM_OK);
    return status;
}

enum vram_status vram_create(const struct vram_create_info *info, struct vram_allocator **allocator, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator);
    struct vram_allocator *made = NULL;
    VR_TRY(vr_allocator_create(info, &made, error));
    if (vr_verify_open(made) != VRAM_OK) {
        vr_allocator_destroy(made);
        return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for verify:True");
    }
    if (info == NULL || !info->ignore_environment) {
        enum vram_status status = apply_environment(made, error);
        if (status == VRAM_OK) status = vr_prometheus_start_text(made, vr_os_getenv("VRAM_PROMETHEUS"), error);
        if (status != VRAM_OK) {
            vram_destroy(made);
            return status;
        }
    }
    *allocator = made;
    return VRAM_OK;
}

void vram_destroy(struct vram_allocator *allocator) {
    if (allocator == NULL) return;
    struct vr_verify *verify = vr_verify_of(allocator);
    vr_verify_end(verify);
    vr_allocator_destroy(allocator);
    vr_verify_release(verify);
}
