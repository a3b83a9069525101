// Puts a report together: one view per device, and what the recording says about itself.
#include "analyze/device.h"
#include "analyze/notes.h"
#include "model/recording.h"

// CUDA ordinals are below 128 in every recorder known; a file that names more devices than this is damaged.
#define MAX_DEVICES 256
#define DEFAULT_TOP 10u
#define MOST_TOP    10000u

struct whole_report {
    struct vram_report report; // must be first: the public pointer is this one
    struct vr_arena arena;
};

// What is only needed while the report is made.
struct work {
    const struct vr_model *model;
    struct vr_arena *arena;
    struct vr_sites sites;
    size_t top;
    size_t *segments; // rows of all segments, by device
    size_t *blocks;   // rows of the blocks of one device
    struct vram_report_device *devices;
    size_t device_count;
    struct vram_error *error; // may be NULL
};

static enum vram_status live_facts(struct work *work, const struct vr_view *view, struct vram_report_device *out,
                                   struct vram_report_point *points, size_t point_count) {
    struct vr_lifetimes allocated = {0}, active = {0};
    uint64_t totals[VRAM_REPORT_POINTS];
    enum vram_status status = vr_lifetimes_build(view, VR_ALLOCATED, point_count == 0 ? NULL : totals, point_count, &allocated);
    for (size_t p = 0; p < point_count && status == VRAM_OK; p++) points[p].allocated_bytes = totals[p];
    if (status == VRAM_OK) status = vr_lifetimes_build(view, VR_ACTIVE, point_count == 0 ? NULL : totals, point_count, &active);
    for (size_t p = 0; p < point_count && status == VRAM_OK; p++) points[p].active_bytes = totals[p];
    if (status == VRAM_OK) status = vr_report_live(view, &work->sites, &allocated, work->top, work->arena, &out->allocated);
    if (status == VRAM_OK) status = vr_report_live(view, &work->sites, &active, work->top, work->arena, &out->active);
    if (status == VRAM_OK) status = vr_report_ooms(view, &work->sites, &allocated, &active, work->arena, out);
    vr_lifetimes_release(&allocated);
    vr_lifetimes_release(&active);
    return status;
}

static enum vram_status describe_device(struct work *work, struct vr_view *view, struct vram_report_device *out) {
    const struct vr_segments *segments = &work->model->segments;
    size_t block_count = 0;
    for (size_t i = 0; i < view->segment_count; i++) {
        const size_t segment = view->segments[i];
        for (uint64_t row = segments->first_block[segment]; row < segments->first_block[segment + 1]; row++)
            work->blocks[block_count++] = (size_t)row;
    }
    view->blocks = work->blocks;
    view->block_count = block_count;
    out->device = view->device;

    const size_t point_count = view->history->count < VRAM_REPORT_POINTS ? view->history->count : VRAM_REPORT_POINTS;
    void *room;
    VR_TRY(vr_arena_array(work->arena, point_count, sizeof(struct vram_report_point), &room));
    struct vram_report_point *points = room;
    for (size_t p = 0; p < point_count; p++) {
        points[p].first_event = vr_point_first(view->history->count, point_count, p);
        points[p].event_count = vr_point_first(view->history->count, point_count, p + 1) - points[p].first_event;
    }
    VR_TRY(vr_report_trace(view, work->arena, out));
    vr_report_reserved(view, &out->reserved, points, point_count);
    VR_TRY(vr_report_picture(view, work->arena, out));
    VR_TRY(live_facts(work, view, out, points, point_count));
    out->timeline = points;
    out->timeline_count = point_count;
    return VRAM_OK;
}

// Segment rows by device: a stable sort by counting, since devices are few.
static enum vram_status sort_segments(struct work *work, uint32_t *devices, size_t *device_count, size_t *first) {
    const struct vr_segments *segments = &work->model->segments;
    size_t count = 0;
    for (size_t d = 0; d < work->model->history_count; d++) {
        if (work->model->histories[d].count == 0) continue;
        if (count == MAX_DEVICES)
            return vr_fail(work->error, VRAM_LIMIT, VRAM_NO_OFFSET, "more than %d devices have a history", MAX_DEVICES);
        devices[count++] = (uint32_t)d;
    }
    for (size_t i = 0; i < segments->count; i++) {
        size_t d = 0;
        while (d < count && devices[d] != segments->device[i]) d++;
        if (d < count) continue;
        if (count == MAX_DEVICES)
            return vr_fail(work->error, VRAM_LIMIT, VRAM_NO_OFFSET, "segments and histories name more than %d devices", MAX_DEVICES);
        devices[count++] = segments->device[i];
    }
    for (size_t i = 1; i < count; i++) {
        for (size_t j = i; j > 0 && devices[j] < devices[j - 1]; j--) {
            const uint32_t swapped = devices[j];
            devices[j] = devices[j - 1];
            devices[j - 1] = swapped;
        }
    }
    size_t filled = 0;
    for (size_t d = 0; d < count; d++) {
        first[d] = filled;
        for (size_t i = 0; i < segments->count; i++) {
            if (segments->device[i] == devices[d]) work->segments[filled++] = i;
        }
    }
    first[count] = filled;
    *device_count = count;
    return VRAM_OK;
}

