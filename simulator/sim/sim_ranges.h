// sim_ranges.h: an ordered set of address ranges that do not overlap, with a search for gaps.
//
// Holds occupied device addresses, mappings and host ranges. It is a treap whose priorities come from a counter, so its shape and its cost
// are the same in every run. Every operation is O(log n).
#ifndef VR_SIM_SIM_RANGES_H
#define VR_SIM_SIM_RANGES_H

#include "base/base.h"

// One range. Nodes live in the set's array and are referred to by index; index 0 is the empty tree.
struct vr_sim_range {
    uint64_t base;        // first byte
    uint32_t left, right; // subtrees; next to base because a search reads only these three
    uint32_t priority;    // heap-ordered: a parent's is at least its children's
    uint32_t kind;        // for the user
    uint64_t span;        // occupied bytes, at least size_bytes
    uint64_t first, last; // of the subtree: lowest base and highest end
    uint64_t widest_gap;  // of the subtree: widest gap between neighbours
    uint64_t size_bytes;  // requested bytes
    uint64_t owner;       // for the user: a context or a slot
    uint64_t read_mask;   // for the user: bit d set = device d may read; of an allocation: offset of its bytes in the file
    uint64_t write_mask;  // for the user: bit d set = device d may write; of an allocation: its ticket
    uint64_t serial;      // insertion number, from 1; never reused in the set
};

// Invariant: ranges do not overlap; a node's priority is at least its children's; first, last and widest_gap describe its subtree; count is
// the number of nodes in the tree. vr_sim_ranges_check() tests it.
struct vr_sim_ranges {
    struct vr_sim_range *nodes; // nodes[0] is the empty subtree and never changes
    size_t nodes_capacity;
    uint32_t used;      // nodes ever taken
    uint32_t free_list; // chained through left
    uint32_t root;
    uint64_t seed; // for the priorities: number of insertions so far
    uint64_t count;
};

void vr_sim_ranges_release(struct vr_sim_ranges *ranges);
VR_INLINE uint64_t vr_sim_range_end(const struct vr_sim_range *range) { return range->base + range->span; }

// Inserts a copy of `value`, whose tree fields are ignored. It must not overlap any range, and span must be > 0. NO_HOST_MEMORY.
enum vram_status vr_sim_ranges_insert(struct vr_sim_ranges *ranges, const struct vr_sim_range *value);
// Reserves room so that the next `more` insertions cannot fail. NO_HOST_MEMORY.
enum vram_status vr_sim_ranges_reserve(struct vr_sim_ranges *ranges, uint32_t more);
// Removes the range that starts at `base`, which must exist.
void vr_sim_ranges_remove(struct vr_sim_ranges *ranges, uint64_t base);

// Pointers returned below are borrowed until the next insertion or removal. Only the user's fields may be written through them.
// Returns the range that starts at `base`, or NULL.
struct vr_sim_range *vr_sim_ranges_at(const struct vr_sim_ranges *ranges, uint64_t base);
// Returns the range whose span contains `address`, or NULL.
struct vr_sim_range *vr_sim_ranges_holding(const struct vr_sim_ranges *ranges, uint64_t address);
// Returns the highest range that overlaps [base, base + span), or NULL. base + span must not overflow.
struct vr_sim_range *vr_sim_ranges_overlap(const struct vr_sim_ranges *ranges, uint64_t base, uint64_t span);
// Returns the lowest range whose base is at or above `address`, or NULL.
struct vr_sim_range *vr_sim_ranges_next(const struct vr_sim_ranges *ranges, uint64_t address);
// Returns the lowest multiple of `alignment` (a power of two) at or above `from` that starts `span` free bytes, or UINT64_MAX if nothing
// below `limit` fits.
uint64_t vr_sim_ranges_lowest_gap(const struct vr_sim_ranges *ranges, uint64_t from, uint64_t limit, uint64_t span, uint64_t alignment);

// Tests the invariant, in O(n).
bool vr_sim_ranges_check(const struct vr_sim_ranges *ranges);

#endif
