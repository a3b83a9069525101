// Prints a file's report as JSON. docs/reference/json.md is generated from the lists of facts here and in report_device_json.c,
// report_oom_json.c, demand_text.c and cure_text.c. A device's keys are the reference reader's, then vram's own.
#include <inttypes.h>
#include <stdio.h>

#include "base/json_rows.h"
#include "present/report_members.h"
#include "present/shared_texts.h"
#include "present/text_parts.h"
#include "vram/oom.h"
#include "vram/report.h"

// Returns the report on pinned host memory, which is not a device. NULL if the file lacks it.
static const struct vram_report_device *find_host(const struct vram_report *report) {
    const struct vram_report_device *host = NULL;
    for (size_t d = 0; d < report->device_count; d++) {
        if (report->devices[d].is_host) host = &report->devices[d];
    }
    return host;
}

static void put_devices(struct vr_json *json, const char *name, const struct vram_report *report) {
    vr_json_object(json, name);
    for (size_t d = 0; d < report->device_count; d++) {
        char number[16];
        (void)snprintf(number, sizeof number, "%" PRIu32, report->devices[d].device);
        if (!report->devices[d].is_host) vr_report_json_device(json, number, &report->devices[d]);
    }
    vr_json_object_end(json);
}

static void put_settings(struct vr_json *json, const char *key, const struct vram_report *report) {
    if (report->odd_settings != NULL) {
        vr_json_raw(json, key, report->odd_settings);
        return;
    }
    vr_json_object(json, key);
    for (size_t i = 0; i < report->setting_count; i++) vr_json_raw(json, report->settings[i].key, report->settings[i].value);
    vr_json_object_end(json);
}

static void put_top_level_keys(struct vr_json *json, const char *key, const struct vram_report *report) {
    vr_json_array(json, key);
    for (size_t i = 0; i < report->top_level_key_count; i++) vr_json_string(json, NULL, report->top_level_keys[i]);
    if (report->top_level_key_count == 0 && strcmp(report->form, "segment_list") == 0) vr_json_string(json, NULL, "<list>");
    vr_json_array_end(json);
}

static bool is_host(const struct vram_report *report, int64_t device) {
    for (size_t d = 0; d < report->device_count; d++) {
        if (report->devices[d].device == device) return report->devices[d].is_host;
    }
    return false;
}

// Prints "host" for pinned host memory, null for the whole file, or else the device's number.
static void put_note_device(struct vr_json *json, const char *key, const struct vram_report *report, int64_t device) {
    if (is_host(report, device))
        vr_json_string(json, key, "host");
    else if (device < 0)
        vr_json_null(json, key);
    else
        vr_json_i64(json, key, device);
}

#define NOTE_FACTS(X)                                                                                                                      \
    X(TEXT, "code", it->code, ALWAYS, "identifier for programs")                                                                           \
    X(TEXT, "text", it->text, ALWAYS, "the note as a sentence")

