// `settings`: what the recording says about the allocator's settings, about itself and its device.
#include "explore/explorer.h"

#include "analyze/report_parts.h"
#include "analyze/generation.h"
#include "analyze/recorded_conf.h"
#include "config/options.h"
#include "model/recording.h"
#include "vram/options.h"

// Keys of PyTorch's allocator_settings whose option has another name, and those that are no option.
static const struct {
    const char *key;
    const char *option; // NULL: none
    const char *usual;  // the value of a program that sets nothing, as JSON
    const char *meaning;
} known[] = {
    {"PYTORCH_CUDA_ALLOC_CONF", NULL, "\"\"", "the option string, as the program was given it"},
    {"PYTORCH_ALLOC_CONF", NULL, "\"\"", "the option string, as the program was given it"},
    {"max_split_size", "max_split_size_mb", "-1", NULL},
    {"garbage_collection_threshold", "garbage_collection_threshold", "0.0", NULL},
    {"expandable_segments", "expandable_segments", "false", NULL},
    {"pinned_num_register_threads", "pinned_num_register_threads", "1", NULL},
    {"release_lock_on_cudamalloc", "release_lock_on_cudamalloc", "false", NULL},
    {"pinned_use_cuda_host_register", "pinned_use_cuda_host_register", "false", NULL},
    {"graph_capture_record_stream_reuse", "graph_capture_record_stream_reuse", "false", NULL},
    {"roundup_power2_divisions", "roundup_power2_divisions", NULL, NULL},
    {"trace_alloc_max_entries", NULL, NULL, "how many events the recorder keeps; older ones are dropped"},
    {"trace_alloc_overflowed", NULL, "false", "whether older events were dropped"},
    {"last_allocator_settings", NULL, "\"\"", "the option string, as it was set last"},
};

struct listing {
    struct vr_json *json;
    const char *wanted; // key of the option looked for
};

static bool put_meaning(const struct vram_option *option, void *user) {
    struct listing *listing = user;
    if (strcmp(option->key, listing->wanted) != 0) return true;
    vr_json_string(listing->json, "meaning", option->summary);
    return false;
}

// Divisions of 0 and 1 mean that sizes are not rounded up to steps.
static bool divisions_are_off(const char *value) {
    for (const char *at = strchr(value, ':'); at != NULL; at = strchr(at + 1, ':')) {
        if (strtoul(at + 1, NULL, 10) > 1) return false;
    }
    return true;
}

static enum vram_status put_setting(struct vr_json *json, const char *key, const char *value) {
    vr_json_object(json, NULL);
    vr_json_string(json, "key", key);
    vr_json_raw(json, "value", value);
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < VR_COUNT_OF(known); i++) {
        if (strcmp(known[i].key, key) != 0) continue;
        struct listing listing = {.json = json, .wanted = known[i].option};
        if (known[i].meaning != NULL) vr_json_string(json, "meaning", known[i].meaning);
        if (known[i].option != NULL) status = vram_options_list("", put_meaning, &listing, NULL);
        if (strcmp(key, "roundup_power2_divisions") == 0) vr_json_bool(json, "usual", divisions_are_off(value));
        if (known[i].usual != NULL) vr_json_bool(json, "usual", strcmp(known[i].usual, value) == 0);
        if (known[i].usual != NULL) vr_json_raw(json, "default", known[i].usual);
    }
    vr_json_object_end(json);
    return status;
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
    vr_recorded_conf(model, &conf);
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

static void put_file(struct vr_json *json, const struct vr_seen_recording *recording, const struct vr_model *model) {
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

static void put_device(struct vr_json *json, const struct vr_model *model, const struct vram_report_device *device) {
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

enum vram_status vr_ask_settings(const struct vr_ask *ask) {
    struct vr_seen_recording *recording = NULL;
    struct vr_seen_device *device = NULL;
    struct vr_json *json = &ask->answer->json;
    VR_TRY(vr_ask_recording(ask, &recording));
    const struct vr_model *model = vr_recording_model(recording->recording);
    put_file(json, recording, model);
    vr_json_array(json, "settings");
    for (size_t i = 0; i < model->setting_count; i++)
        VR_TRY(put_setting(json, vr_model_string(model, model->settings[i].key), vr_model_string(model, model->settings[i].value)));
    vr_json_array_end(json);
    VR_TRY(put_options(json, model));
    if (recording->views.count == 0) return VRAM_OK;
    VR_TRY(vr_ask_device(ask, &recording, &device));
    struct vr_arena arena = {0};
    struct vram_report_device facts = {.device = device->view->device};
    const enum vram_status status = vr_report_trace(device->view, &arena, &facts);
    if (status == VRAM_OK) put_device(json, model, &facts);
    vr_arena_release(&arena);
    return status;
}
