// Computes the facts of a report: one view per device, and the recording's own properties.
#include "analyze/report_parts.h"

#include "analyze/demand.h"
#include "analyze/slow_leaks.h"
#include "model/platform.h"
#include "model/recording.h"

// ---- The generation of a recording's file, by its keys.

static uint32_t any_event_has(const struct vr_model *model) {
    uint32_t has = 0;
    for (size_t d = 0; d < model->history_count; d++) {
        const struct vr_history *history = &model->histories[d];
        // The events store keys as a difference from the common value. If a key is in that value, some event has it unless all differ
        // there.
        const bool alike = vr_entries_alike(history);
        uint32_t apart = 0, always = alike ? 0 : UINT32_MAX;
        for (size_t i = 0; i < history->count && !alike; i++) {
            apart |= history->has.apart[i];
            always &= history->has.apart[i];
        }
        if (history->count != 0) has |= (history->has.common & ~always) | (~history->has.common & apart);
    }
    return has;
}

static bool has_top_level_key(const struct vr_model *model, const char *key) {
    for (size_t i = 0; i < model->top_level_key_count; i++) {
        if (strcmp(vr_model_string(model, model->top_level_keys[i]), key) == 0) return true;
    }
    return false;
}

// Returns whether some segment has a kind; segments invented for live blocks have none.
static bool any_segment_known(const struct vr_model *model) {
    for (size_t i = 0; i < model->segments.count; i++) {
        if (model->segments.kind[i] != VR_KIND_UNKNOWN) return true;
    }
    return false;
}

void vr_report_generation(const struct vr_model *model, const char **generation, const char **era) {
    uint32_t picture = 0;
    for (size_t i = 0; i < model->segments.count; i++) picture |= model->segments.has[i];
    for (size_t i = 0; i < model->blocks.count; i++) picture |= model->blocks.has[i];
    const uint32_t events = any_event_has(model);
    const struct {
        bool matches;
        const char *generation, *era;
    } rows[] = {
        {model->form == VR_FORM_SEGMENT_LIST, "list", ""},
        // PyTorch's snapshots got both keys at once; logs and traces of other tools are read with the first one only.
        {has_top_level_key(model, "external_annotations") && !has_top_level_key(model, "allocator_settings") && !any_segment_known(model),
         VR_EVENTS_ALONE, ""},
        {(events & VR_HAS_POOL_ID) != 0, "G7", "about PyTorch 2.12+"},
        {(events & VR_HAS_USER_METADATA) != 0, "G6", "about PyTorch 2.10 to 2.11"},
        {(events & VR_HAS_COMPILE_CONTEXT) != 0, "G5", "about PyTorch 2.7 to 2.9"},
        {has_top_level_key(model, "external_annotations"), "G4", "about PyTorch 2.5+"},
        {has_top_level_key(model, "allocator_settings"), "G3", "about PyTorch 2.3 to 2.4"},
        {(events & VR_HAS_TIME) != 0, "G2b", "about PyTorch 2.2"},
        {(picture & VR_HAS_FRAMES) != 0, "G2", "about PyTorch 2.1+"},
        {true, "G1", "PyTorch 2.0 or older"},
    };
    size_t row = 0;
    while (!rows[row].matches) row++;
    *generation = rows[row].generation;
    // A .vram file has no snapshot keys unless it was converted from a snapshot, and a program recorded by `vram run` need not use PyTorch.
    // Neither gets an era.
    const bool own = model->form != VR_FORM_SEGMENT_LIST && model->top_level_key_count == 0;
    *era = own || vr_model_setting(model, "vram_run_process") != NULL ? "" : rows[row].era;
}

bool vr_report_has_settings(const struct vr_model *model) {
    return has_top_level_key(model, "allocator_settings") || vr_model_setting(model, "PYTORCH_CUDA_ALLOC_CONF") != NULL;
}

const char *vr_report_form(const struct vr_model *model) { return model->form == VR_FORM_SEGMENT_LIST ? "segment_list" : "dict"; }

