// leaks.h: what grows from step to step in one device of a recording.
#ifndef VR_ANALYZE_LEAKS_H
#define VR_ANALYZE_LEAKS_H

#include "analyze/growth.h"
#include "analyze/profile.h"

struct vr_leaks {
    struct vr_profile profile;
    struct vr_grouping grouping; // as asked for; by stack where no call site leaks and nothing else was asked for
    struct vr_steps steps;
    struct vr_growth growth; // leaks first
    size_t count;            // of leaks
    size_t top;              // groups to show
};

// INVALID_ARGUMENT with a sentence, BAD_INPUT, LIMIT, NO_HOST_MEMORY. The recording must outlive it.
enum vram_status vr_leaks_open(const struct vram_recording *recording, const struct vram_profile_options *options, struct vr_leaks *leaks,
                               struct vram_error *error);
void vr_leaks_close(struct vr_leaks *leaks);

#endif
