// mapped_ranges.h: a set of disjoint address ranges, ordered, that can be cut and joined: the mapped parts of expandable segments.
#ifndef VR_REPLAY_MAPPED_RANGES_H
#define VR_REPLAY_MAPPED_RANGES_H

#include "base/hash.h"

// The pool of a range. UNKNOWN: unmapped in the history, and not yet identified.
enum vr_mapped_pool { VR_MAPPED_LARGE, VR_MAPPED_SMALL, VR_MAPPED_UNKNOWN };

struct vr_mapped_range {
    uint64_t start;
    uint64_t end; // one past the last byte
    uint64_t stream;
    enum vr_mapped_pool pool;
    uint32_t owner; // for the caller; ranges of different owners are never joined
};

// A treap ordered by start; node 0 means no node. Priorities are a hash of the node's number and a secret, so that no order of insertions
// is slow, even one chosen by an attacker. A zeroed struct is empty.
struct vr_mapped {
    struct vr_mapped_node *nodes;
    size_t capacity;
    uint32_t count; // nodes ever made, including node 0
    uint32_t spare; // list of unused nodes, linked by `left`
    uint32_t root;
    uint64_t secret; // set with the first node
};

struct vr_mapped_node {
    struct vr_mapped_range range;
    uint32_t left;
    uint32_t right;
};

void vr_mapped_release(struct vr_mapped *ranges);
// Return the last range that starts at or before `address`, and the first that starts after it; NULL if none exists. Valid until the next
// change.
const struct vr_mapped_range *vr_mapped_before(const struct vr_mapped *ranges, uint64_t address);
const struct vr_mapped_range *vr_mapped_after(const struct vr_mapped *ranges, uint64_t address);
// Adds a range without joining it. INVALID_ARGUMENT if it is empty or overlaps another; NO_HOST_MEMORY.
enum vram_status vr_mapped_add(struct vr_mapped *ranges, const struct vr_mapped_range *range);
// Like vr_mapped_add(), but joins it with the ranges that it touches and that have the same stream, pool and owner.
enum vram_status vr_mapped_join(struct vr_mapped *ranges, const struct vr_mapped_range *range);
// Sets the pool of the range that contains `address`, if it is unknown.
void vr_mapped_settle(struct vr_mapped *ranges, uint64_t address, enum vr_mapped_pool pool);
// Removes [start, end) from the one range that contains it. INVALID_ARGUMENT if none does; NO_HOST_MEMORY.
enum vram_status vr_mapped_cut(struct vr_mapped *ranges, uint64_t start, uint64_t end);

// Checks that ranges are not empty, ordered and disjoint, that every node's parent has a higher priority, and that each node is in the tree
// or unused.
bool vr_mapped_check(const struct vr_mapped *ranges);

#endif
