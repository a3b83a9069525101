// `notes`: remarks about the recording itself, the same as the report's.
#include "analyze/generation.h"
#include "analyze/report_parts.h"
#include "explore/query/query.h"
#include "explore/query/selection.h"
#include "model/recording.h"
#include "present/notes.h"

// Of one kind of lifetime as much as the remarks look at.
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
