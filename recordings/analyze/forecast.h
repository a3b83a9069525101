// forecast.h: how bytes go with a size (of the batch, the sequence), told by two or three points.
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
    bool single;  // of one allocation, not of several
    double slack; // by how many bytes a point may be off a curve that it lies on
};

struct vr_size_curve {
    double value, low, high; // at the size that is asked for; the range is what other curves say that the points allow
    enum vr_curve_shape shape;
};

// The simplest curve that the points lie on. Between two points it does not leave what they span, and beyond them it does not turn round.
struct vr_size_curve vr_size_curve_at(const struct vr_size_points *points, double size);

// ---- The peak of a run of another size (batch, sequence, ranks), from two or three runs.

// ---- The same moments in several runs of one program: after the same allocation, told by its call stack and its place among those of that
// stack.

// A moment after an allocation of one run.
struct vr_run_moment {
    uint64_t stack; // a number for the functions of the call stack; lines and folders do not count
    uint32_t order; // which one of that stack it is
    int64_t event;
    uint64_t bytes; // live then
};

struct vr_run_moments {
    struct vr_run_moment *moment; // by stack, then order
    size_t count;
};

// NO_HOST_MEMORY; *moments is untouched then.
enum vram_status vr_moments_find(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_run_moments *moments);
void vr_moments_release(struct vr_run_moments *moments);

// One moment in every run.
struct vr_followed {
    int64_t event[VRAM_FORECAST_MOST]; // -1: before the first
    uint64_t bytes[VRAM_FORECAST_MOST];
    double most; // what the curves of these bytes say at most at the size that is asked for
};

struct vr_followed_list {
    struct vr_followed *followed; // by falling `most`
    size_t count, capacity;
    uint32_t peaks; // bits: which runs' peak is one of them
};

// Runs by ascending size. Where the runs have as many allocations of a stack, the same ones are followed, otherwise the highest of each;
// the beginnings of the histories, too. Of each stack the moment that may be the highest at the size `wanted` is kept, and the peaks of the
// runs. NO_HOST_MEMORY; *list is untouched then.
enum vram_status vr_moments_follow(const struct vr_run_moments *moments, const struct vr_lifetimes *const *lifetimes, const double *size,
                                   size_t runs, double wanted, struct vr_followed_list *list);

// ---- The runs that a forecast is made from, opened side by side, by ascending size.

struct vr_forecast_run {
    struct vr_profile profile;
    struct vr_grouping grouping; // as asked for
    struct vr_grouping sites;    // by call site
    struct vr_run_moments moments;
    struct vr_map named; // group -> 1 + place among `name`
    const char **name;
    size_t name_count, name_capacity;
    uint64_t reserved; // at its peak, 0: not known
    bool opened, grouped, by_sites;
};

struct vr_forecast_runs {
    struct vr_forecast_run run[VRAM_FORECAST_MOST];
    size_t count;
    double size[VRAM_FORECAST_MOST];
    struct vr_shared_sites shared;
    bool has_shared;
    struct vr_arena arena; // names of groups that are no call sites
};

// ---- The peak of a run of another size (batch, sequence, ranks), from two or three runs: each moment that may be the peak is followed
// through the runs.

// What is live at the moment that is the peak at the size asked for, of one group.
struct vr_forecast_group {
    const char *name;
    uint64_t bytes[VRAM_FORECAST_MOST]; // of each recording; 0: the group is not there at that moment
    uint64_t count[VRAM_FORECAST_MOST];
    uint64_t forecast_bytes;
    uint64_t low_bytes, high_bytes;
    enum vr_curve_shape shape; // the steepest of its allocations
};

struct vr_forecast {
    struct vr_forecast_group *group; // by falling forecast, then name
    size_t count;
    enum vr_group_by by;
    size_t order[VRAM_FORECAST_MOST]; // the recordings by ascending size
    uint64_t allocated[VRAM_FORECAST_MOST], reserved[VRAM_FORECAST_MOST];
    int64_t event[VRAM_FORECAST_MOST]; // of the peaks
    // The moment that is the peak at the size asked for, in each recording.
    int64_t moment[VRAM_FORECAST_MOST];
    uint64_t moment_bytes[VRAM_FORECAST_MOST];
    // What allocates there: the call site that the recordings share; NULL: the moment is none after an allocation of theirs, or was given.
    const char *moment_site;
    uint64_t only_some_bytes; // there, in the largest run, of groups that are not there in every run
    bool peaks_followed;      // each run's peak is a moment of the others
    struct vram_forecast_result result;
    struct vr_arena arena; // the names
};

// INVALID_ARGUMENT with a sentence (also for recordings that are not of one program), BAD_INPUT, LIMIT, NO_HOST_MEMORY; *forecast is
// untouched then.
enum vram_status vr_forecast_make(const struct vram_forecast *asked, struct vr_forecast *forecast, struct vram_error *error);
void vr_forecast_release(struct vr_forecast *forecast);

#endif
