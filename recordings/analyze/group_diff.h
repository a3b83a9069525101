// group_diff.h: the groups of two moments, of one recording or of two, side by side.
#ifndef VR_ANALYZE_GROUP_DIFF_H
#define VR_ANALYZE_GROUP_DIFF_H

#include "analyze/arena.h"
#include "analyze/profile.h"

#define VR_PAIR_NO_ROW UINT32_MAX

// A group of either side or of both. Side 0 is what came before (A), side 1 what came after (B).
struct vr_pair {
    const char *name; // side 1's where it has the group
    uint64_t bytes[2];
    uint64_t count[2];
    uint32_t row[2]; // of the largest allocation; VR_PAIR_NO_ROW: the side does not have the group
    bool moved;      // the same function, another line
};

struct vr_pairs {
    struct vr_pair *pair; // by falling change of bytes (either direction), then name
    size_t count;
    uint64_t bytes[2], allocations[2];
    struct vr_arena arena; // the names
};

// Groups with the same name are the same. Files that lie in another folder are those whose paths end alike (site_match.h). Call sites that
// only one side has are matched by file and function: as many on both sides in the order of their lines; otherwise all of them together are
// one group. The groupings are by the same thing, which is not STACK (call stacks are compared as trees). NO_HOST_MEMORY; *pairs is
// untouched then.
enum vram_status vr_pairs_build(struct vr_grouping *const grouping[2], const uint32_t *const rows[2], const size_t counts[2],
                                struct vr_pairs *pairs);
void vr_pairs_release(struct vr_pairs *pairs);

// ---- Two moments, of one recording or of two, opened to be shown side by side.

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
