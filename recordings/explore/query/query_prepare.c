// `prepare`: computes the results that another query needs, one piece per call, so that the caller can send other queries in between.
#include "explore/query/selection.h"
#include "explore/explored/explored.h"
#include "explore/query/step_search.h"
#include "explore/tables/event_rows.h"
#include "explore/explored/state_at_event.h"

// Rows or events per piece, if the work can be divided: takes less time than a frame of the page.
enum { PIECE = 200000, SEARCH_PIECE = 100000, MOST_PARTS = 8 };

// A part of the work. Does one piece of it unless it is done; *worked is whether it did, *share the completed share of the part.
typedef enum vram_status (*part)(const struct vr_query *query, struct vr_explored_device *device, bool *worked, double *share);

// Defines a part that is computed in one piece.
#define WHOLE(name, there, make)                                                                                                           \
    static enum vram_status name(const struct vr_query *query, struct vr_explored_device *device, bool *worked, double *share) {           \
        (void)query;                                                                                                                       \
        *share = 1;                                                                                                                        \
        *worked = !(there);                                                                                                                \
        return *worked ? (make) : VRAM_OK;                                                                                                 \
    }

static enum vram_status make_lifetimes(struct vr_explored_device *device, enum vr_lifetime_kind kind) {
    const struct vr_lifetimes *lifetimes = NULL;
    return vr_explored_lifetimes(device, kind, &lifetimes);
}

static enum vram_status make_rows(struct vr_explored_device *device, enum vr_lifetime_kind kind) {
    const struct vr_event_rows *rows = NULL;
    return vr_explored_rows(device, kind, &rows);
}

static enum vram_status make_live(struct vr_explored_device *device, enum vr_lifetime_kind kind) {
    uint32_t *rows = NULL;
    size_t count = 0;
    const enum vram_status status = vr_explored_live(device, kind, -1, &rows, &count);
    free(rows);
    return status;
}

static enum vram_status make_segments(struct vr_explored_device *device) {
    const struct vr_segment_lives *segments = NULL;
    return vr_explored_segments(device, &segments);
}

static enum vram_status make_segment_labels(struct vr_explored_device *device) {
    const struct vr_segment_labels *labels = NULL;
    return vr_explored_segment_labels(device, &labels);
}

static enum vram_status make_curve(struct vr_explored_device *device, enum vr_curve_kind kind) {
    const struct vr_curve *curve = NULL;
    return vr_explored_curve(device, kind, &curve);
}

#define BLOCKS vr_moment_lifetime_kind(device->view->history)
WHOLE(allocated, device->has_lifetimes[VR_LIFETIME_ALLOCATED], make_lifetimes(device, VR_LIFETIME_ALLOCATED))
WHOLE(active, device->has_lifetimes[VR_LIFETIME_ACTIVE], make_lifetimes(device, VR_LIFETIME_ACTIVE))
WHOLE(allocated_rows, device->has_rows[VR_LIFETIME_ALLOCATED], make_rows(device, VR_LIFETIME_ALLOCATED))
WHOLE(block_rows, device->has_rows[BLOCKS], make_rows(device, BLOCKS))
WHOLE(live_blocks, device->live[BLOCKS] != NULL, make_live(device, BLOCKS))
WHOLE(segments, device->has_segments, make_segments(device))
WHOLE(segment_labels, device->segment_labels != NULL, make_segment_labels(device))
WHOLE(allocated_curve, device->curve[VR_CURVE_ALLOCATED] != NULL, make_curve(device, VR_CURVE_ALLOCATED))
WHOLE(reserved_curve, device->curve[VR_CURVE_RESERVED] != NULL, make_curve(device, VR_CURVE_RESERVED))

// Parts computed in pieces continue where they stopped.
static enum vram_status prepare_moments(const struct vr_query *query, struct vr_explored_device *device, bool *worked, double *share) {
    (void)query;
    if (device->moments != NULL) VR_TRY(vr_explored_moments_go_on(device, 0, share));
    *worked = device->moments == NULL || *share < 1;
    return *worked ? vr_explored_moments_go_on(device, PIECE, share) : VRAM_OK;
}

static enum vram_status prepare_coverage(const struct vr_query *query, struct vr_explored_device *device, bool *worked, double *share) {
    (void)query;
    if (device->coverage != NULL) VR_TRY(vr_explored_coverage_go_on(device, 0, share));
    *worked = device->coverage == NULL || *share < 1;
    return *worked ? vr_explored_coverage_go_on(device, device->coverage == NULL ? 0 : PIECE, share) : VRAM_OK;
}

static enum vram_status prepare_steps(const struct vr_query *query, struct vr_explored_device *device, bool *worked, double *share) {
    const struct vr_steps *found = NULL;
    const enum vram_status status = vr_step_search_steps(query, device, 0, share, &found);
    *worked = *share < 1;
    return status != VRAM_OK || !*worked ? status : vr_step_search_steps(query, device, PIECE, share, &found);
}

