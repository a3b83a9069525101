// `translate`: a window of one axis on the other one.
#include "explore/query/query.h"
#include "explore/query/selection.h"
#include "explore/query/window.h"

// The position on the axis of time of a position among the events; between two events, in proportion.
static double time_of(const struct vr_window *time, size_t events, double position) {
    if (position <= 0) return 0;
    if (position >= (double)events) return vr_window_position(time, events - 1) + 1;
    const size_t event = (size_t)position;
    const double at = vr_window_position(time, event), next = event + 1 < events ? vr_window_position(time, event + 1) : at + 1;
    return at + (next - at) * (position - (double)event);
}

enum vram_status vr_query_translate(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    struct vr_window window;
    VR_TRY(vr_select_device(query, &recording, &device));
    VR_TRY(vr_select_window(query, device, &window));
    double from = window.from, to = window.to;
    if (window.by_time) {
        from = (double)vr_window_event(&window, device, window.from);
        to = (double)vr_window_event(&window, device, window.to);
    } else if (vr_explored_has_times(device)) {
        struct vr_window time = {.by_time = true};
        VR_TRY(vr_explored_times(device, &time.time_us));
        from = time_of(&time, device->view->history->count, window.from);
        to = time_of(&time, device->view->history->count, window.to);
    }
    vr_json_double(&query->answer->json, "from", from);
    vr_json_double(&query->answer->json, "to", to > from ? to : from + 1);
    return VRAM_OK;
}
