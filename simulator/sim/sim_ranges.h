// sim_ranges.h: an ordered set of address ranges that do not overlap, and the gaps between them.
//
// Used for what occupies device address space, for mappings and for host ranges. A treap whose priorities come from a
// counter, so that the shape, and with it the cost, is the same in every run. Every operation is O(log n).
#ifndef VR_SIM_SIM_RANGES_H
#define VR_SIM_SIM_RANGES_H

#include "base/base.h"

// One range. Nodes live in the set's array and are named by index; 0 is "none".
struct vr_sim_range {
    uint64_t base;        // first byte
    uint32_t left, right; // subtrees; with base in front, as a search reads these three and no more
    uint32_t priority;    // the tree is a heap of these
    uint32_t kind;        // the user's
    uint64_t span;        // bytes occupied, at least size_bytes
    uint64_t first, last; // of the subtree: lowest base, highest end
    uint64_t widest_gap;  // of the subtree: the widest gap between two neighbours
    uint64_t size_bytes;  // bytes asked for
    uint64_t owner;       // the user's: a context or a slot
    uint64_t read_mask;   // the user's: bit d set = device d may read; of an allocation: where its bytes lie in the file
    uint64_t write_mask;  // the user's: bit d set = device d may write; of an allocation: its ticket
    uint64_t serial;      // of its insertion, from 1 up, never used again in the set
};

// Invariant: ranges in order do not overlap; a node's priority is at least its children's; first, last and widest_gap are those of its
// subtree; count is the number of nodes in the tree. vr_sim_ranges_check() is that sentence.
struct vr_sim_ranges {
    struct vr_sim_range *nodes; // nodes[0] is the empty subtree and never changes
    size_t nodes_capacity;
    uint32_t used;      // nodes ever taken
    uint32_t free_list; // chained through left
    uint32_t root;
    uint64_t seed; // of the priorities: how many nodes were inserted
    uint64_t count;
};

void vr_sim_ranges_release(struct vr_sim_ranges *ranges);
VR_INLINE uint64_t vr_sim_range_end(const struct vr_sim_range *range) { return range->base + range->span; }

// Adds `value` (its tree fields are ignored). The caller made sure that it overlaps nothing and that span > 0. NO_HOST_MEMORY.
enum vram_status vr_sim_ranges_insert(struct vr_sim_ranges *ranges, const struct vr_sim_range *value);
// Makes room, so that the next `more` insertions cannot fail. NO_HOST_MEMORY.
enum vram_status vr_sim_ranges_reserve(struct vr_sim_ranges *ranges, uint32_t more);
// Removes the range that starts at `base`, which must be there.
void vr_sim_ranges_remove(struct vr_sim_ranges *ranges, uint64_t base);

// All pointers below are borrowed until the next insertion or removal; only the user's fields may be written through them.
// The range that starts at `base`, or NULL.
struct vr_sim_range *vr_sim_ranges_at(const struct vr_sim_ranges *ranges, uint64_t base);
// The range whose span holds `address`, or NULL.
struct vr_sim_range *vr_sim_ranges_holding(const struct vr_sim_ranges *ranges, uint64_t address);
// The highest range that overlaps [base, base + span), or NULL. base + span must fit.
struct vr_sim_range *vr_sim_ranges_overlap(const struct vr_sim_ranges *ranges, uint64_t base, uint64_t span);
// The lowest range whose base is at or above `address`, or NULL.
struct vr_sim_range *vr_sim_ranges_next(const struct vr_sim_ranges *ranges, uint64_t address);
// The lowest multiple of `alignment` (a power of two) at or above `from` with `span` free bytes. UINT64_MAX when there is none below
// `limit`.
uint64_t vr_sim_ranges_lowest_gap(const struct vr_sim_ranges *ranges, uint64_t from, uint64_t limit, uint64_t span, uint64_t alignment);

// Does the invariant hold? In time O(n).
bool vr_sim_ranges_check(const struct vr_sim_ranges *ranges);

#endif
