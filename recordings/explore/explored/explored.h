// explored.h: the recordings of an explorer, and per device what has been worked out so far.
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

// ---- The recordings of an explorer, and per device what has been worked out so far.
// What a query reads is made by the first one that reads it, and stays as long as its recording. Of the parts that query/ makes only the
// names are known here.

// One device of a recording. Parts are made when first asked for, and stay.
struct vr_explored_device {
    const struct vr_view *view;
    struct vr_address_ids addresses;  // until both lifetimes are there
    struct vr_lifetimes lifetimes[2]; // by enum vr_lifetime_kind
    bool has_lifetimes[2];
    struct vr_roles roles[2]; // of those lifetimes
    bool has_roles[2];
    struct vr_event_rows rows[2]; // of those lifetimes
    bool has_rows[2];
    struct vr_live_rows *live[2];           // NULL until asked for
    struct vr_curve *curve[VR_CURVE_COUNT]; // NULL until asked for
    struct vr_segment_lives segments;
    bool has_segments;
    struct vr_live_rows *live_segments;           // NULL until asked for
    struct vr_lanes *lanes;                       // of the segments (lanes.h); NULL until asked for
    struct vr_largest *largest[3][2];             // by enum vr_shape_kind and axis (event, time); NULL until asked for
    struct vr_coverage *coverage;                 // NULL until asked for
    struct vr_moments *moments;                   // NULL until asked for (state_at_event.h)
    uint32_t *versions;                           // of the allocated lifetimes (event_rows.h)
    struct vr_segment_labels *segment_labels;     // NULL until asked for (event_rows.h)
    struct vr_event_selections *event_selections; // the lists of events asked for last (selection.h); NULL: none
    struct vr_step_searches *step_searches;       // steps, and what is looked for in them (step_search.h); NULL until asked for
    struct vr_cure_search *cure;                  // NULL until asked for
    struct vr_paged_search *paged;                // NULL until asked for
    const int64_t *time_us;                       // by event, never falling; NULL until asked for
    int64_t *own_time_us;                         // what time_us points at where the history's times fall or are missing
};

struct vr_explored_recording {
    struct vram_recording *recording; // owned
    char *name;
    uint64_t bytes;
    struct vr_views views;
    struct vr_explored_device *devices; // of the views
    struct vr_sites sites;
    size_t worst; // the view that a query without a device is about (analyze/device_view.h)
    bool has_worst;
};

struct vram_explorer {
    struct vr_explored_recording *recordings;
    size_t count, recordings_capacity;
    char *skip;    // what queries skip for now (vr_sites_skip_for_now()); NULL: nothing
    bool skip_new; // not all recordings know it
};

// Frees all that was worked out: in explorer.c, the only file that knows every part.
void vr_explored_release(struct vr_explored_device *device);
// The part of it that is made of shapes.
void vr_explored_release_shapes(struct vr_explored_device *device);
// The device's lifetimes for a kind of lifetime, made when first asked for; borrowed. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_explored_lifetimes(struct vr_explored_device *device, enum vr_lifetime_kind kind,
                                       const struct vr_lifetimes **lifetimes);
// What each allocation is for; borrowed. As above.
enum vram_status vr_explored_roles(struct vr_explored_device *device, enum vr_lifetime_kind kind, struct vr_roles **roles);
// Which allocations the events begin and end; borrowed. As above.
enum vram_status vr_explored_rows(struct vr_explored_device *device, enum vr_lifetime_kind kind, const struct vr_event_rows **rows);
// What is live after an event, ascending rows; *rows is given to the caller (free()). As above.
enum vram_status vr_explored_live(struct vr_explored_device *device, enum vr_lifetime_kind kind, int64_t event, uint32_t **rows,
                                  size_t *count);
// The numbers in the labels of allocations, by row of the allocated lifetimes; in those of segments. Borrowed. As above.
enum vram_status vr_explored_versions(struct vr_explored_device *device, const uint32_t **versions);
enum vram_status vr_explored_segment_labels(struct vr_explored_device *device, const struct vr_segment_labels **labels);
// Which row of the allocated lifetimes an event is about (also one that completes a free); SIZE_MAX for none. As above.
enum vram_status vr_explored_allocation_of(struct vr_explored_device *device, size_t event, size_t *row);
// Segments with their lives; borrowed. As above.
enum vram_status vr_explored_segments(struct vr_explored_device *device, const struct vr_segment_lives **segments);
// What shapes are made of. The first two are those of enum vr_lifetime_kind.
enum vr_shape_kind { VR_SHAPES_ALLOCATED, VR_SHAPES_ACTIVE, VR_SHAPES_SEGMENTS };
// Rows of a kind; what of it is live after an event (as vr_explored_live()); the tree of its largest areas on an axis. As above.
enum vram_status vr_explored_shape_rows(struct vr_explored_device *device, enum vr_shape_kind kind, const struct vr_lifetimes **lifetimes);
enum vram_status vr_explored_shapes_live(struct vr_explored_device *device, enum vr_shape_kind kind, int64_t event, uint32_t **rows,
                                         size_t *count);
enum vram_status vr_explored_largest(struct vr_explored_device *device, enum vr_shape_kind kind, const struct vr_axis_span *axis,
                                     const struct vr_largest **largest);
// How full the addresses were over the events; borrowed. As above.
enum vram_status vr_explored_coverage(struct vr_explored_device *device, const struct vr_coverage **coverage);
// The same a piece at a time: looks at about so many further events. *share: how much of the work is done, 1 when it is all. As above.
enum vram_status vr_explored_coverage_go_on(struct vr_explored_device *device, size_t events, double *share);
// A running total; borrowed. As above.
enum vram_status vr_explored_curve(struct vr_explored_device *device, enum vr_curve_kind kind, const struct vr_curve **curve);
// Times that never fall: an event without a time, or with an earlier one, has that of the event before it. NO_HOST_MEMORY.
enum vram_status vr_explored_times(struct vr_explored_device *device, const int64_t **time_us);
bool vr_explored_has_times(const struct vr_explored_device *device);

// ---- What would have let a device's last out-of-memory event fit, as the report finds it.

// Makes at most so many further replays of the history. *share: how much of the work is done; when it is 1, *cure is what was found: NULL
// where nothing failed, UNFINISHED where the history is too long to be replayed while a user waits. Borrowed. Statuses of
// vram_cures_find(), LIMIT.
enum vram_status vr_explored_cure(struct vr_explored_recording *recording, struct vr_explored_device *device, size_t replays, double *share,
                                  const struct vram_cure **cure, struct vram_error *error);

// analyze/report_oom.c about a device, its last events examined; facts are of the arena. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_explored_ooms(struct vr_explored_recording *recording, struct vr_explored_device *device, uint64_t memory_bytes,
                                  struct vr_arena *arena, struct vram_report_device *facts);

// ---- What paged memory would have saved on a device, as the report finds it.

// Makes at most so many further replays of the history. *share: how much of the work is done; when it is 1, *saving is what was found: NULL
// for pinned host memory. Borrowed. Statuses of vram_paged_savings_find(), LIMIT.
enum vram_status vr_explored_saving(struct vr_explored_recording *recording, struct vr_explored_device *device, size_t replays,
                                    double *share, const struct vram_paged_saving **saving, struct vram_error *error);

#endif
