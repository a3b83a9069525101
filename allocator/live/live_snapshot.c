// vram_snapshot() and its files: copies the allocator; live_model.c makes a model of the copy.
#include "core/device.h"
#include "live/file.h"
#include "live/live_model.h"
#include "live/live_host.h"
#include "live/recordings_library.h"
#include "model/recording.h"
#include "vram/snapshot.h"

void vr_copied_release(struct vr_copied *copied) {
    for (size_t i = 0; i < copied->device_count; i++) {
        vr_picture_release(&copied->devices[i].picture);
        free(copied->devices[i].events);
    }
    free(copied->marks);
    free(copied->conf);
}

// --- copying -------------------------------------------------------------------------------------------------------------------------

struct device_moment {
    struct vr_tracer *tracer;
    uint64_t mark; // earlier events belong to the snapshot
};

// Called under all locks of the device. The history ends here: the event of this snapshot belongs to the next one.
static void note_moment(struct vr_device *device, const struct vr_picture *picture, void *user) {
    struct device_moment *moment = user;
    if (moment->tracer != NULL) moment->mark = vr_ring_mark(&moment->tracer->rings[device->ordinal]);
    vr_current_stack_set(0);
    vr_notify(device, VR_RECORD_SNAPSHOT, 0, picture->active_bytes, 0);
}

static enum vram_status copy_device(struct vr_copied *copied, struct vr_device *device, const struct vram_snapshot_options *options) {
    struct vr_copied_device *made = &copied->devices[copied->device_count++];
    struct device_moment moment = {.tracer = copied->tracer};
    made->ordinal = device->ordinal;
    VR_TRY(vr_picture_take(device, options->pool, &made->picture, note_moment, &moment));
    if (!copied->has_history) return VRAM_OK;
    VR_TRY(vr_ring_copy(&copied->tracer->rings[device->ordinal], moment.mark, &made->events, &made->event_count));
    made->overflowed = made->event_count < moment.mark;
    return VRAM_OK;
}

static enum vram_status copy_marks(struct vr_copied *copied) {
    struct vr_tracer *tracer = copied->tracer;
    const struct vr_marks *marks = &tracer->marks;
    vr_mutex_lock(&tracer->marks_mutex);
    copied->marks = malloc((marks->count + 1) * sizeof *copied->marks);
    if (copied->marks != NULL && marks->count != 0) {
        const size_t tail = marks->count - marks->next;
        memcpy(copied->marks, marks->items + marks->next, tail * sizeof *copied->marks);
        memcpy(copied->marks + tail, marks->items, marks->next * sizeof *copied->marks);
        copied->mark_count = marks->count;
    }
    vr_mutex_unlock(&tracer->marks_mutex);
    return copied->marks == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
}

enum vram_status vr_copy_settings(struct vram_allocator *allocator, struct vr_copied *copied) {
    vr_mutex_lock(&allocator->mutex);
    copied->options = allocator->options;
    const size_t size = strlen(allocator->conf) + 1;
    copied->conf = malloc(size);
    if (copied->conf != NULL) memcpy(copied->conf, allocator->conf, size);
    vr_mutex_unlock(&allocator->mutex);
    return copied->conf == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
}

static bool is_wanted(const struct vram_snapshot_options *options, const struct vr_device *device) {
    if (options->pool != NULL && options->pool->device != device) return false;
    return options->devices == 0 || (options->devices >> device->ordinal & 1) != 0;
}

// Called with the tracer's mutex held, so that its rings are neither cleared nor resized meanwhile.
static enum vram_status copy_all(struct vram_allocator *allocator, const struct vram_snapshot_options *options, struct vr_copied *copied) {
    copied->segments_only = options->segments_only;
    copied->has_history = copied->tracer != NULL && !options->without_history && !options->segments_only;
    VR_TRY(vr_copy_settings(allocator, copied));
    copied->history_count = options->segments_only ? 0 : (size_t)allocator->device_count;
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device != NULL && is_wanted(options, device)) VR_TRY(copy_device(copied, device, options));
    }
    const bool has_host = copied->tracer != NULL && copied->tracer->host != NULL;
    if (has_host && options->pool == NULL && !options->segments_only) VR_TRY(vr_copy_host(copied));
    if (!copied->has_history) return VRAM_OK;
    copied->max_entries = copied->tracer->rings[0].capacity;
    VR_TRY(copy_marks(copied));
    copied->now = vr_instant_now();
    return VRAM_OK;
}

