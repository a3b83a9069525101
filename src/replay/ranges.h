// ranges.h: a set of disjoint address ranges, ordered, that can be cut and joined: the mapped parts of expandable segments.
#ifndef VR_REPLAY_RANGES_H
#define VR_REPLAY_RANGES_H

#include "base/base.h"

struct vr_range {
    uint64_t start;
    uint64_t end; // one past the last byte
    uint64_t stream;
    bool small;
};

// A treap by start; node 0 is "none". Priorities are a hash of the node's number, so that no order of insertions is slow. All-zero is
// empty.
struct vr_ranges {
    struct vr_range_node *nodes;
    size_t capacity;
    uint32_t count; // nodes ever made, node 0 included
    uint32_t spare; // list of nodes given back, by `left`
    uint32_t root;
};

struct vr_range_node {
    struct vr_range range;
    uint32_t left;
    uint32_t right;
};

void vr_ranges_release(struct vr_ranges *ranges);
// The last range that starts at or before `address` / the first that starts after it; NULL when there is none. Valid until the next change.
const struct vr_range *vr_ranges_before(const struct vr_ranges *ranges, uint64_t address);
const struct vr_range *vr_ranges_after(const struct vr_ranges *ranges, uint64_t address);
// Adds a range that overlaps none, as it is. INVALID_ARGUMENT when it is empty or overlaps; NO_HOST_MEMORY.
enum vram_status vr_ranges_add(struct vr_ranges *ranges, const struct vr_range *range);
// The same, joined with the ranges of the same stream and pool that touch it.
enum vram_status vr_ranges_join(struct vr_ranges *ranges, const struct vr_range *range);
// Takes [start, end) out of the one range that holds all of it. INVALID_ARGUMENT when none does; NO_HOST_MEMORY.
enum vram_status vr_ranges_cut(struct vr_ranges *ranges, uint64_t start, uint64_t end);

#endif
