// forecast_runs.h: the runs that a forecast is made from, opened side by side, by ascending size.
#ifndef VR_ANALYZE_FORECAST_RUNS_H
#define VR_ANALYZE_FORECAST_RUNS_H

#include "analyze/moments.h"
#include "analyze/profile.h"
#include "analyze/shared_sites.h"

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

// order: the places of the recordings in `asked`, by ascending size. INVALID_ARGUMENT with a sentence, also where the recordings are not of
// one program; BAD_INPUT, LIMIT, NO_HOST_MEMORY. The runs are to be closed in any case.
enum vram_status vr_forecast_runs_open(const struct vram_forecast *asked, const size_t *order, struct vr_forecast_runs *runs,
                                       struct vram_error *error);
void vr_forecast_runs_close(struct vr_forecast_runs *runs);
// The name of a row's group, the same one in every run. NO_HOST_MEMORY.
enum vram_status vr_forecast_runs_name(struct vr_forecast_runs *runs, size_t run, uint32_t row, const char **name);

#endif
