// Implements vram_replay_exact(): replays all devices of a recording by the rules that it followed (replay.md §whose-rules).
#include <stdio.h>

#include "config/recorded_options.h"
#include "config/values.h"
#include "model/recording.h"
#include "replay/exact_replay.h"
#include "replay/option_strings.h"
#include "replay/recorded_device.h"

// The kinds of segments that occurred: ordinary ones, expandable ones.
struct kinds {
    bool ordinary;
    bool expandable;
};

static struct kinds kinds_in_picture(const struct vr_recorded_device *recorded) {
    const struct vr_segments *segments = &recorded->model->segments;
    struct kinds kinds = {false, false};
    for (size_t i = 0; i < recorded->segment_count; i++) {
        const uint32_t row = recorded->segments[i];
        if (vr_recorded_device_segment_pool(recorded, row) != 0) continue;
        kinds.ordinary = kinds.ordinary || segments->expandable[row] == 0;
        kinds.expandable = kinds.expandable || segments->expandable[row] != 0;
    }
    return kinds;
}

static void look_at_history(const struct vr_recorded_device *recorded, struct kinds *kinds) {
    const struct vr_history *history = recorded->history;
    for (size_t event = 0; event < history->count; event++) {
        const enum vr_action action = history->action[event];
        if (recorded->pools.of_event != NULL && recorded->pools.of_event[event] != 0) continue;
        kinds->ordinary = kinds->ordinary || action == VR_ACTION_SEGMENT_ALLOC || action == VR_ACTION_SEGMENT_FREE;
        kinds->expandable = kinds->expandable || action == VR_ACTION_SEGMENT_MAP || action == VR_ACTION_SEGMENT_UNMAP;
    }
}

// A recording has only its final settings. Returns what cannot have resulted from them, as words for a sentence; NULL if nothing proves a
// change.
static const char *settings_that_changed(const struct vr_recorded_device *recorded) {
    struct kinds kinds = kinds_in_picture(recorded);
    look_at_history(recorded, &kinds);
    return kinds.ordinary && kinds.expandable ? "the default pools had both ordinary and expandable segments" : NULL;
}

// ---- All devices of a recording, by the rules that it followed (replay.md §whose-rules).

#define DIFFERENCES_OF_CONTRADICTION 100000 // more than any completed replay has

// Replays one device. Recorded settings are narrowed to those inferred for the device.
static enum vram_status replay_device(const struct vr_model *model, const struct vr_exact_rules *how, uint32_t ordinal, bool recorded_conf,
                                      struct vram_exact_device *device, struct vram_error *error) {
    struct vr_options settings;
    struct vr_text conf = {0};
    struct vr_exact_rules of_device = *how;
    vr_options_init(&settings);
    enum vram_status status = vr_options_parse(&settings, how->conf, error);
    if (status == VRAM_OK && recorded_conf && vr_recorded_narrow(model, ordinal, &settings)) {
        vr_options_print_places(&settings, &conf);
        of_device.conf = vr_text_string(&conf);
        status = vr_text_status(&conf);
    }
    if (status == VRAM_OK) status = vr_exact_replay_device(model, &settings, ordinal, &of_device, device, error);
    vr_text_release(&conf);
    return status;
}

static enum vram_status replay_all(const struct vr_model *model, const struct vr_exact_rules *how, struct vram_exact_result *result,
                                   struct vram_error *error) {
    uint32_t *devices = NULL;
    size_t count = 0;
    VR_TRY(vr_recorded_device_devices(model, &devices, &count));
    enum vram_status status = VRAM_OK;
    result->devices = calloc(count + 1, sizeof *result->devices);
    if (result->devices == NULL) status = VRAM_NO_HOST_MEMORY;
    result->agrees = true;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) {
        result->device_count = i + 1;
        status = replay_device(model, how, devices[i], result->recorded_conf, &result->devices[i], error);
        result->agrees = result->agrees && vr_exact_verdict_agrees(result->devices[i].verdict);
    }
    free(devices);
    return status;
}

static void release_devices(struct vram_exact_result *result) {
    for (size_t i = 0; i < result->device_count; i++) vr_exact_release_device(&result->devices[i]);
    free(result->devices);
    result->devices = NULL;
    result->device_count = 0;
}

static uint64_t differences_of(const struct vram_exact_result *result) {
    uint64_t sum = 0;
    for (size_t i = 0; i < result->device_count; i++) {
        sum += result->devices[i].difference_count +
               (result->devices[i].verdict == VRAM_EXACT_CONTRADICTION ? DIFFERENCES_OF_CONTRADICTION : 0);
    }
    return sum;
}

static void note_rules(struct vram_exact_result *result, uint32_t pytorch, enum vram_rules_source source) {
    snprintf(result->pytorch, sizeof result->pytorch, "%u.%u", pytorch / 100 % 100, pytorch % 100);
    result->pytorch_by = source;
}

// Replays again with other rules or settings; keeps the result with fewer differences in *result.
static enum vram_status replay_otherwise(const struct vr_model *model, const struct vr_exact_rules *how, struct vram_exact_result *result,
                                         bool *better, struct vram_error *error) {
    struct vram_exact_result other = {.recorded_conf = result->recorded_conf};
    const enum vram_status status = replay_all(model, how, &other, error);
    *better = status == VRAM_OK && differences_of(&other) < differences_of(result);
    if (*better) {
        const struct vram_exact_result first = *result;
        result->devices = other.devices;
        result->device_count = other.device_count;
        result->agrees = other.agrees;
        other = first;
    }
    release_devices(&other);
    return status;
}