static enum vram_status describe_devices(struct work *work) {
    static const struct vr_history no_history;
    uint32_t devices[MAX_DEVICES];
    size_t first[MAX_DEVICES + 1], count = 0;
    work->segments = malloc((work->model->segments.count + 1) * sizeof *work->segments);
    work->blocks = malloc((work->model->blocks.count + 1) * sizeof *work->blocks);
    if (work->segments == NULL || work->blocks == NULL) return VRAM_NO_HOST_MEMORY;
    VR_TRY(sort_segments(work, devices, &count, first));
    void *room;
    VR_TRY(vr_arena_array(work->arena, count, sizeof(struct vram_report_device), &room));
    work->devices = room;
    work->device_count = count;
    for (size_t d = 0; d < count; d++) {
        struct vr_view view = {.model = work->model,
                               .device = devices[d],
                               .history = devices[d] < work->model->history_count ? &work->model->histories[devices[d]] : &no_history,
                               .segments = work->segments + first[d],
                               .segment_count = first[d + 1] - first[d]};
        VR_TRY(describe_device(work, &view, &work->devices[d]));
    }
    return VRAM_OK;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static enum vram_status copy_string(const struct vr_model *model, uint32_t id, struct vr_arena *arena, const char **text) {
    return vr_arena_copy(arena, vr_model_string(model, id), vr_model_string_length(model, id), text);
}

static enum vram_status describe_file(const struct vr_model *model, struct vr_arena *arena, struct vram_report *report) {
    report->form = model->form == VR_FORM_SEGMENT_LIST ? "segment_list" : "dict";
    vr_report_generation(model, &report->generation, &report->era);
    report->annotations = model->annotation_count;
    report->trace_lists = model->history_count;

    void *room;
    VR_TRY(vr_arena_array(arena, model->top_level_key_count, sizeof(char *), &room));
    const char **keys = room;
    for (size_t i = 0; i < model->top_level_key_count; i++) {
        VR_TRY(copy_string(model, model->top_level_keys[i], arena, &keys[i]));
        report->has_settings = report->has_settings || strcmp(keys[i], "allocator_settings") == 0;
    }
    qsort(keys, model->top_level_key_count, sizeof *keys, by_text);
    report->top_level_keys = keys;
    report->top_level_key_count = model->top_level_key_count;

    VR_TRY(vr_arena_array(arena, model->setting_count, sizeof(struct vram_report_setting), &room));
    struct vram_report_setting *settings = room;
    for (size_t i = 0; i < model->setting_count; i++) {
        VR_TRY(copy_string(model, model->settings[i].key, arena, &settings[i].key));
        VR_TRY(copy_string(model, model->settings[i].value, arena, &settings[i].value));
    }
    report->settings = settings;
    report->setting_count = model->setting_count;
    return VRAM_OK;
}

static enum vram_status build(struct work *work, struct vram_report *report) {
    VR_TRY(vr_sites_init(&work->sites, work->model));
    VR_TRY(describe_file(work->model, work->arena, report));
    VR_TRY(describe_devices(work));
    report->devices = work->devices;
    report->device_count = work->device_count;
    return vr_report_notes(work->model, work->arena, report);
}

enum vram_status vram_report_create(const struct vram_recording *recording, const struct vram_report_options *options,
                                    struct vram_report **report, struct vram_error *error) {
    if (recording == NULL || report == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "recording and report must not be NULL");
    struct whole_report *whole = calloc(1, sizeof *whole);
    if (whole == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "no host memory for the report");
    const unsigned top = options == NULL || options->top == 0 ? DEFAULT_TOP : options->top;
    struct work work = {
        .model = vr_recording_model(recording), .arena = &whole->arena, .top = top < MOST_TOP ? top : MOST_TOP, .error = error};
    const enum vram_status status = build(&work, &whole->report);
    vr_sites_release(&work.sites);
    free(work.segments);
    free(work.blocks);
    if (status != VRAM_OK) {
        vram_report_destroy(&whole->report);
        if (status == VRAM_NO_HOST_MEMORY) return vr_fail(error, status, VRAM_NO_OFFSET, "no host memory for the report");
        return status;
    }
    *report = &whole->report;
    return VRAM_OK;
}

void vram_report_destroy(struct vram_report *report) {
    if (report == NULL) return;
    struct whole_report *whole = (struct whole_report *)(void *)report;
    vr_arena_release(&whole->arena);
    free(whole);
}