static enum vram_status prepare_search(const struct vr_query *query, enum vr_step_pattern pattern, bool *worked, double *share) {
    const struct vr_pattern_search *found = NULL;
    const enum vram_status status = vr_step_search_pattern(query, pattern, 0, share, &found);
    *worked = *share < 1;
    return status != VRAM_OK || !*worked ? status : vr_step_search_pattern(query, pattern, SEARCH_PIECE, share, &found);
}

static enum vram_status prepare_growth(const struct vr_query *query, struct vr_explored_device *device, bool *worked, double *share) {
    (void)device;
    return prepare_search(query, VR_PATTERN_GROWTH, worked, share);
}

static enum vram_status prepare_churn(const struct vr_query *query, struct vr_explored_device *device, bool *worked, double *share) {
    (void)device;
    return prepare_search(query, VR_PATTERN_CHURN, worked, share);
}

// A piece is one replay.
static enum vram_status prepare_cure(const struct vr_query *query, struct vr_explored_device *device, bool *worked, double *share) {
    struct vr_explored_recording *recording = NULL;
    const struct vram_cure *found = NULL;
    VR_TRY(vr_select_device(query, &recording, &device));
    if (device->cure != NULL) VR_TRY(vr_explored_cure(recording, device, 0, share, &found, query->error));
    *worked = device->cure == NULL || *share < 1;
    return *worked ? vr_explored_cure(recording, device, 1, share, &found, query->error) : VRAM_OK;
}

static enum vram_status prepare_paged(const struct vr_query *query, struct vr_explored_device *device, bool *worked, double *share) {
    struct vr_explored_recording *recording = NULL;
    const struct vram_paged_saving *found = NULL;
    VR_TRY(vr_select_device(query, &recording, &device));
    if (device->paged != NULL) VR_TRY(vr_explored_saving(recording, device, 0, share, &found, query->error));
    *worked = device->paged == NULL || *share < 1;
    return *worked ? vr_explored_saving(recording, device, 1, share, &found, query->error) : VRAM_OK;
}

// The parts that each query needs. `all`: for every open device, not only for the queried one.
static const struct {
    const char *query;
    part part[MOST_PARTS];
    bool all;
} works[] = {
    {"state", {allocated, active, segments, block_rows, live_blocks, segment_labels, prepare_moments}, false},
    {"map", {allocated, segments, allocated_rows, prepare_coverage}, false},
    {"leaks", {prepare_growth}, false},
    {"churn", {prepare_churn}, false},
    {"cure", {allocated, active, prepare_cure}, false},
    {"paged", {allocated, active, prepare_paged}, false},
    {"steps", {prepare_steps}, false},
    {"ranks", {allocated, allocated_rows, allocated_curve, reserved_curve, prepare_steps}, true},
};

struct progress {
    double done, total; // in parts
    bool worked;
};

// Does one piece unless *progress has worked already, and adds up the shares.
static enum vram_status advance_part(const struct vr_query *query, const part *parts, struct vr_explored_device *device,
                                     struct progress *progress) {
    for (size_t i = 0; i < MOST_PARTS && parts[i] != NULL; i++) {
        double share = 0;
        if (!progress->worked) VR_TRY(parts[i](query, device, &progress->worked, &share));
        progress->done += share;
        progress->total += 1;
    }
    return VRAM_OK;
}

static enum vram_status advance_all(const struct vr_query *query, const part *parts, struct progress *progress) {
    for (size_t i = 0; i < query->explorer->count; i++) {
        struct vr_explored_recording *recording = &query->explorer->recordings[i];
        for (size_t d = 0; d < recording->views.count; d++) VR_TRY(advance_part(query, parts, &recording->devices[d], progress));
    }
    return VRAM_OK;
}

static enum vram_status prepare_parts(const struct vr_query *query, size_t work, struct progress *progress) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    if (works[work].all) return advance_all(query, works[work].part, progress);
    VR_TRY(vr_select_device(query, &recording, &device));
    return advance_part(query, works[work].part, device, progress);
}

enum vram_status vr_query_prepare(const struct vr_query *query) {
    const char *words[VR_COUNT_OF(works) + 1] = {NULL};
    size_t work = VR_COUNT_OF(works);
    struct progress progress = {.done = 0};
    for (size_t i = 0; i < VR_COUNT_OF(works); i++) words[i] = works[i].query;
    VR_TRY(vr_parameter_word(query->parameters, "for", words, work, &work));
    if (work != VR_COUNT_OF(works)) VR_TRY(prepare_parts(query, work, &progress));
    vr_json_bool(&query->answer->json, "ready", progress.done == progress.total);
    vr_json_double(&query->answer->json, "share", progress.total == 0 ? 1 : progress.done / progress.total);
    return VRAM_OK;
}
