// explored.h: the recordings of an explorer, and the results computed for each device.
#ifndef VR_EXPLORE_EXPLORED_EXPLORED_H
#define VR_EXPLORE_EXPLORED_EXPLORED_H

#include "analyze/device_view.h"
#include "analyze/lifetimes.h"
#include "analyze/roles.h"
#include "analyze/segment_lives.h"
#include "analyze/sites.h"
#include "explore/tables/coverage.h"
#include "explore/tables/curve.h"
#include "explore/tables/event_rows.h"
#include "explore/tables/picture_rows.h"
#include "vram/explorer.h"
#include "vram/oom.h"
#include "vram/replay.h"

// ---- The recordings of an explorer, and the results computed for each device. A result is computed by the first query that needs it, and
// kept as long as its recording. This file knows only the names of the results that query/ computes.

// One device of a recording. Results are computed at their first use and kept.
struct vr_explored_device {
    const struct vr_view *view;
    struct vr_address_ids addresses;  // until both lifetimes are computed
    struct vr_lifetimes lifetimes[2]; // by enum vr_lifetime_kind
    bool has_lifetimes[2];
    struct vr_roles roles[2]; // of the lifetimes
    bool has_roles[2];
    struct vr_event_rows rows[2]; // of the lifetimes
    bool has_rows[2];
    struct vr_live_rows *live[2];           // NULL until needed
    struct vr_curve *curve[VR_CURVE_COUNT]; // NULL until needed
    struct vr_segment_lives segments;
    bool has_segments;
    struct vr_live_rows *live_segments;           // NULL until needed
    struct vr_lanes *lanes;                       // of the segments (lanes.h); NULL until needed
    struct vr_largest *largest[3][2];             // by enum vr_shape_kind and axis (event, time); NULL until needed
    struct vr_coverage *coverage;                 // NULL until needed
    struct vr_moments *moments;                   // NULL until needed (state_at_event.h)
    uint32_t *versions;                           // of the allocated lifetimes (event_rows.h)
    struct vr_segment_labels *segment_labels;     // NULL until needed (event_rows.h)
    struct vr_event_selections *event_selections; // the most recent lists of events (selection.h); NULL until needed
    struct vr_step_searches *step_searches;       // steps, and searches among them (step_search.h); NULL until needed
    struct vr_cure_search *cure;                  // NULL until needed
    struct vr_paged_search *paged;                // NULL until needed
    const int64_t *time_us;                       // by event, never decreasing; NULL until needed
    int64_t *own_time_us;                         // backs time_us if the history's times decrease or are missing
};

struct vr_explored_recording {
    struct vram_recording *recording; // owned
    char *name;
    uint64_t bytes;
    struct vr_views views;
    struct vr_explored_device *devices; // one per view
    struct vr_sites sites;
    size_t worst; // the view of a query without a device (analyze/device_view.h)
    bool has_worst;
};

struct vram_explorer {
    struct vr_explored_recording *recordings;
    size_t count, recordings_capacity;
    char *skip;    // the frames that queries skip now (vr_sites_skip_for_now()); NULL: none
    bool skip_new; // some recording does not use it yet
};

// Frees all results of a device. In explorer.c, the only file that knows every type of result.
void vr_explored_release(struct vr_explored_device *device);
// Frees the results that concern shapes.
void vr_explored_release_shapes(struct vr_explored_device *device);
// Sets *lifetimes to the device's lifetimes of a kind, computed at first use; borrowed. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_explored_lifetimes(struct vr_explored_device *device, enum vr_lifetime_kind kind,
                                       const struct vr_lifetimes **lifetimes);
// Sets *roles to the role of each allocation; borrowed. Returns the statuses of vr_explored_lifetimes().
enum vram_status vr_explored_roles(struct vr_explored_device *device, enum vr_lifetime_kind kind, struct vr_roles **roles);
// Sets *rows to the allocation that each event begins or ends; borrowed. Returns the statuses of vr_explored_lifetimes().
enum vram_status vr_explored_rows(struct vr_explored_device *device, enum vr_lifetime_kind kind, const struct vr_event_rows **rows);
// Sets *rows to the rows that are live after an event, ascending; the caller frees them. Returns the statuses of vr_explored_lifetimes().
enum vram_status vr_explored_live(struct vr_explored_device *device, enum vr_lifetime_kind kind, int64_t event, uint32_t **rows,
                                  size_t *count);
