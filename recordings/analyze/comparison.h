// comparison.h: two moments, of one recording or of two, opened to be shown side by side.
#ifndef VR_ANALYZE_COMPARISON_H
#define VR_ANALYZE_COMPARISON_H

#include "analyze/pairs.h"
#include "analyze/profile.h"

struct vr_comparison {
    struct vr_profile side[2]; // before, after
    struct vr_pairs pairs;
    enum vr_group_by by;
    size_t top; // pairs to show
};

// INVALID_ARGUMENT with a sentence, BAD_INPUT, LIMIT, NO_HOST_MEMORY. The recordings must outlive it.
enum vram_status vr_comparison_open(const struct vram_diff *diff, struct vr_comparison *comparison, struct vram_error *error);
void vr_comparison_close(struct vr_comparison *comparison);
// What changed in all, and by how much the group that grew most.
void vr_comparison_result(const struct vr_comparison *comparison, struct vram_diff_result *result);
VR_INLINE int64_t vr_pair_change(const struct vr_pair *pair) { return (int64_t)(pair->bytes[1] - pair->bytes[0]); }

#endif
