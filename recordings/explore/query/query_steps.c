// Answers queries about steps of a training loop: `steps`, `leaks`, `churn` and `ranks`.
#include "explore/query/step_search.h"
#include "model/recording.h"
#include "present/shared_texts.h"

// ---- `steps`: where steps begin, their peaks, and the curve by step, so that the curves of two recordings of a loop can be overlaid.

#include "explore/query/selection.h"
#include "explore/query/step_search.h"
#include "model/recording.h"

enum { MOST_STEPS = 4096, MOST_PIXELS = 16384 };

struct curve_by_step {
    const struct vr_curve *curve;
    const struct vr_steps *steps;
    size_t events;
};

// Returns the event at a position: step i (from 0) covers [i, i + 1), whatever its length; events before the first step cover [-1, 0).
static double event_at_position(const struct curve_by_step *by, double position) {
    const double last = (double)by->steps->count;
    if (position <= -1) return 0;
    if (position >= last) return (double)by->events;
    const double step = position < 0 ? -1 : (double)(size_t)position;
    const double begin = step < 0 ? 0 : (double)by->steps->first[(size_t)step];
    const double end = step + 1 < last ? (double)by->steps->first[(size_t)(step + 1)] : (double)by->events;
    return begin + (position - step) * (end - begin);
}

// Adds one pixel, as in `curve`: the extremes of the value before its events and the values after each of them.
static void put_pixel(struct vr_answer *answer, const struct curve_by_step *by, const size_t columns[2], size_t first, size_t end) {
    int64_t low, high;
    vr_curve_extremes(by->curve, first, end, &low, &high);
    vr_answer_f64(answer, columns[0], (double)low);
    vr_answer_f64(answer, columns[1], (double)high);
}

static enum vram_status put_curve(const struct vr_query *query, const struct curve_by_step *by, int64_t pixels) {
    double from = 0, to = 0;
    VR_TRY(vr_parameter_number(query->parameters, "from", 0, &from));
    VR_TRY(vr_parameter_number(query->parameters, "to", (double)by->steps->count, &to));
    if (to <= from) return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "'to' must be greater than 'from'");
    const size_t columns[2] = {vr_answer_column(query->answer, "low", VR_F64), vr_answer_column(query->answer, "high", VR_F64)};
    size_t first = (size_t)event_at_position(by, from);
    for (int64_t p = 0; p < pixels; p++) {
        const size_t end = (size_t)event_at_position(by, from + (to - from) * (double)(p + 1) / (double)pixels);
        put_pixel(query->answer, by, columns, first, end);
        first = end;
    }
    return VRAM_OK;
}

static enum vram_status put_step_rows(const struct vr_query *query, struct vr_explored_device *device, enum vr_lifetime_kind kind,
                                      const struct vr_steps *steps) {
    struct vr_answer *answer = query->answer;
    const size_t event = vr_answer_column(answer, "step_event", VR_F64), peak = vr_answer_column(answer, "step_peak", VR_F64);
    const size_t peak_event = vr_answer_column(answer, "step_peak_event", VR_F64);
    for (size_t i = 0; i < steps->count && i < MOST_STEPS; i++) {
        int64_t at = 0, bytes = 0;
        VR_TRY(vr_step_peak(device, kind, steps, i, &at, &bytes));
        vr_answer_f64(answer, event, (double)steps->first[i]);
        vr_answer_f64(answer, peak, (double)bytes);
        vr_answer_f64(answer, peak_event, (double)at);
    }
    return VRAM_OK;
}

enum vram_status vr_query_steps(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    enum vr_lifetime_kind kind = VR_LIFETIME_ALLOCATED;
    struct curve_by_step by = {.curve = NULL};
    int64_t pixels = 0;
    double share = 0;
    VR_TRY(vr_select_device(query, &recording, &device));
    VR_TRY(vr_select_lifetime_kind(query, &kind));
    VR_TRY(vr_parameter_whole(query->parameters, "pixels", 1, MOST_PIXELS, 0, &pixels));
    VR_TRY(vr_step_search_steps(query, device, SIZE_MAX, &share, &by.steps));
    VR_TRY(vr_explored_curve(device, (enum vr_curve_kind)kind, &by.curve));
    by.events = device->view->history->count;
    struct vr_json *json = &query->answer->json;
    vr_json_string(json, "source", vr_step_source_word(by.steps->source));
    vr_json_bool(json, "sure", !by.steps->unsure);
    if (by.steps->name != 0) vr_json_string(json, "step_name", vr_model_string(vr_recording_model(recording->recording), by.steps->name));
    vr_json_u64(json, "steps", by.steps->count);
    VR_TRY(put_step_rows(query, device, kind, by.steps));
    return pixels == 0 || by.steps->count == 0 ? VRAM_OK : put_curve(query, &by, pixels);
}

