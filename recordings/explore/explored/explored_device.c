// What is worked out about one device, each part when it is first asked for.
#include "explore/explored/explored.h"
#include "explore/explored/moment.h"
#include "explore/query/event_selection.h"
#include "explore/query/step_search.h"
#include "explore/tables/labels.h"
#include "replay/cure.h"

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
        // Numbered once for both; nobody else needs a number per event.
        if (device->has_lifetimes[!kind]) vr_address_ids_release(&device->addresses);
    }
    *lifetimes = &device->lifetimes[kind];
    return VRAM_OK;
}

enum vram_status vr_explored_roles(struct vr_explored_device *device, enum vr_lifetime_kind kind, struct vr_roles **roles) {
    const struct vr_lifetimes *lifetimes = NULL;
    VR_TRY(vr_explored_lifetimes(device, kind, &lifetimes));
    if (!device->has_roles[kind]) {
        VR_TRY(vr_roles_find(device->view, lifetimes, NULL, &device->roles[kind]));
        device->has_roles[kind] = true;
    }
    *roles = &device->roles[kind];
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
    return history->count != 0 && (vr_entry_has(history, 0) & VR_HAS_TIME) != 0;
}

static bool times_rise(const struct vr_history *history) {
    for (size_t i = 0; i < history->count; i++) {
        if ((vr_entry_has(history, i) & VR_HAS_TIME) == 0 || (i != 0 && history->time_us[i] < history->time_us[i - 1])) return false;
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
            if ((vr_entry_has(history, i) & VR_HAS_TIME) != 0 && history->time_us[i] > latest) latest = history->time_us[i];
            device->own_time_us[i] = latest;
        }
        device->time_us = device->own_time_us;
    }
    *time_us = device->time_us;
    return VRAM_OK;
}

enum vram_status vr_explored_versions(struct vr_explored_device *device, const uint32_t **versions) {
    const struct vr_lifetimes *allocated = NULL;
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ALLOCATED, &allocated));
    *versions = device->versions;
    return VRAM_OK;
}

enum vram_status vr_explored_allocation_of(struct vr_explored_device *device, size_t event, size_t *row) {
    const struct vr_lifetimes *allocated = NULL, *active = NULL;
    const struct vr_event_rows *rows = NULL;
    const bool completes = device->view->history->action[event] == VR_ACTION_FREE_COMPLETED;
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ALLOCATED, &allocated));
    VR_TRY(vr_explored_rows(device, completes ? VR_LIFETIME_ACTIVE : VR_LIFETIME_ALLOCATED, &rows));
    *row = SIZE_MAX;
    if (rows->row[event] == 0) return VRAM_OK;
    *row = rows->row[event] - 1;
    if (!completes) return VRAM_OK;
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ACTIVE, &active));
    *row = vr_other_row(active, allocated, *row);
    return VRAM_OK;
}