static void put_notes(struct vr_json *json, const char *key, const struct vram_report *report, enum vram_report_note_kind kind) {
    vr_json_array(json, key);
    for (size_t i = 0; i < report->note_count; i++) {
        const struct vram_report_note *it = &report->notes[i];
        if (it->kind != kind) continue;
        vr_json_object(json, NULL);
        put_note_device(json, "device", report, it->device);
        NOTE_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_advice(struct vr_json *json, const char *key, const struct vram_report *report) {
    vr_json_array(json, key);
    for (size_t i = 0; i < report->advice_count; i++) {
        const struct vram_report_note *it = &report->advice[i];
        vr_json_object(json, NULL);
        vr_json_i64(json, "device", it->device);
        NOTE_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_cures(struct vr_json *json, const char *key, const struct vram_report_source *source) {
    vr_json_array(json, key);
    for (size_t i = 0; i < source->cure_count; i++) {
        vr_json_object(json, NULL);
        vr_cure_json(&source->cures[i], json);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

static void put_savings(struct vr_json *json, const char *key, const struct vram_report_source *source) {
    vr_json_array(json, key);
    for (size_t i = 0; i < source->saving_count; i++) {
        vr_json_object(json, NULL);
        vr_paged_json(&source->savings[i], json);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define FILE_FACTS(X)                                                                                                                      \
    X(TEXT, "file", source->file, OMIT_UNLESS(named), "file name without its folder, or `standard input`")                                 \
    X(U64, "bytes", source->bytes, OMIT_UNLESS(named), "its size after decompression")                                                     \
    X(TEXT, "form", it->form, ALWAYS, "`dict` (a snapshot), or `segment_list` (a bare `torch.cuda.memory_snapshot()`)")                    \
    X(TEXT, "generation", it->generation, ALWAYS,                                                                                          \
      "`G1`, `G2`, `G2b`, `G3` ... `G7`, or `list`, determined by the keys of the file; `events`: a log or a profiler's trace, not a "     \
      "snapshot")                                                                                                                          \
    X(TEXT, "era", it->era, ALWAYS, "PyTorch versions that are known to write such files; may be empty")                                   \
    X(TEXT, "platform", it->platform, NULL_IF_EMPTY, "`CUDA`, `ROCm` or `Ascend`, if frames or settings name it")                          \
    X(ARRAY, "top_level_keys", put_top_level_keys(json, key, it), ALWAYS,                                                                  \
      "keys of the dictionary, ascending; `[\"<list>\"]` for a bare list")                                                                 \
    X(U64, "annotation_count", it->annotations, ALWAYS, "number of `external_annotations`")                                                \
    X(MAP, "allocator_settings", put_settings(json, key, it), NULL_UNLESS(it->has_settings), "the settings in the file")                   \
    X(U64, "device_trace_lists", it->trace_lists, ALWAYS, "number of per-device lists of events, including empty ones")                    \
    X(MAP, "devices", put_devices(json, key, it), ALWAYS,                                                                                  \
      "device number (a string) to the device's object (see below). Devices without events and segments are left out")                     \
    X(OBJECT, "host", vr_report_json_device(json, key, host), OMIT_UNLESS(host != NULL), "pinned host memory: an object like a device's")  \
    X(ARRAY, "cures", put_cures(json, key, source), OMIT_UNLESS(source->cures != NULL),                                                    \
      "the setting that would have made the program fit (see below). Only after an out-of-memory error, and not with `--no-cure`")         \
    X(ARRAY, "paged", put_savings(json, key, source), OMIT_UNLESS(source->savings != NULL),                                                \
      "the saving of paged memory for each device (see below). Not with `--no-cure`, and not for several files")                           \
    X(ARRAY, "contradictions", put_notes(json, key, it, VRAM_NOTE_CONTRADICTION), ALWAYS,                                                  \
      "contradictions in the recording: objects of `device` (`null`: the whole file; `\"host\"`: pinned host "                             \
      "memory), "                                                                                                                          \
      "`code`, `text`")                                                                                                                    \
    X(ARRAY, "missing", put_notes(json, key, it, VRAM_NOTE_MISSING), ALWAYS, "the same for information that the recording lacks")          \
    X(ARRAY, "advice", put_advice(json, key, it), ALWAYS, "the same for wasted memory, whether or not a request failed")

static void put_report(struct vr_json *json, const struct vram_report *it, const struct vram_report_source *reader) {
    static const struct vram_report_source unnamed = {0};
    const struct vram_report_source *source = reader == NULL ? &unnamed : reader;
    const bool named = reader != NULL;
    const struct vram_report_device *host = find_host(it);
    vr_json_object(json, NULL);
    FILE_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

enum vram_status vram_report_json(const struct vram_report *report, const struct vram_report_source *source, vram_write write, void *user) {
    VR_REQUIRE(report && write);
    struct vr_text text = {0};
    struct vr_json json;
    vr_json_init(&json, &text, true);
    put_report(&json, report, source);
    return vr_text_finish(&text, write, user);
}
