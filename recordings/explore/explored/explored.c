// Results about one device, each computed at its first use.
#include "explore/explored/explored.h"

#include "analyze/report_parts.h"
#include "explore/explored/state_at_event.h"
#include "explore/query/selection.h"
#include "explore/query/step_search.h"
#include "explore/tables/event_rows.h"
#include "explore/tables/lanes.h"
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
        // The address ids serve both kinds; nothing else needs a number per event.
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

// ---- Segments, and the tables from which shapes are picked, each computed at its first use.

void vr_explored_release_shapes(struct vr_explored_device *device) {
    if (device->has_segments) vr_segment_lives_release(&device->segments);
    vr_live_rows_destroy(device->live_segments);
    vr_lanes_destroy(device->lanes);
    for (size_t kind = 0; kind < VR_COUNT_OF(device->largest); kind++) {
        for (size_t axis = 0; axis < VR_COUNT_OF(device->largest[kind]); axis++) vr_largest_destroy(device->largest[kind][axis]);
    }
    vr_coverage_destroy(device->coverage);
    vr_segment_labels_destroy(device->segment_labels);
}

enum vram_status vr_explored_segments(struct vr_explored_device *device, const struct vr_segment_lives **segments) {
    if (!device->has_segments) {
        VR_TRY(vr_segment_lives_build(device->view, &device->segments));
        device->has_segments = true;
    }
    *segments = &device->segments;
    return VRAM_OK;
}

enum vram_status vr_explored_shape_rows(struct vr_explored_device *device, enum vr_shape_kind kind, const struct vr_lifetimes **lifetimes) {
    if (kind != VR_SHAPES_SEGMENTS) return vr_explored_lifetimes(device, (enum vr_lifetime_kind)kind, lifetimes);
    const struct vr_segment_lives *segments = NULL;
    VR_TRY(vr_explored_segments(device, &segments));
    *lifetimes = &segments->lifetimes;
    return VRAM_OK;
}

enum vram_status vr_explored_shapes_live(struct vr_explored_device *device, enum vr_shape_kind kind, int64_t event, uint32_t **rows,
                                         size_t *count) {
    if (kind != VR_SHAPES_SEGMENTS) return vr_explored_live(device, (enum vr_lifetime_kind)kind, event, rows, count);
    const struct vr_lifetimes *lifetimes = NULL;
    VR_TRY(vr_explored_shape_rows(device, kind, &lifetimes));
    if (device->live_segments == NULL) VR_TRY(vr_live_rows_create(device->view, lifetimes, &device->live_segments));
    return vr_live_rows_at(device->live_segments, event, rows, count);
}

enum vram_status vr_explored_largest(struct vr_explored_device *device, enum vr_shape_kind kind, const struct vr_axis_span *axis,
                                     const struct vr_largest **largest) {
    struct vr_largest **made = &device->largest[kind][axis->time_us != NULL];
    const struct vr_lifetimes *lifetimes = NULL;
    VR_TRY(vr_explored_shape_rows(device, kind, &lifetimes));
    if (*made == NULL) VR_TRY(vr_largest_create(lifetimes, axis, made));
    *largest = *made;
    return VRAM_OK;
}

static enum vram_status begin_coverage(struct vr_explored_device *device) {
    const struct vr_segment_lives *segments = NULL;
    const struct vr_lifetimes *lifetimes = NULL;
    const struct vr_event_rows *rows = NULL;
    VR_TRY(vr_explored_segments(device, &segments));
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ALLOCATED, &lifetimes));
    VR_TRY(vr_explored_rows(device, VR_LIFETIME_ALLOCATED, &rows));
    return vr_coverage_begin(device->view, segments, lifetimes, rows, &device->coverage);
}

enum vram_status vr_explored_coverage_go_on(struct vr_explored_device *device, size_t events, double *share) {
    if (device->coverage == NULL) VR_TRY(begin_coverage(device));
    const enum vram_status status = vr_coverage_go_on(device->coverage, events, share);
    if (status == VRAM_OK) return VRAM_OK;
    vr_coverage_destroy(device->coverage);
    device->coverage = NULL;
    return status;
}

