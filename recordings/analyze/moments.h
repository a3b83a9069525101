// moments.h: the same moments in several runs of one program: after the same allocation, told by its call stack and its place among those
// of that stack.
#ifndef VR_ANALYZE_MOMENTS_H
#define VR_ANALYZE_MOMENTS_H

#include "analyze/lifetimes.h"
#include "analyze/view.h"
#include "vram/profile.h"

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

#endif
