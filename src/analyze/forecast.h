// forecast.h: the peak of a run of another size (batch, sequence, ranks), from the peaks of two or three runs.
#ifndef VR_ANALYZE_FORECAST_H
#define VR_ANALYZE_FORECAST_H

#include "analyze/arena.h"
#include "analyze/grouping.h"
#include "vram/profile.h"

// How a group's bytes go with the size.
enum vr_forecast_shape {
    VR_FORECAST_CONSTANT,
    VR_FORECAST_STRAIGHT, // a + b * size
    VR_FORECAST_SQUARE    // a + b * size + c * size^2
};

// What is live at the peaks, of one group.
struct vr_forecast_group {
    const char *name;
    uint64_t bytes[VRAM_FORECAST_MOST]; // of each recording; 0: the group is not there at its peak
    uint64_t count[VRAM_FORECAST_MOST];
    uint64_t forecast_bytes;
    uint64_t low_bytes, high_bytes;
    enum vr_forecast_shape shape;
};

struct vr_forecast {
    struct vr_forecast_group *group; // by falling forecast, then name
    size_t count;
    enum vr_group_by by;
    size_t order[VRAM_FORECAST_MOST]; // the recordings by ascending size
    uint64_t allocated[VRAM_FORECAST_MOST], reserved[VRAM_FORECAST_MOST];
    int64_t event[VRAM_FORECAST_MOST];
    uint64_t only_some_bytes; // at the largest run's peak, of groups that are not at every peak: the peak lies at another place there
    struct vram_forecast_result result;
    struct vr_arena arena; // the names
};

// INVALID_ARGUMENT with a sentence, BAD_INPUT, LIMIT, NO_HOST_MEMORY; *forecast is untouched then.
enum vram_status vr_forecast_make(const struct vram_forecast *asked, struct vr_forecast *forecast, struct vram_error *error);
void vr_forecast_release(struct vr_forecast *forecast);

#endif