enum vram_status vr_explored_coverage(struct vr_explored_device *device, const struct vr_coverage **coverage) {
    double share = 0;
    VR_TRY(vr_explored_coverage_go_on(device, SIZE_MAX, &share));
    *coverage = device->coverage;
    return VRAM_OK;
}

enum vram_status vr_explored_segment_labels(struct vr_explored_device *device, const struct vr_segment_labels **labels) {
    const struct vr_segment_lives *segments = NULL;
    VR_TRY(vr_explored_segments(device, &segments));
    if (device->segment_labels == NULL)
        VR_TRY(vr_segment_labels_create(device->view->history, &segments->lifetimes, &device->segment_labels));
    *labels = device->segment_labels;
    return VRAM_OK;
}

// A longer history is not replayed: WebAssembly takes about 300 ns per event, so each of up to 80 replays would take over a third of a
// second.
enum { MOST_EVENTS = 1000000 };

enum vram_status vr_explored_ooms(struct vr_explored_recording *recording, struct vr_explored_device *device, uint64_t memory_bytes,
                                  struct vr_arena *arena, struct vram_report_device *facts) {
    const struct vr_lifetimes *allocated = NULL, *active = NULL;
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ALLOCATED, &allocated));
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ACTIVE, &active));
    VR_TRY(vr_report_trace(device->view, arena, facts));
    return vr_report_ooms(device->view, &recording->sites, allocated, active, memory_bytes, arena, facts);
}

static enum vram_status begin_cure(struct vr_explored_recording *recording, struct vr_explored_device *device) {
    struct vr_arena arena = {0};
    struct vram_report_device facts = {.device = device->view->device};
    enum vram_status status = vr_explored_ooms(recording, device, 0, &arena, &facts);
    if (status == VRAM_OK) status = vr_cure_begin(recording->recording, facts.device, &facts.ooms[facts.oom_count - 1], 0, &device->cure);
    vr_arena_release(&arena);
    return status;
}

static bool ran_out(const struct vr_history *history) {
    return history->count != 0 && memchr(history->action, VR_ACTION_OOM, history->count) != NULL;
}

enum vram_status vr_explored_cure(struct vr_explored_recording *recording, struct vr_explored_device *device, size_t replays, double *share,
                                  const struct vram_cure **cure, struct vram_error *error) {
    const struct vr_history *history = device->view->history;
    *cure = NULL;
    *share = 1;
    if (!ran_out(history)) return VRAM_OK;
    if (device->cure == NULL) VR_TRY(begin_cure(recording, device));
    *cure = vr_cure_so_far(device->cure);
    return history->count > MOST_EVENTS ? VRAM_OK : vr_cure_go_on(device->cure, replays, share, error);
}

static enum vram_status begin_saving(struct vr_explored_recording *recording, struct vr_explored_device *device) {
    const struct vr_lifetimes *active = NULL;
    struct vr_arena arena = {0};
    struct vram_report_device facts = {.device = device->view->device};
    enum vram_status status = vr_explored_ooms(recording, device, 0, &arena, &facts);
    if (status == VRAM_OK) status = vr_explored_lifetimes(device, VR_LIFETIME_ACTIVE, &active);
    if (status == VRAM_OK) {
        vr_report_reserved(device->view, &facts.reserved, NULL, 0);
        facts.active.peak = active->peak;
        facts.events = device->view->history->count;
        status = vr_paged_search_begin(recording->recording, &facts, 0, &device->paged);
    }
    vr_arena_release(&arena);
    return status;
}

enum vram_status vr_explored_saving(struct vr_explored_recording *recording, struct vr_explored_device *device, size_t replays,
                                    double *share, const struct vram_paged_saving **saving, struct vram_error *error) {
    *saving = NULL;
    *share = 1;
    if (vr_model_is_host(device->view->model, device->view->device)) return VRAM_OK;
    if (device->paged == NULL) VR_TRY(begin_saving(recording, device));
    *saving = vr_paged_search_so_far(device->paged);
    return vr_paged_search_go_on(device->paged, replays, share, error);
}
