// What is worked out about one device, each part when it is first asked for.
#include "explore/query/event_selection.h"
#include "explore/explored/explored.h"
#include "explore/query/step_search.h"
#include "explore/tables/labels.h"
#include "explore/explored/moment.h"
#include "replay/cure.h"

void vr_explored_release(struct vr_explored_device *device) {
    for (size_t n = 0; n < VR_COUNT_OF(device->lifetimes); n++) {
        if (device->has_lifetimes[n]) vr_lifetimes_release(&device->lifetimes[n]);
        if (device->has_rows[n]) vr_event_rows_release(&device->rows[n]);
        vr_live_rows_destroy(device->live[n]);
    }
    vr_address_ids_release(&device->addresses);
    for (size_t k = 0; k < VR_COUNT_OF(device->curve); k++) vr_curve_destroy(device->curve[k]);
    vr_explored_release_shapes(device);
    vr_moments_destroy(device->moments);
    free(device->versions);
    vr_segment_labels_destroy(device->segment_labels);
    vr_event_selections_destroy(device->event_selections);
    vr_step_searches_destroy(device->step_searches);
    vr_cure_end(device->cure);
    free(device->own_time_us);
}

enum vram_status vr_explored_lifetimes(struct vr_explored_device *device, enum vr_lifetime_kind kind,
                                       const struct vr_lifetimes **lifetimes) {
    if (!device->has_lifetimes[kind]) {
        struct vr_lifetimes made;
        if (device->addresses.of_event == NULL) VR_TRY(vr_address_ids_build(device->view, &device->addresses));
        VR_TRY(vr_lifetimes_build_by(device->view, &device->addresses, kind, NULL, 0, &made));
        const enum vram_status status =
            kind == VR_LIFETIME_ALLOCATED ? vr_versions_count(&device->addresses, &made, &device->versions) : VRAM_OK;
        if (status != VRAM_OK) {
            vr_lifetimes_release(&made);
            return status;
        }
        device->lifetimes[kind] = made;
        device->has_lifetimes[kind] = true;
        if (device->has_lifetimes[!kind]) vr_address_ids_release(&device->addresses);
    }
    *lifetimes = &device->lifetimes[kind];
    return VRAM_OK;
}

enum vram_status vr_explored_rows(struct vr_explored_device *device, enum vr_lifetime_kind kind, const struct vr_event_rows **rows) {
    const struct vr_lifetimes *lifetimes = NULL;
    VR_TRY(vr_explored_lifetimes(device, kind, &lifetimes));
    if (!device->has_rows[kind]) {
        VR_TRY(vr_event_rows_build(device->view, lifetimes, &device->rows[kind]));
        device->has_rows[kind] = true;
    }
    *rows = &device->rows[kind];
    return VRAM_OK;
}

enum vram_status vr_explored_live(struct vr_explored_device *device, enum vr_lifetime_kind kind, int64_t event, uint32_t **rows,
                                  size_t *count) {
    const struct vr_lifetimes *lifetimes = NULL;
    VR_TRY(vr_explored_lifetimes(device, kind, &lifetimes));
    if (device->live[kind] == NULL) VR_TRY(vr_live_rows_create(device->view, lifetimes, &device->live[kind]));
    return vr_live_rows_at(device->live[kind], event, rows, count);
}

enum vram_status vr_explored_curve(struct vr_explored_device *device, enum vr_curve_kind kind, const struct vr_curve **curve) {
    if (device->curve[kind] == NULL) {
        const struct vr_lifetimes *lifetimes = NULL;
        const struct vr_event_rows *rows = NULL;
        if (kind != VR_CURVE_RESERVED) {
            VR_TRY(vr_explored_lifetimes(device, (enum vr_lifetime_kind)kind, &lifetimes));
            VR_TRY(vr_explored_rows(device, (enum vr_lifetime_kind)kind, &rows));
        }
        VR_TRY(vr_curve_create(device->view, lifetimes, rows, &device->curve[kind]));
    }
    *curve = device->curve[kind];
    return VRAM_OK;
}

bool vr_explored_has_times(const struct vr_explored_device *device) {
    const struct vr_history *history = device->view->history;
    return history->count != 0 && (history->has[0] & VR_HAS_TIME) != 0;
}

static bool times_rise(const struct vr_history *history) {
    for (size_t i = 0; i < history->count; i++) {
        if ((history->has[i] & VR_HAS_TIME) == 0 || (i != 0 && history->time_us[i] < history->time_us[i - 1])) return false;
    }
    return true;
}

enum vram_status vr_explored_times(struct vr_explored_device *device, const int64_t **time_us) {
    const struct vr_history *history = device->view->history;
    if (device->time_us == NULL && times_rise(history)) device->time_us = history->time_us;
    if (device->time_us == NULL) {
        device->own_time_us = malloc((history->count + 1) * sizeof *device->own_time_us);
        if (device->own_time_us == NULL) return VRAM_NO_HOST_MEMORY;
        int64_t latest = history->count == 0 ? 0 : history->time_us[0];
        for (size_t i = 0; i < history->count; i++) {
            if ((history->has[i] & VR_HAS_TIME) != 0 && history->time_us[i] > latest) latest = history->time_us[i];
            device->own_time_us[i] = latest;
        }
        device->time_us = device->own_time_us;
    }
    *time_us = device->time_us;
    return VRAM_OK;
}

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
