// Answers queries about recordings: `list`, `settings` and `notes`.
#include "analyze/report_parts.h"
#include "config/recorded_options.h"
#include "explore/query/query.h"
#include "explore/query/selection.h"
#include "model/recording.h"
#include "present/shared_texts.h"
#include "vram/options.h"

// ---- `list`: the open recordings, and their devices.

// Returns the maximum of reserved bytes over the history, including its start.
static int64_t reserved_peak(const struct vr_curve *reserved, size_t events) {
    int64_t low = 0, high = vr_curve_at(reserved, -1);
    const int64_t start = high;
    if (events != 0) vr_curve_range(reserved, 0, events, &low, &high);
    return start > high ? start : high;
}

static enum vram_status describe_device(struct vr_json *json, const struct vr_model *model, struct vr_explored_device *device) {
    const struct vr_view *view = device->view;
    const struct vr_lifetimes *lifetimes[2] = {NULL};
    const struct vr_curve *reserved = NULL;
    for (size_t n = 0; n < 2; n++) VR_TRY(vr_explored_lifetimes(device, (enum vr_lifetime_kind)n, &lifetimes[n]));
    VR_TRY(vr_explored_curve(device, VR_CURVE_RESERVED, &reserved));
    vr_json_object(json, NULL);
    vr_json_u64(json, "device", view->device);
    vr_json_bool(json, "host", vr_model_is_host(model, view->device));
    vr_json_u64(json, "events", view->history->count);
    vr_json_u64(json, "segments", view->segment_count);
    vr_json_u64(json, "allocations", lifetimes[VR_LIFETIME_ALLOCATED]->count);
    vr_json_u64(json, "peak_bytes", lifetimes[VR_LIFETIME_ALLOCATED]->peak.bytes);
    vr_json_i64(json, "peak_event", lifetimes[VR_LIFETIME_ALLOCATED]->peak_event);
    vr_json_u64(json, "active_peak_bytes", lifetimes[VR_LIFETIME_ACTIVE]->peak.bytes);
    vr_json_i64(json, "active_peak_event", lifetimes[VR_LIFETIME_ACTIVE]->peak_event);
    vr_json_i64(json, "reserved_peak_bytes", reserved_peak(reserved, view->history->count));
    vr_json_i64(json, "reserved_end_bytes", vr_curve_at(reserved, (int64_t)view->history->count));
    vr_json_bool(json, "has_times", vr_explored_has_times(device));
    if (vr_explored_has_times(device)) {
        const int64_t *time_us = NULL;
        VR_TRY(vr_explored_times(device, &time_us));
        vr_json_i64(json, "first_time_us", time_us[0]);
        vr_json_i64(json, "duration_us", time_us[view->history->count - 1] - time_us[0]);
    }
    vr_json_object_end(json);
    return VRAM_OK;
}

