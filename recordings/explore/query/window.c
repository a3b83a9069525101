#include "explore/query/window.h"

double vr_window_position(const struct vr_window *window, size_t event) {
    return window->by_time ? (double)(window->time_us[event] - window->time_us[0]) : (double)event;
}

size_t vr_window_event(const struct vr_window *window, const struct vr_explored_device *device, double position) {
    const size_t events = device->view->history->count;
    if (!window->by_time)
        return position <= 0 ? 0 : position >= (double)events ? events : (size_t)position + (position > (double)(size_t)position);
    size_t low = 0, high = events;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (vr_window_position(window, middle) < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum vram_status vr_select_window(const struct vr_query *query, struct vr_explored_device *device, struct vr_window *window) {
    static const char *const axes[] = {"event", "time", NULL};
    const size_t events = device->view->history->count;
    size_t axis = 0;
    VR_TRY(vr_parameter_word(query->parameters, "axis", axes, 0, &axis));
    *window = (struct vr_window){.by_time = axis == 1 && vr_explored_has_times(device)};
    if (window->by_time) VR_TRY(vr_explored_times(device, &window->time_us));
    const double length = window->by_time ? vr_window_position(window, events - 1) + 1 : (double)events;
    VR_TRY(vr_parameter_number(query->parameters, "from", 0, &window->from));
    VR_TRY(vr_parameter_number(query->parameters, "to", length == 0 ? 1 : length, &window->to));
    if (window->to <= window->from) return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "'to' must be greater than 'from'");
    window->first = vr_window_event(window, device, window->from);
    window->end = vr_window_event(window, device, window->to);
    if (!window->by_time && window->first > 0 && (double)window->first > window->from) window->first--;
    return VRAM_OK;
}