// ---- The facts of a report: one view per device, and the recording's own properties.

#define DEFAULT_TOP 10u
#define MOST_TOP    10000u

// State needed only while the report is made.
struct report_work {
    const struct vr_model *model;
    struct vr_arena *arena;
    struct vr_sites sites;
    size_t top;
    uint64_t memory_bytes; // of each device, given by the caller
    bool plain_sites;
    struct vr_views views;
    struct vram_report_device *devices; // one per view
    struct vram_error *error;           // may be NULL
};

// For longer histories, this would take too long for a report.
enum { MOST_EVENTS_OF_A_DEMAND = 1000000 };

// If nothing failed, finds the main use at the peak, and what would lower it below the given memory, or by a tenth.
static enum vram_status demand_at_peak(struct report_work *work, const struct vr_view *view, struct vram_report_device *out) {
    const uint64_t peak = out->allocated.peak.bytes;
    const bool is_too_high = work->memory_bytes != 0 && peak > work->memory_bytes;
    if (out->is_host || peak == 0 || (!is_too_high && view->history->count > MOST_EVENTS_OF_A_DEMAND)) return VRAM_OK;
    const struct vr_demand_question question = {.view = view,
                                                .sites = &work->sites,
                                                .event = out->allocated.peak_event,
                                                .room_bytes = is_too_high ? work->memory_bytes : peak - peak / 10,
                                                .room_is_named = is_too_high,
                                                .block_bytes = peak};
    return vr_demand_find(&question, work->arena, &out->demand);
}

static enum vram_status live_facts(struct report_work *work, const struct vr_view *view, struct vram_report_device *out,
                                   struct vram_report_point *points, size_t point_count) {
    struct vr_report_lifetimes found[VR_LIFETIME_KINDS];
    const struct vr_report_lifetimes *allocated = &found[VR_LIFETIME_ALLOCATED], *active = &found[VR_LIFETIME_ACTIVE];
    uint64_t allocated_bytes[VRAM_REPORT_POINTS], active_bytes[VRAM_REPORT_POINTS];
    uint64_t *const totals[VR_LIFETIME_KINDS] = {allocated_bytes, active_bytes};
    VR_TRY(vr_report_lifetimes_find(view, work->top, totals, point_count, found));
    for (size_t p = 0; p < point_count; p++) {
        points[p].allocated_bytes = allocated_bytes[p];
        points[p].active_bytes = active_bytes[p];
    }
    enum vram_status status = vr_report_live(view, &work->sites, allocated, work->top, work->arena, &out->allocated);
    if (status == VRAM_OK) status = vr_report_live(view, &work->sites, active, work->top, work->arena, &out->active);
    if (status == VRAM_OK) status = vr_report_waiting(view, &work->sites, work->arena, out);
    if (status == VRAM_OK) status = vr_report_libraries(view, &allocated->rows, work->arena, out);
    if (status == VRAM_OK)
        status = vr_report_ooms(view, &work->sites, &allocated->rows, &active->rows, work->memory_bytes, work->arena, out);
    if (status == VRAM_OK && out->oom_count == 0) status = demand_at_peak(work, view, out);
    vr_report_lifetimes_release(found);
    return status;
}

// Reports what grows slowly in a history of at least an hour.
static enum vram_status growth_facts(struct report_work *work, const struct vr_view *view, struct vram_report_device *out) {
    struct vr_slow_leaks leaks;
    const int64_t least_us = (int64_t)VR_SLOW_LEAST_SECONDS * 1000000;
    if (!out->has_times || out->is_host || out->last_time_us < least_us || out->last_time_us - least_us < out->first_time_us)
        return VRAM_OK;
    VR_TRY(vr_slow_leaks_of_view(view, &work->sites, &leaks));
    out->slow_leaks = leaks.leaks;
    out->slow_bytes_per_hour = leaks.bytes_per_hour;
    enum vram_status status = VRAM_OK;
    if (leaks.leaks != 0) {
        const uint32_t stack = leaks.groups[0].stack;
        status = vr_sites_name(&work->sites, vr_sites_frame(&work->sites, stack), work->arena, &out->slow_site);
    }
    vr_slow_leaks_close(&leaks);
    return status;
}