static enum vram_status make_model(struct vram_allocator *allocator, const struct vram_snapshot_options *options,
                                   const struct vr_oom_facts *oom_facts, struct vr_model *model) {
    struct vr_copied *copied = calloc(1, sizeof *copied);
    if (copied == NULL) return VRAM_NO_HOST_MEMORY;
    copied->tracer = vr_tracer_of(allocator);
    copied->oom_facts = oom_facts;
    if (copied->tracer != NULL) vr_mutex_lock(&copied->tracer->mutex);
    enum vram_status status = copy_all(allocator, options, copied);
    if (copied->tracer != NULL) vr_mutex_unlock(&copied->tracer->mutex);
    if (status == VRAM_OK) status = vr_live_model(copied, model);
    vr_copied_release(copied);
    free(copied);
    return status;
}

// --- public functions ----------------------------------------------------------------------------------------------------------------

static enum vram_status make_snapshot(struct vram_allocator *allocator, const struct vram_snapshot_options *options,
                                      const struct vr_oom_facts *oom_facts, struct vram_recording **recording, struct vram_error *error) {
    static const struct vram_snapshot_options defaults;
    struct vr_model model = {0};
    enum vram_status status = make_model(allocator, options == NULL ? &defaults : options, oom_facts, &model);
    if (status == VRAM_OK) status = vr_recording_create(&model, recording);
    vr_model_release(&model);
    return status == VRAM_OK ? VRAM_OK : vr_fail(error, status, VRAM_NO_OFFSET, "a snapshot: %s", vram_status_text(status));
}

enum vram_status vram_snapshot(struct vram_allocator *allocator, const struct vram_snapshot_options *options,
                               struct vram_recording **recording, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && recording);
    return make_snapshot(allocator, options, NULL, recording, error);
}

enum vram_status vram_snapshot_write(struct vram_allocator *allocator, const struct vram_snapshot_options *options,
                                     enum vram_recording_format format, vram_write write, void *user, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && write);
    const struct vr_recordings_library *library;
    struct vram_recording *recording = NULL;
    VR_TRY(vr_recordings_library_find(&library, error));
    VR_TRY(vram_snapshot(allocator, options, &recording, error));
    const enum vram_status status = library->write_recording(recording, format, write, user, error);
    vram_recording_destroy(recording);
    return status;
}

enum vram_status vr_snapshot_at_oom(struct vram_allocator *allocator, const struct vr_oom_facts *oom_facts,
                                    struct vram_recording **recording, struct vram_error *error) {
    return make_snapshot(allocator, NULL, oom_facts, recording, error);
}

static enum vram_status save_snapshot(struct vram_allocator *allocator, const struct vram_snapshot_options *options,
                                      const struct vr_oom_facts *oom_facts, const char *pattern, struct vram_error *error) {
    const struct vr_recordings_library *library;
    VR_TRY(vr_recordings_library_find(&library, error));
    struct vr_file file;
    VR_TRY(vr_file_open(&file, pattern, error));
    struct vram_recording *recording = NULL;
    enum vram_status status = make_snapshot(allocator, options, oom_facts, &recording, error);
    if (status == VRAM_OK) status = library->write_recording(recording, vr_file_format(&file), vr_file_write, &file, error);
    vram_recording_destroy(recording);
    return vr_file_close(&file, status, error);
}

enum vram_status vram_snapshot_save(struct vram_allocator *allocator, const struct vram_snapshot_options *options, const char *pattern,
                                    struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && pattern);
    return save_snapshot(allocator, options, NULL, pattern, error);
}

enum vram_status vr_snapshot_save_at_oom(struct vram_allocator *allocator, const struct vr_oom_facts *oom_facts, const char *pattern,
                                         struct vram_error *error) {
    return save_snapshot(allocator, NULL, oom_facts, pattern, error);
}