// ---- `leaks`: what accumulates or grows from step to step. `churn`: what is made and freed within every step.

enum { MOST_STEP_EVENTS = 4096 };

static void put_leak_steps(const struct vr_query *query, const struct vr_pattern_search *search) {
    struct vr_json *json = &query->answer->json;
    const struct vr_steps *steps = &search->steps;
    const struct vr_model *model = vr_recording_model(search->selection.recording->recording);
    struct vr_text words = {0};
    vr_leak_steps_text(model, steps, &words);
    vr_json_string(json, "steps_text", vr_text_string(&words));
    vr_text_release(&words);
    vr_json_string(json, "source", vr_step_source_word(steps->source));
    vr_json_bool(json, "sure", !steps->unsure);
    if (steps->name != 0) vr_json_string(json, "step_name", vr_model_string(model, steps->name));
    vr_json_u64(json, "steps", steps->count);
    const size_t column = vr_answer_column(query->answer, "step_event", VR_F64);
    for (size_t i = 0; i < steps->count && i < MOST_STEP_EVENTS; i++) vr_answer_f64(query->answer, column, (double)steps->first[i]);
}

static enum vram_status put_growth(const struct vr_query *query, const struct vr_pattern_search *search) {
    struct vr_json *json = &query->answer->json;
    const struct vr_growth *growth = vr_growth_search_found(search->growth);
    enum vram_status status = VRAM_OK;
    const size_t event = vr_answer_column(query->answer, "point_event", VR_F64), total = vr_answer_column(query->answer, "total", VR_F64);
    const size_t bytes = vr_answer_column(query->answer, "bytes", VR_F64);
    for (size_t p = 0; p < growth->point_count; p++) {
        vr_answer_f64(query->answer, event, (double)growth->point[p]);
        vr_answer_f64(query->answer, total, (double)growth->total[p]);
    }
    vr_leak_answer_json(vr_recording_model(search->selection.recording->recording), &search->steps, &search->finding, json);
    vr_json_u64(json, "leaks", search->finding.leaks);
    vr_json_double(json, "bytes_per_step", search->finding.bytes_per_step);
    vr_json_string(json, "by", vr_grouping_words[search->grouping.by]);
    vr_json_array(json, "groups");
    for (size_t i = 0; i < search->finding.shown && status == VRAM_OK; i++) {
        const struct vr_grower *grower = &growth->grower[i];
        vr_json_object(json, NULL);
        status = vr_group_name_json(&search->grouping, grower->key, json);
        vr_json_string(json, "verdict", vr_verdict_word(grower->verdict));
        vr_json_double(json, "bytes_per_step", grower->bytes_per_step);
        vr_json_double(json, "objects_per_step", grower->objects_per_step);
        vr_json_u64(json, "grew_points", grower->grew_points);
        vr_json_u64(json, "course_points", grower->course_points);
        vr_json_u64(json, "first_bytes", grower->first_bytes);
        vr_json_u64(json, "last_bytes", grower->last_bytes);
        vr_json_u64(json, "row", grower->row);
        vr_json_u64(json, "stack", search->selection.lifetimes->stack[grower->row]);
        vr_json_object_end(json);
        for (size_t p = 0; p < growth->point_count; p++) vr_answer_f64(query->answer, bytes, (double)grower->bytes[p]);
    }
    vr_json_array_end(json);
    return status;
}

