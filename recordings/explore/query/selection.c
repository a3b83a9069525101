// Selects what the parameters of a query name.
#include "explore/query/selection.h"

#include "analyze/device_view.h"

enum vram_status vr_select_recording(const struct vr_query *query, struct vr_explored_recording **recording) {
    int64_t index;
    VR_TRY(vr_parameter_whole(query->parameters, "rec", 0, (int64_t)query->explorer->count - 1, 0, &index));
    if (query->explorer->count == 0) return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "no recording is open");
    *recording = &query->explorer->recordings[index];
    return VRAM_OK;
}

enum vram_status vr_explored_worst(struct vr_explored_recording *recording, size_t *index) {
    enum vr_choice why;
    if (!recording->has_worst) VR_TRY(vr_views_in_trouble(&recording->views, &recording->worst, &why));
    recording->has_worst = true;
    *index = recording->worst;
    return VRAM_OK;
}

enum vram_status vr_select_device(const struct vr_query *query, struct vr_explored_recording **recording,
                                  struct vr_explored_device **device) {
    struct vr_explored_recording *explored = NULL;
    VR_TRY(vr_select_recording(query, &explored));
    if (explored->views.count == 0)
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no events and no segments");
    int64_t ordinal;
    VR_TRY(vr_parameter_whole(query->parameters, "device", 0, UINT32_MAX, -1, &ordinal));
    size_t found = 0;
    if (ordinal < 0) VR_TRY(vr_explored_worst(explored, &found));
    while (ordinal >= 0 && found < explored->views.count && explored->views.view[found].device != ordinal) found++;
    if (found == explored->views.count)
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no device %lld", (long long)ordinal);
    *recording = explored;
    *device = &explored->devices[found];
    return VRAM_OK;
}

enum vram_status vr_select_lifetime_kind(const struct vr_query *query, enum vr_lifetime_kind *kind) {
    static const char *const words[] = {"allocated", "active", NULL};
    size_t index = VR_LIFETIME_ALLOCATED;
    VR_TRY(vr_parameter_word(query->parameters, "notion", words, VR_LIFETIME_ALLOCATED, &index));
    *kind = (enum vr_lifetime_kind)index;
    return VRAM_OK;
}

enum vram_status vr_select_lifetimes(const struct vr_query *query, struct vr_selection *selection) {
    struct vr_selection made = {.recording = NULL};
    enum vr_lifetime_kind kind = VR_LIFETIME_ALLOCATED;
    VR_TRY(vr_select_device(query, &made.recording, &made.device));
    VR_TRY(vr_select_lifetime_kind(query, &kind));
    VR_TRY(vr_explored_lifetimes(made.device, kind, &made.lifetimes));
    *selection = made;
    return VRAM_OK;
}

enum vram_status vr_select_roles(struct vr_explored_device *device, const struct vr_lifetimes *lifetimes, size_t by,
                                 struct vr_roles **roles) {
    *roles = NULL;
    if (by != VR_GROUP_ROLE && by != VR_GROUP_MODULE) return VRAM_OK;
    for (size_t kind = 0; kind < VR_COUNT_OF(device->lifetimes); kind++) {
        if (lifetimes == &device->lifetimes[kind]) return vr_explored_roles(device, (enum vr_lifetime_kind)kind, roles);
    }
    return VRAM_OK;
}

enum vram_status vr_select_grouping(const struct vr_query *query, const struct vr_selection *selection, struct vr_grouping *grouping) {
    size_t by = VR_GROUP_SITE;
    const struct vr_segment_lives *segments = NULL;
    VR_TRY(vr_parameter_word(query->parameters, "by", vr_grouping_words, VR_GROUP_SITE, &by));
    if (by == VR_GROUP_POOL || by == VR_GROUP_STREAM) VR_TRY(vr_explored_segments(selection->device, &segments));
    struct vr_roles *roles = NULL;
    VR_TRY(vr_select_roles(selection->device, selection->lifetimes, by, &roles));
    const struct vr_grouped grouped = {.view = selection->device->view,
                                       .lifetimes = selection->lifetimes,
                                       .sites = &selection->recording->sites,
                                       .segments = segments,
                                       .roles = roles};
    return vr_grouping_init(grouping, (enum vr_group_by)by, &grouped, vr_parameter_text(query->parameters, "regex"), query->error);
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