static enum vram_status describe_device(struct report_work *work, const struct vr_view *view, struct vram_report_device *out) {
    out->device = view->device;
    out->is_host = vr_model_is_host(view->model, view->device);

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
    VR_TRY(growth_facts(work, view, out));
    out->timeline = points;
    out->timeline_count = point_count;
    return VRAM_OK;
}

static enum vram_status describe_devices(struct report_work *work) {
    VR_TRY(vr_views_build(work->model, &work->views, work->error));
    void *room;
    VR_TRY(vr_arena_array(work->arena, work->views.count, sizeof(struct vram_report_device), &room));
    work->devices = room;
    for (size_t d = 0; d < work->views.count; d++) VR_TRY(describe_device(work, &work->views.view[d], &work->devices[d]));
    return VRAM_OK;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static enum vram_status copy_string(const struct vr_model *model, uint32_t id, struct vr_arena *arena, const char **text) {
    return vr_arena_copy(arena, vr_model_string(model, id), vr_model_string_length(model, id), text);
}

// Reports a value of allocator_settings that is not a dictionary: tools that write recordings by hand put a string or None there.
static enum vram_status odd_settings(const struct vr_model *model, struct vr_arena *arena, struct vram_report *report) {
    for (size_t i = 0; i < model->extra_count && model->extras[i].owner == VR_OWNER_TOP; i++) {
        const struct vr_extra *extra = &model->extras[i];
        if (strcmp(vr_model_string(model, extra->key), "allocator_settings") != 0) continue;
        report->has_settings = strcmp(vr_model_string(model, extra->value), "null") != 0;
        return report->has_settings ? copy_string(model, extra->value, arena, &report->odd_settings) : VRAM_OK;
    }
    return VRAM_OK;
}

static enum vram_status describe_file(const struct vr_model *model, struct vr_arena *arena, struct vram_report *report) {
    report->form = vr_report_form(model);
    vr_report_generation(model, &report->generation, &report->era);
    report->platform = vr_platform_name(vr_platform_of(model));
    report->annotations = model->annotation_count;
    report->trace_lists = model->history_count - model->host_count;

    void *room;
    VR_TRY(vr_arena_array(arena, model->top_level_key_count, sizeof(char *), &room));
    const char **keys = room;
    for (size_t i = 0; i < model->top_level_key_count; i++) {
        VR_TRY(copy_string(model, model->top_level_keys[i], arena, &keys[i]));
    }
    report->has_settings = vr_report_has_settings(model);
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
    return odd_settings(model, arena, report);
}

static enum vram_status build_report(struct report_work *work, struct vram_report *report) {
    VR_TRY(vr_sites_init(&work->sites, work->model));
    work->sites.plain = work->plain_sites;
    VR_TRY(describe_file(work->model, work->arena, report));
    VR_TRY(describe_devices(work));
    report->devices = work->devices;
    report->device_count = work->views.count;
    return VRAM_OK;
}

enum vram_status vr_report_facts_find(const struct vram_recording *recording, const struct vram_report_options *options,
                                      struct vr_report_facts *facts, struct vram_error *error) {
    const unsigned top = options == NULL || options->top == 0 ? DEFAULT_TOP : options->top;
    struct report_work work = {.model = vr_recording_model(recording),
                               .arena = &facts->arena,
                               .top = top < MOST_TOP ? top : MOST_TOP,
                               .memory_bytes = options == NULL ? 0 : options->memory_bytes,
                               .plain_sites = options != NULL && options->plain_sites,
                               .error = error};
    const enum vram_status status = build_report(&work, &facts->report);
    vr_sites_release(&work.sites);
    vr_views_release(&work.views);
    return status;
}
