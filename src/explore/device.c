// What is worked out about one device, each part when it is first asked for.
#include "explore/chosen.h"
#include "explore/explorer.h"
#include "explore/hunt.h"
#include "explore/labels.h"
#include "explore/moment.h"
#include "replay/cure.h"

void vr_seen_release(struct vr_seen_device *device) {
    for (size_t n = 0; n < VR_COUNT_OF(device->lifetimes); n++) {
        if (device->has_lifetimes[n]) vr_lifetimes_release(&device->lifetimes[n]);
        if (device->has_rows[n]) vr_event_rows_release(&device->rows[n]);
        vr_live_destroy(device->live[n]);
    }
    vr_address_ids_release(&device->addresses);
    for (size_t k = 0; k < VR_COUNT_OF(device->curve); k++) vr_curve_destroy(device->curve[k]);
    vr_seen_release_lots(device);
    vr_moments_destroy(device->moments);
    free(device->versions);
    vr_segment_labels_destroy(device->segment_labels);
    vr_chosen_destroy(device->chosen);
    vr_hunts_destroy(device->hunts);
    vr_cure_end(device->cure);
    free(device->own_time_us);
}

enum vram_status vr_seen_lifetimes(struct vr_seen_device *device, enum vr_notion notion, const struct vr_lifetimes **lifetimes) {
    if (!device->has_lifetimes[notion]) {
        struct vr_lifetimes made;
        if (device->addresses.of_event == NULL) VR_TRY(vr_address_ids_build(device->view, &device->addresses));
        VR_TRY(vr_lifetimes_build_by(device->view, &device->addresses, notion, NULL, 0, &made));
        const enum vram_status status = notion == VR_ALLOCATED ? vr_versions_count(&device->addresses, &made, &device->versions) : VRAM_OK;
        if (status != VRAM_OK) {
            vr_lifetimes_release(&made);
            return status;
        }
        device->lifetimes[notion] = made;
        device->has_lifetimes[notion] = true;
        if (device->has_lifetimes[!notion]) vr_address_ids_release(&device->addresses);
    }
    *lifetimes = &device->lifetimes[notion];
    return VRAM_OK;
}

enum vram_status vr_seen_rows(struct vr_seen_device *device, enum vr_notion notion, const struct vr_event_rows **rows) {
    const struct vr_lifetimes *lifetimes = NULL;
    VR_TRY(vr_seen_lifetimes(device, notion, &lifetimes));
    if (!device->has_rows[notion]) {
        VR_TRY(vr_event_rows_build(device->view, lifetimes, &device->rows[notion]));
        device->has_rows[notion] = true;
    }
    *rows = &device->rows[notion];
    return VRAM_OK;
}

enum vram_status vr_seen_live(struct vr_seen_device *device, enum vr_notion notion, int64_t event, uint32_t **rows, size_t *count) {
    const struct vr_lifetimes *lifetimes = NULL;
    VR_TRY(vr_seen_lifetimes(device, notion, &lifetimes));
    if (device->live[notion] == NULL) VR_TRY(vr_live_create(device->view, lifetimes, &device->live[notion]));
    return vr_live_at(device->live[notion], event, rows, count);
}

enum vram_status vr_seen_curve(struct vr_seen_device *device, enum vr_curve_kind kind, const struct vr_curve **curve) {
    if (device->curve[kind] == NULL) {
        const struct vr_lifetimes *lifetimes = NULL;
        const struct vr_event_rows *rows = NULL;
        if (kind != VR_CURVE_RESERVED) {
            VR_TRY(vr_seen_lifetimes(device, (enum vr_notion)kind, &lifetimes));
            VR_TRY(vr_seen_rows(device, (enum vr_notion)kind, &rows));
        }
        VR_TRY(vr_curve_create(device->view, lifetimes, rows, &device->curve[kind]));
    }
    *curve = device->curve[kind];
    return VRAM_OK;
}

bool vr_seen_has_times(const struct vr_seen_device *device) {
    const struct vr_history *history = device->view->history;
    return history->count != 0 && (history->has[0] & VR_HAS_TIME) != 0;
}

static bool times_rise(const struct vr_history *history) {
    for (size_t i = 0; i < history->count; i++) {
        if ((history->has[i] & VR_HAS_TIME) == 0 || (i != 0 && history->time_us[i] < history->time_us[i - 1])) return false;
    }
    return true;
}

enum vram_status vr_seen_times(struct vr_seen_device *device, const int64_t **time_us) {
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

size_t vr_window_event(const struct vr_window *window, const struct vr_seen_device *device, double position) {
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

enum vram_status vr_ask_window(const struct vr_ask *ask, struct vr_seen_device *device, struct vr_window *window) {
    static const char *const axes[] = {"event", "time", NULL};
    const size_t events = device->view->history->count;
    size_t axis = 0;
    VR_TRY(vr_question_word(ask->question, "axis", axes, 0, &axis));
    *window = (struct vr_window){.by_time = axis == 1 && vr_seen_has_times(device)};
    if (window->by_time) VR_TRY(vr_seen_times(device, &window->time_us));
    const double length = window->by_time ? vr_window_position(window, events - 1) + 1 : (double)events;
    VR_TRY(vr_question_number(ask->question, "from", 0, &window->from));
    VR_TRY(vr_question_number(ask->question, "to", length == 0 ? 1 : length, &window->to));
    if (window->to <= window->from) return vr_fail(ask->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "'to' must be greater than 'from'");
    window->first = vr_window_event(window, device, window->from);
    window->end = vr_window_event(window, device, window->to);
    if (!window->by_time && window->first > 0 && (double)window->first > window->from) window->first--;
    return VRAM_OK;
}
