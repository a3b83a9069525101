// `steps`: where steps begin, how high each one rose, and the curve drawn step by step, so that two recordings of one loop lie over each

// other.
#include "explore/query/selection.h"
#include "explore/query/step_search.h"
#include "model/recording.h"

enum { MOST_STEPS = 4096, MOST_PIXELS = 16384 };

struct curve_by_step {
    const struct vr_curve *curve;
    const struct vr_steps *steps;
    size_t events;
};

// The event at a position: step i (from 0) covers [i, i + 1), whatever its length; what comes before the first step covers [-1, 0).
static double event_at_position(const struct curve_by_step *by, double position) {
    const double last = (double)by->steps->count;
    if (position <= -1) return 0;
    if (position >= last) return (double)by->events;
    const double step = position < 0 ? -1 : (double)(size_t)position;
    const double begin = step < 0 ? 0 : (double)by->steps->first[(size_t)step];
    const double end = step + 1 < last ? (double)by->steps->first[(size_t)(step + 1)] : (double)by->events;
    return begin + (position - step) * (end - begin);
}

// Like the pixels of `curve`: from the value that one begins with through all that its events bring.
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