// Get the numbers in the labels of allocations, by row of the allocated lifetimes, and in those of segments; borrowed. Returns the statuses
// of vr_explored_lifetimes().
enum vram_status vr_explored_versions(struct vr_explored_device *device, const uint32_t **versions);
enum vram_status vr_explored_segment_labels(struct vr_explored_device *device, const struct vr_segment_labels **labels);
// Sets *row to the row of the allocated lifetimes that an event concerns (also one that completes a free); SIZE_MAX for other events.
// Returns the statuses of vr_explored_lifetimes().
enum vram_status vr_explored_allocation_of(struct vr_explored_device *device, size_t event, size_t *row);
// Sets *segments to the segments with their lifetimes; borrowed. Returns the statuses of vr_explored_lifetimes().
enum vram_status vr_explored_segments(struct vr_explored_device *device, const struct vr_segment_lives **segments);
// The objects that are drawn as shapes. The first two values equal those of enum vr_lifetime_kind.
enum vr_shape_kind { VR_SHAPES_ALLOCATED, VR_SHAPES_ACTIVE, VR_SHAPES_SEGMENTS };
// Get the rows of a kind, the rows that are live after an event (like vr_explored_live()), and the tree of the largest areas on an axis.
// Returns the statuses of vr_explored_lifetimes().
enum vram_status vr_explored_shape_rows(struct vr_explored_device *device, enum vr_shape_kind kind, const struct vr_lifetimes **lifetimes);
enum vram_status vr_explored_shapes_live(struct vr_explored_device *device, enum vr_shape_kind kind, int64_t event, uint32_t **rows,
                                         size_t *count);
enum vram_status vr_explored_largest(struct vr_explored_device *device, enum vr_shape_kind kind, const struct vr_axis_span *axis,
                                     const struct vr_largest **largest);
// Sets *coverage to how full the addresses were over the events; borrowed. Returns the statuses of vr_explored_lifetimes().
enum vram_status vr_explored_coverage(struct vr_explored_device *device, const struct vr_coverage **coverage);
// Computes the coverage in pieces: processes about `events` more events. *share is the completed share of the work; 1 when complete.
// Returns the statuses of vr_explored_lifetimes().
enum vram_status vr_explored_coverage_go_on(struct vr_explored_device *device, size_t events, double *share);
// Sets *curve to a running total; borrowed. Returns the statuses of vr_explored_lifetimes().
enum vram_status vr_explored_curve(struct vr_explored_device *device, enum vr_curve_kind kind, const struct vr_curve **curve);
// Sets *time_us to times that never decrease: an event without a time, or with an earlier one, gets the previous event's time.
// NO_HOST_MEMORY.
enum vram_status vr_explored_times(struct vr_explored_device *device, const int64_t **time_us);
bool vr_explored_has_times(const struct vr_explored_device *device);

// ---- The cure for a device's last out-of-memory event, as in the report.

// Replays the history at most `replays` more times. *share is the completed share of the work; when it is 1, *cure is the result: NULL if
// no request failed, UNFINISHED if the history is too long to replay while a user waits. Borrowed. Returns the statuses of
// vram_cures_find(), LIMIT.
enum vram_status vr_explored_cure(struct vr_explored_recording *recording, struct vr_explored_device *device, size_t replays, double *share,
                                  const struct vram_cure **cure, struct vram_error *error);

// Runs analyze/report_oom.c on a device, examining its last events; the facts are in the arena. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_explored_ooms(struct vr_explored_recording *recording, struct vr_explored_device *device, uint64_t memory_bytes,
                                  struct vr_arena *arena, struct vram_report_device *facts);

// ---- What paged memory would have saved on a device, as in the report.

// Replays the history at most `replays` more times. *share is the completed share of the work; when it is 1, *saving is the result: NULL
// for pinned host memory. Borrowed. Returns the statuses of vram_paged_savings_find(), LIMIT.
enum vram_status vr_explored_saving(struct vr_explored_recording *recording, struct vr_explored_device *device, size_t replays,
                                    double *share, const struct vram_paged_saving **saving, struct vram_error *error);

#endif
