// mapped_ranges.h: a set of disjoint address ranges, ordered, that can be cut and joined: the mapped parts of expandable segments.
#ifndef VR_REPLAY_MAPPED_RANGES_H
#define VR_REPLAY_MAPPED_RANGES_H

#include "base/hash.h"

// Which pool a range is of. UNKNOWN: unmapped inside the history, and nothing has told yet.
enum vr_mapped_pool { VR_MAPPED_LARGE, VR_MAPPED_SMALL, VR_MAPPED_UNKNOWN };

struct vr_mapped_range {
    uint64_t start;
    uint64_t end; // one past the last byte
    uint64_t stream;
    enum vr_mapped_pool pool;
    uint32_t owner; // the caller's; ranges of different owners are never joined
};

// A treap by start; node 0 is "none". Priorities are a hash of the node's number and a secret, so that no order of insertions is slow, not
// even one that somebody chose. All-zero is empty.
struct vr_mapped {
    struct vr_mapped_node *nodes;
    size_t capacity;
    uint32_t count; // nodes ever made, node 0 included
    uint32_t spare; // list of nodes given back, by `left`
    uint32_t root;
    uint64_t secret; // set with the first node
};

struct vr_mapped_node {
    struct vr_mapped_range range;
    uint32_t left;
    uint32_t right;
};

void vr_mapped_release(struct vr_mapped *ranges);
// The last range that starts at or before `address` / the first that starts after it; NULL when there is none. Valid until the next change.
const struct vr_mapped_range *vr_mapped_before(const struct vr_mapped *ranges, uint64_t address);
const struct vr_mapped_range *vr_mapped_after(const struct vr_mapped *ranges, uint64_t address);
// Adds a range that overlaps none, as it is. INVALID_ARGUMENT when it is empty or overlaps; NO_HOST_MEMORY.
enum vram_status vr_mapped_add(struct vr_mapped *ranges, const struct vr_mapped_range *range);
// The same, joined with the ranges of the same stream, pool and owner that touch it.
enum vram_status vr_mapped_join(struct vr_mapped *ranges, const struct vr_mapped_range *range);
// Tells the range that contains `address` its pool, if it has none yet.
void vr_mapped_settle(struct vr_mapped *ranges, uint64_t address, enum vr_mapped_pool pool);
// Takes [start, end) out of the one range that holds all of it. INVALID_ARGUMENT when none does; NO_HOST_MEMORY.
enum vram_status vr_mapped_cut(struct vr_mapped *ranges, uint64_t start, uint64_t end);

// Ranges are not empty, ordered and disjoint, above every node stands one of higher priority, and each node is in the tree or spare.
bool vr_mapped_check(const struct vr_mapped *ranges);

#endif
