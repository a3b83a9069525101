// `ranks`: what every recording that is open came to, and, where they have steps, the highest total of each step.
#include "explore/query/step_search.h"

enum { MOST_STEPS = 512 };

static uint64_t count_ooms(const struct vr_history *history) {
    uint64_t ooms = 0;
    for (size_t i = 0; i < history->count; i++) ooms += history->action[i] == VR_ACTION_OOM;
    return ooms;
}

// Highest totals of the steps, one after the other; the last step ends with the history.
static enum vram_status put_rank_steps(const struct vr_query *query, struct vr_explored_device *device, const struct vr_curve *curve,
                                       size_t column) {
    const size_t events = device->view->history->count;
    const struct vr_steps *steps = NULL;
    double share = 0;
    VR_TRY(vr_step_search_steps(query, device, SIZE_MAX, &share, &steps));
    const size_t count = steps->count < MOST_STEPS ? steps->count : MOST_STEPS;
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