// Replays by the rules that the recording's keys suggest or, if its events differ from them, by the rules with the fewest differences.
static enum vram_status replay_by_rules(const struct vr_model *model, const struct vram_exact_options *options,
                                        struct vram_exact_result *result, struct vram_error *error) {
    const struct vr_recorded_rules rules = vr_recorded_rules(model);
    const uint32_t named = vr_conf_rules(result->conf);
    struct vr_exact_rules how = {options, result->conf, named != 0 ? named : rules.likely};
    note_rules(result, how.pytorch, named != 0 ? VRAM_RULES_BY_CONF : VRAM_RULES_BY_KEYS);
    VR_TRY(replay_all(model, &how, result, error));
    if (named != 0 || result->agrees) return VRAM_OK;
    for (size_t i = 0; i < VR_COUNT_OF(rules.others) && rules.others[i] != 0 && !result->agrees; i++) {
        how.pytorch = rules.others[i];
        bool better = false;
        VR_TRY(replay_otherwise(model, &how, result, &better, error));
        if (better) note_rules(result, rules.others[i], VRAM_RULES_BY_EVENTS);
    }
    return VRAM_OK;
}

// If a recording differs, replays it with padding, when its requests may have been padded though no live block shows it. Keeps that replay
// if all of its events agree.
static enum vram_status replay_padded(const struct vr_model *model, const struct vram_exact_options *options,
                                      struct vram_exact_result *result, struct vram_error *error) {
    struct vr_options settings;
    vr_options_init(&settings);
    if (result->agrees || !result->recorded_conf || vr_options_parse(&settings, result->conf, NULL) != VRAM_OK) return VRAM_OK;
    if (!vr_recorded_may_pad(model, &settings)) return VRAM_OK;
    struct vr_text conf = {0};
    struct vram_exact_result padded = {.recorded_conf = true, .inferred_conf = result->inferred_conf};
    vr_options_print_places(&settings, &conf);
    enum vram_status status = vr_text_copy(&conf, &padded.conf);
    if (status == VRAM_OK) status = replay_by_rules(model, options, &padded, error);
    if (status == VRAM_OK && padded.agrees) {
        const struct vram_exact_result first = *result;
        *result = padded;
        padded = first;
    }
    release_devices(&padded);
    free(padded.conf);
    vr_text_release(&conf);
    return status;
}

// Changes the verdict of a device that differs if its settings were changed: a recording has only the last ones.
static enum vram_status look_for_changes(const struct vr_model *model, struct vram_exact_result *result, struct vram_error *error) {
    struct vr_options settings;
    vr_options_init(&settings);
    if (result->agrees || !result->recorded_conf || vr_options_parse(&settings, result->conf, NULL) != VRAM_OK) return VRAM_OK;
    for (size_t i = 0; i < result->device_count; i++) {
        struct vram_exact_device *device = &result->devices[i];
        struct vr_recorded_device recorded;
        if (device->verdict != VRAM_EXACT_DIFFERENT) continue;
        struct vr_options of_device = settings;
        (void)vr_recorded_narrow(model, device->device, &of_device);
        VR_TRY(vr_recorded_device_init(&recorded, model, &of_device, device->device, error));
        const char *proof = settings_that_changed(&recorded);
        vr_recorded_device_release(&recorded);
        if (proof == NULL) continue;
        device->verdict = VRAM_EXACT_UNTOLD;
        snprintf(device->reason, sizeof device->reason,
                 "the settings were changed before or during this history (%s), and the recording has only the last ones", proof);
    }
    return VRAM_OK;
}

static enum vram_status choose_conf(const struct vr_model *model, const struct vram_exact_options *options,
                                    struct vram_exact_result *result) {
    struct vr_text recorded = {0}, conf = {0};
    const bool inferred = vr_recorded_conf(model, &recorded);
    result->recorded_conf = vr_choose_conf(vr_text_string(&recorded), options->conf, &conf);
    result->inferred_conf = result->recorded_conf && inferred;
    enum vram_status status = vr_text_status(&recorded);
    if (status == VRAM_OK) status = vr_text_copy(&conf, &result->conf);
    vr_text_release(&recorded);
    vr_text_release(&conf);
    return status;
}

enum vram_status vram_replay_exact(const struct vram_recording *recording, const struct vram_exact_options *options,
                                   struct vram_exact_result **result, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && result);
    static const struct vram_exact_options defaults = {0};
    const struct vr_model *model = vr_recording_model(recording);
    if (options == NULL) options = &defaults;
    struct vram_exact_result *made = calloc(1, sizeof *made);
    enum vram_status status = made == NULL ? VRAM_NO_HOST_MEMORY : choose_conf(model, options, made);
    if (status == VRAM_OK) status = replay_by_rules(model, options, made, error);
    if (status == VRAM_OK) status = replay_padded(model, options, made, error);
    if (status == VRAM_OK) status = look_for_changes(model, made, error);
    if (status != VRAM_OK) {
        vram_exact_result_destroy(made);
        return status == VRAM_NO_HOST_MEMORY ? vr_fail(error, status, VRAM_NO_OFFSET, "not enough host memory for the replay") : status;
    }
    *result = made;
    return VRAM_OK;
}

void vram_exact_result_destroy(struct vram_exact_result *result) {
    if (result == NULL) return;
    release_devices(result);
    free(result->conf);
    free(result);
}
