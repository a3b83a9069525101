// `list`: what is open, and what each device of it has.
#include "explore/query/query.h"
#include "model/recording.h"

// The most that was reserved, before the history and after its events.
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
