// profile.h: one device of a recording, opened for a profile: its lifetimes, and what is live at the moment that was asked for.
#ifndef VR_ANALYZE_PROFILE_H
#define VR_ANALYZE_PROFILE_H

#include "analyze/grouping.h"
#include "analyze/device_view.h"
#include "vram/profile.h"

struct vr_profile {
    const struct vr_model *model; // borrowed
    struct vr_views views;
    struct vr_sites sites;
    const struct vr_view *view;
    enum vr_choice why; // it is this view
    struct vr_lifetimes lifetimes;
    bool has_lifetimes;
    struct vr_segment_lives segments;
    bool has_segments;
    struct vr_role_rules rules; // of the user
    int64_t event;
    uint32_t *rows; // live after `event`
    size_t count;
    uint64_t bytes;
};

// INVALID_ARGUMENT with a sentence, BAD_INPUT (a recording of nothing), LIMIT, NO_HOST_MEMORY. The recording must outlive it.
enum vram_status vr_profile_open(const struct vram_recording *recording, const struct vram_profile_options *options,
                                 struct vr_profile *subject, struct vram_error *error);
void vr_profile_close(struct vr_profile *subject);
// The grouping that the options name.
enum vram_status vr_profile_grouping(struct vr_profile *subject, const struct vram_profile_options *options, struct vr_grouping *grouping,
                                     struct vram_error *error);

#endif