static enum vram_status put_churn(const struct vr_query *query, const struct vr_pattern_search *search, size_t top) {
    struct vr_json *json = &query->answer->json;
    const struct vr_churn *churn = vr_churn_search_found(search->churn);
    enum vram_status status = VRAM_OK;
    vr_json_u64(json, "bytes", churn->bytes);
    vr_json_u64(json, "allocations", churn->allocations);
    vr_json_u64(json, "distinct", churn->count);
    vr_json_array(json, "groups");
    for (size_t i = 0; i < churn->count && i < top && status == VRAM_OK; i++) {
        const struct vr_group *group = &churn->group[i];
        vr_json_object(json, NULL);
        status = vr_group_name_json(&search->grouping, group->key, json);
        vr_json_double(json, "bytes_per_step", (double)group->bytes / (double)churn->steps);
        vr_json_double(json, "allocations_per_step", (double)group->count / (double)churn->steps);
        vr_json_u64(json, "largest_bytes", group->largest_bytes);
        vr_json_u64(json, "row", group->largest_row);
        vr_json_u64(json, "stack", search->selection.lifetimes->stack[group->largest_row]);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    return status;
}

enum vram_status vr_query_leaks(const struct vr_query *query) {
    const struct vr_pattern_search *search = NULL;
    double share = 0;
    VR_TRY(vr_step_search_pattern(query, VR_PATTERN_GROWTH, SIZE_MAX, &share, &search));
    put_leak_steps(query, search);
    return put_growth(query, search);
}

enum vram_status vr_query_churn(const struct vr_query *query) {
    const struct vr_pattern_search *search = NULL;
    double share = 0;
    int64_t top = 0;
    VR_TRY(vr_parameter_whole(query->parameters, "top", 1, 100000, 50, &top));
    VR_TRY(vr_step_search_pattern(query, VR_PATTERN_CHURN, SIZE_MAX, &share, &search));
    put_leak_steps(query, search);
    return put_churn(query, search, (size_t)top);
}

// ---- `ranks`: the totals of every open recording, and, if it has steps, the peak of each step.

enum { MOST_RANK_STEPS = 512 };

static uint64_t count_ooms(const struct vr_history *history) {
    uint64_t ooms = 0;
    for (size_t i = 0; i < history->count; i++) ooms += history->action[i] == VR_ACTION_OOM;
    return ooms;
}

// Adds the peaks of the steps in order; the last step ends with the history.
static enum vram_status put_rank_steps(const struct vr_query *query, struct vr_explored_device *device, const struct vr_curve *curve,
                                       size_t column) {
    const size_t events = device->view->history->count;
    const struct vr_steps *steps = NULL;
    double share = 0;
    VR_TRY(vr_step_search_steps(query, device, SIZE_MAX, &share, &steps));
    const size_t count = steps->count < MOST_RANK_STEPS ? steps->count : MOST_RANK_STEPS;
    vr_json_u64(&query->answer->json, "steps", count);
    for (size_t i = 0; i < count; i++) {
        int64_t low = 0, high = 0;
        vr_curve_range(curve, steps->first[i], i + 1 < steps->count ? steps->first[i + 1] : events, &low, &high);
        vr_answer_f64(query->answer, column, (double)high);
    }
    return VRAM_OK;
}

static enum vram_status put_rank_device(const struct vr_query *query, size_t recording, struct vr_explored_device *device, size_t column) {
    struct vr_json *json = &query->answer->json;
    const struct vr_history *history = device->view->history;
    const struct vr_lifetimes *lifetimes = NULL;
    const struct vr_curve *allocated = NULL, *reserved = NULL;
    int64_t low = 0, high = 0;
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ALLOCATED, &lifetimes));
    VR_TRY(vr_explored_curve(device, VR_CURVE_ALLOCATED, &allocated));
    VR_TRY(vr_explored_curve(device, VR_CURVE_RESERVED, &reserved));
    if (history->count != 0) vr_curve_range(reserved, 0, history->count, &low, &high);
    const int64_t start = vr_curve_at(reserved, -1);
    vr_json_object(json, NULL);
    vr_json_u64(json, "rec", recording);
    vr_json_string(json, "name", query->explorer->recordings[recording].name);
    vr_json_u64(json, "device", device->view->device);
    vr_json_u64(json, "events", history->count);
    vr_json_u64(json, "peak_bytes", lifetimes->peak.bytes);
    vr_json_i64(json, "peak_event", lifetimes->peak_event);
    vr_json_i64(json, "reserved_peak_bytes", start > high ? start : high);
    vr_json_u64(json, "ooms", count_ooms(history));
    const enum vram_status status = put_rank_steps(query, device, allocated, column);
    vr_json_object_end(json);
    return status;
}

enum vram_status vr_query_ranks(const struct vr_query *query) {
    const size_t column = vr_answer_column(query->answer, "step_peak", VR_F64);
    vr_json_array(&query->answer->json, "ranks");
    for (size_t i = 0; i < query->explorer->count; i++) {
        struct vr_explored_recording *recording = &query->explorer->recordings[i];
        for (size_t d = 0; d < recording->views.count; d++) VR_TRY(put_rank_device(query, i, &recording->devices[d], column));
    }
    vr_json_array_end(&query->answer->json);
    return VRAM_OK;
}
