// forecast.h: how bytes depend on a size (of the batch, the sequence), from two or three points.
#ifndef VR_ANALYZE_FORECAST_H
#define VR_ANALYZE_FORECAST_H

#include "analyze/arena.h"
#include "analyze/device_view.h"
#include "analyze/profile.h"
#include "analyze/lifetimes.h"
#include "analyze/site_match.h"
#include "base/base.h"
#include "vram/profile.h"

enum vr_curve_shape {
    VR_SHAPE_CONSTANT,
    VR_SHAPE_INVERSE,  // a + b / size
    VR_SHAPE_STRAIGHT, // a + b * size
    VR_SHAPE_SQUARE,   // a + b * size + c * size^2
    VR_SHAPE_CUBE      // a + b * size^3
};

// Points by ascending size.
struct vr_size_points {
    double size[VRAM_FORECAST_MOST], bytes[VRAM_FORECAST_MOST];
    size_t count; // 2 or 3
    bool single;  // of one allocation instead of several
    double slack; // most bytes that a point may deviate from its curve
};

struct vr_size_curve {
    double value, low, high; // at the requested size; the range covers other curves that the points allow
    enum vr_curve_shape shape;
};

// Returns the simplest curve through the points. Between two points it stays within their range, and beyond them it does not reverse.
struct vr_size_curve vr_size_curve_at(const struct vr_size_points *points, double size);

// ---- The peak of a run of another size (batch, sequence, ranks), from two or three runs.

// ---- The same moments in several runs of one program: after the same allocation, identified by its call stack and its index among those
// of that stack.

// The moment after an allocation of one run.
struct vr_run_moment {
    uint64_t stack; // number of the call stack's functions, ignoring lines and folders
    uint32_t order; // index among the allocations of that stack
    int64_t event;
    uint64_t bytes; // live bytes
};

struct vr_run_moments {
    struct vr_run_moment *moment; // sorted by stack, then order
    size_t count;
};

// Lists a run's moments. NO_HOST_MEMORY; *moments is then unchanged.
enum vram_status vr_moments_find(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_run_moments *moments);
void vr_moments_release(struct vr_run_moments *moments);

// One moment in every run.
struct vr_followed {
    int64_t event[VRAM_FORECAST_MOST]; // -1: before the first event
    uint64_t bytes[VRAM_FORECAST_MOST];
    double most; // upper bound of the curves through these bytes at the requested size
};

struct vr_followed_list {
    struct vr_followed *followed; // by descending `most`
    size_t count, capacity;
    uint32_t peaks; // bits: the runs whose peaks are among them
};

// Follows moments through the runs, given by ascending size. If all runs have the same number of allocations of a stack, follows each
// allocation, otherwise the highest one of each run; also follows the beginnings of the histories. Keeps, for each stack, the moment that
// may be the highest at the size `wanted`, and the peaks of the runs. NO_HOST_MEMORY; *list is then unchanged.
enum vram_status vr_moments_follow(const struct vr_run_moments *moments, const struct vr_lifetimes *const *lifetimes, const double *size,
                                   size_t runs, double wanted, struct vr_followed_list *list);

// ---- The runs of a forecast, by ascending size.

struct vr_forecast_run {
    struct vr_profile profile;
    struct vr_grouping grouping; // as requested
    struct vr_grouping sites;    // by call site
    struct vr_run_moments moments;
    struct vr_map named; // group -> 1 + index in `name`
    const char **name;
    size_t name_count, name_capacity;
    uint64_t reserved; // at its peak; 0: unknown
    bool opened, grouped, by_sites;
};

struct vr_forecast_runs {
    struct vr_forecast_run run[VRAM_FORECAST_MOST];
    size_t count;
    double size[VRAM_FORECAST_MOST];
    struct vr_shared_sites shared;
    bool has_shared;
    struct vr_arena arena; // names of groups that are not call sites
};

// ---- The peak of a run of another size (batch, sequence, ranks), from two or three runs: each moment that may be the peak is followed
// through the runs.

// The bytes of one group at the moment that is the peak at the requested size.
struct vr_forecast_group {
    const char *name;
    uint64_t bytes[VRAM_FORECAST_MOST]; // of each recording; 0: the group does not exist at that moment
    uint64_t count[VRAM_FORECAST_MOST];
    uint64_t forecast_bytes;
    uint64_t low_bytes, high_bytes;
    enum vr_curve_shape shape; // the steepest of its allocations
};

struct vr_forecast {
    struct vr_forecast_group *group; // by descending forecast, then name
    size_t count;
    enum vr_group_by by;
    size_t order[VRAM_FORECAST_MOST]; // the recordings by ascending size
    uint64_t allocated[VRAM_FORECAST_MOST], reserved[VRAM_FORECAST_MOST];
    int64_t event[VRAM_FORECAST_MOST]; // of the peaks
    // In each recording, the moment that is the peak at the requested size.
    int64_t moment[VRAM_FORECAST_MOST];
    uint64_t moment_bytes[VRAM_FORECAST_MOST];
    // The call site that allocates at that moment, shared by the recordings; NULL if the moment is not after a shared allocation, or was
    // given.
    const char *moment_site;
    uint64_t only_some_bytes; // bytes at that moment, in the largest run, of groups that some run does not have
    bool peaks_followed;      // each run's peak is also a moment of the other runs
    struct vram_forecast_result result;
    struct vr_arena arena; // owns the names
};

// Makes a forecast. INVALID_ARGUMENT with a message (also for recordings of different programs), BAD_INPUT, LIMIT, NO_HOST_MEMORY;
// *forecast is then unchanged.
enum vram_status vr_forecast_make(const struct vram_forecast *asked, struct vr_forecast *forecast, struct vram_error *error);
void vr_forecast_release(struct vr_forecast *forecast);

#endif
