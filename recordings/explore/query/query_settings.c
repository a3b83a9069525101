// `settings`: what the recording says about the allocator's settings, about itself and its device.
#include "analyze/generation.h"
#include "analyze/report_parts.h"
#include "config/recorded_options.h"
#include "explore/query/query.h"
#include "explore/query/selection.h"
#include "model/recording.h"
#include "vram/options.h"

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

// Every option with the value it had, as far as the recording tells.
static enum vram_status put_options(struct vr_json *json, const struct vr_model *model) {
    struct vr_text conf = {0};
    (void)vr_recorded_conf(model, &conf);
    enum vram_status status = vr_text_status(&conf);
    vr_json_string(json, "conf", vr_text_string(&conf));
    vr_json_array(json, "options");
    if (status == VRAM_OK) status = vram_options_list(vr_text_string(&conf), put_option, json, NULL);
    // What this version does not understand is shown as it was found, above.
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