enum vram_status vr_query_list(const struct vr_query *query) {
    struct vr_json *json = &query->answer->json;
    vr_json_array(json, "recordings");
    for (size_t i = 0; i < query->explorer->count; i++) {
        struct vr_explored_recording *explored = &query->explorer->recordings[i];
        vr_json_object(json, NULL);
        vr_json_string(json, "name", explored->name);
        vr_json_u64(json, "bytes", explored->bytes);
        vr_json_array(json, "devices");
        for (size_t d = 0; d < explored->views.count; d++)
            VR_TRY(describe_device(json, vr_recording_model(explored->recording), &explored->devices[d]));
        vr_json_array_end(json);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    return VRAM_OK;
}

// ---- `settings`: the allocator's settings, and other facts about the recording and the device.

static void put_setting_member(struct vr_json *json, const char *key, const char *value) {
    struct vr_recorded_key known;
    vr_json_object(json, NULL);
    vr_json_string(json, "key", key);
    vr_json_raw(json, "value", value);
    if (vr_recorded_find(key, &known)) {
        vr_json_string(json, "meaning", known.meaning);
        vr_json_bool(json, "usual", vr_recorded_is_usual(key, value));
        vr_json_raw(json, "default", known.usual);
    }
    vr_json_object_end(json);
}

static bool put_option(const struct vram_option *option, void *user) {
    struct vr_json *json = user;
    vr_json_object(json, NULL);
    vr_json_string(json, "key", option->key);
    vr_json_string(json, "value", option->value);
    vr_json_string(json, "default", option->default_value);
    vr_json_bool(json, "usual", option->is_default);
    vr_json_string(json, "syntax", option->syntax);
    vr_json_string(json, "meaning", option->summary);
    vr_json_object_end(json);
    return true;
}

// Adds every option with its value in the recording, as far as it is known.
static enum vram_status put_options(struct vr_json *json, const struct vr_model *model) {
    struct vr_text conf = {0};
    (void)vr_recorded_conf(model, &conf);
    enum vram_status status = vr_text_status(&conf);
    vr_json_string(json, "conf", vr_text_string(&conf));
    vr_json_array(json, "options");
    if (status == VRAM_OK) status = vram_options_list(vr_text_string(&conf), put_option, json, NULL);
    // Options that this version does not know appear only in `conf`.
    if (status == VRAM_BAD_OPTION || status == VRAM_LIMIT) status = vram_options_list("", put_option, json, NULL);
    vr_json_array_end(json);
    vr_text_release(&conf);
    return status;
}

static void put_file(struct vr_json *json, const struct vr_explored_recording *recording, const struct vr_model *model) {
    static const char *const endings[] = {"whole", "open", "cut"};
    const char *generation = "", *era = "";
    vr_report_generation(model, &generation, &era);
    vr_json_object(json, "recording");
    vr_json_string(json, "name", recording->name);
    vr_json_u64(json, "bytes", recording->bytes);
    vr_json_string(json, "form", model->form == VR_FORM_DICT ? "dict" : "segment_list");
    vr_json_string(json, "generation", generation);
    vr_json_string(json, "era", era);
    vr_json_string(json, "ending", endings[model->ending]);
    vr_json_array(json, "keys");
    for (size_t i = 0; i < model->top_level_key_count; i++) vr_json_string(json, NULL, vr_model_string(model, model->top_level_keys[i]));
    vr_json_array_end(json);
    vr_json_u64(json, "annotations", model->annotation_count);
    vr_json_u64(json, "stacks", model->stacks.count - 1);
    vr_json_u64(json, "frames", model->frames.count);
    vr_json_u64(json, "modules", model->module_count);
    vr_json_object_end(json);
}

static void put_device_settings(struct vr_json *json, const struct vr_model *model, const struct vram_report_device *device) {
    vr_json_object(json, "device");
    vr_json_u64(json, "device", device->device);
    vr_json_bool(json, "host", vr_model_is_host(model, device->device));
    vr_json_u64(json, "events", device->events);
    vr_json_u64(json, "events_with_frames", device->events_with_frames);
    vr_json_u64(json, "max_frames", device->max_frames);
    vr_json_bool(json, "has_times", device->has_times);
    vr_json_bool(json, "times_monotonic", device->times_monotonic);
    if (device->has_times) {
        vr_json_i64(json, "first_time_us", device->first_time_us);
        vr_json_i64(json, "last_time_us", device->last_time_us);
    }
    vr_json_array(json, "actions");
    for (size_t i = 0; i < device->action_count; i++) {
        vr_json_object(json, NULL);
        vr_json_string(json, "name", device->actions[i].name);
        vr_json_u64(json, "count", device->actions[i].count);
        vr_json_u64(json, "bytes", device->actions[i].bytes);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    vr_json_u64(json, "streams", device->trace_stream_count);
    vr_json_object_end(json);
}

enum vram_status vr_query_settings(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    struct vr_json *json = &query->answer->json;
    VR_TRY(vr_select_recording(query, &recording));
    const struct vr_model *model = vr_recording_model(recording->recording);
    put_file(json, recording, model);
    vr_json_array(json, "settings");
    for (size_t i = 0; i < model->setting_count; i++)
        put_setting_member(json, vr_model_string(model, model->settings[i].key), vr_model_string(model, model->settings[i].value));
    vr_json_array_end(json);
    VR_TRY(put_options(json, model));
    if (recording->views.count == 0) return VRAM_OK;
    VR_TRY(vr_select_device(query, &recording, &device));
    struct vr_arena arena = {0};
    struct vram_report_device facts = {.device = device->view->device};
    const enum vram_status status = vr_report_trace(device->view, &arena, &facts);
    if (status == VRAM_OK) put_device_settings(json, model, &facts);
    vr_arena_release(&arena);
    return status;
}

// ---- `notes`: the same remarks about the recording as in the report.

// Fills the members of *live that the notes need.
static void put_live(const struct vr_lifetimes *lifetimes, struct vram_report_live *live) {
    live->start = lifetimes->start;
    live->peak = lifetimes->peak;
    live->end = lifetimes->end;
    live->final_state = lifetimes->final_state;
    live->consistent = true;
    for (size_t a = 0; a < VRAM_ANOMALY_COUNT; a++) {
        live->anomalies[a] = lifetimes->anomalies[a];
        live->consistent = live->consistent && lifetimes->anomalies[a] == 0;
    }
}

static enum vram_status look_at_device(struct vr_explored_device *explored, struct vr_arena *arena, struct vram_report_device *device) {
    const struct vr_lifetimes *lifetimes = NULL;
    device->device = explored->view->device;
    VR_TRY(vr_report_trace(explored->view, arena, device));
    VR_TRY(vr_report_picture(explored->view, arena, device));
    vr_report_reserved(explored->view, &device->reserved, NULL, 0);
    VR_TRY(vr_explored_lifetimes(explored, VR_LIFETIME_ALLOCATED, &lifetimes));
    put_live(lifetimes, &device->allocated);
    VR_TRY(vr_explored_lifetimes(explored, VR_LIFETIME_ACTIVE, &lifetimes));
    put_live(lifetimes, &device->active);
    return VRAM_OK;
}

static enum vram_status collect_notes(struct vr_explored_recording *recording, struct vr_arena *arena, struct vram_report *report) {
    const struct vr_model *model = vr_recording_model(recording->recording);
    void *room;
    VR_TRY(vr_arena_array(arena, recording->views.count, sizeof(struct vram_report_device), &room));
    struct vram_report_device *devices = room;
    for (size_t d = 0; d < recording->views.count; d++) VR_TRY(look_at_device(&recording->devices[d], arena, &devices[d]));
    vr_report_generation(model, &report->generation, &report->era);
    report->form = vr_report_form(model);
    report->top_level_key_count = model->top_level_key_count;
    report->has_settings = vr_report_has_settings(model);
    report->devices = devices;
    report->device_count = recording->views.count;
    return vr_report_notes(model, arena, report);
}

enum vram_status vr_query_notes(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_json *json = &query->answer->json;
    struct vr_arena arena = {0};
    struct vram_report report = {0};
    VR_TRY(vr_select_recording(query, &recording));
    const enum vram_status status = collect_notes(recording, &arena, &report);
    if (status == VRAM_OK) {
        vr_json_string(json, "generation", report.generation);
        vr_json_string(json, "era", report.era);
        vr_json_array(json, "notes");
        for (size_t i = 0; i < report.note_count; i++) {
            const struct vram_report_note *note = &report.notes[i];
            vr_json_object(json, NULL);
            vr_json_string(json, "kind", note->kind == VRAM_NOTE_CONTRADICTION ? "contradiction" : "missing");
            if (note->device >= 0) vr_json_i64(json, "device", note->device);
            vr_json_string(json, "code", note->code);
            vr_json_string(json, "text", note->text);
            vr_json_object_end(json);
        }
        vr_json_array_end(json);
    }
    vr_arena_release(&arena);
    return status;
}
