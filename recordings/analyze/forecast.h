// forecast.h: the peak of a run of another size (batch, sequence, ranks), from two or three runs: each moment that may be the peak is
// followed through the runs.
#ifndef VR_ANALYZE_FORECAST_H
#define VR_ANALYZE_FORECAST_H

#include "analyze/arena.h"
#include "analyze/grouping.h"
#include "analyze/size_curve.h"
#include "vram/profile.h"

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
