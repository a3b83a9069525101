// group_diff.h: compares the groups of two moments of one or two recordings.
#ifndef VR_ANALYZE_GROUP_DIFF_H
#define VR_ANALYZE_GROUP_DIFF_H

#include "analyze/arena.h"
#include "analyze/profile.h"

#define VR_PAIR_NO_ROW UINT32_MAX

// A group of either side or both. Side 0 is before (A), side 1 is after (B).
struct vr_pair {
    const char *name; // side 1's if it has the group
    uint64_t bytes[2];
    uint64_t count[2];
    uint32_t row[2]; // of the largest allocation; VR_PAIR_NO_ROW: the side does not have the group
    bool moved;      // the same function at another line
};

struct vr_pairs {
    struct vr_pair *pair; // by descending change of bytes in either direction, then name
    size_t count;
    uint64_t bytes[2], allocations[2];
    struct vr_arena arena; // owns the names
};

// Pairs groups with the same name. Files in different folders are the same if their paths end alike (site_match.h). Call sites on only one
// side are matched by file and function: one by one in the order of their lines if both sides have the same number of sites, otherwise as a
// single group. Both groupings must be of the same kind, other than STACK (call stacks are compared as trees). NO_HOST_MEMORY; *pairs is
// then unchanged.
enum vram_status vr_pairs_build(struct vr_grouping *const grouping[2], const uint32_t *const rows[2], const size_t counts[2],
                                struct vr_pairs *pairs);
void vr_pairs_release(struct vr_pairs *pairs);

// ---- Two moments of one or two recordings, opened for a comparison.

struct vr_comparison {
    struct vr_profile side[2]; // before, after
    struct vr_pairs pairs;
    enum vr_group_by by;
    size_t top; // number of pairs to show
};

// Opens a comparison. INVALID_ARGUMENT with a message, BAD_INPUT, LIMIT, NO_HOST_MEMORY. The recordings must outlive it.
enum vram_status vr_comparison_open(const struct vram_diff *diff, struct vr_comparison *comparison, struct vram_error *error);
void vr_comparison_close(struct vr_comparison *comparison);
// Computes the totals, and the growth of the group that grew most.
void vr_comparison_result(const struct vr_comparison *comparison, struct vram_diff_result *result);
VR_INLINE int64_t vr_pair_change(const struct vr_pair *pair) { return (int64_t)(pair->bytes[1] - pair->bytes[0]); }

#endif
