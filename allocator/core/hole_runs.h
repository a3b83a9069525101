// hole_runs.h: the holes of a pool, in a tree by address, and the runs of adjacent free blocks and holes. An expandable segment grows in
// the first run that is long enough.
//
// Each hole stores three bounds for its subtree, in units of 512 bytes (block.h). `longest`: the longest run that begins there. `last`: the
// part within the subtree of the last run that begins there (0: no run begins there). `joined`: the part that continues a run from before
// the subtree. They are upper bounds. Whether a run begins at a hole is always exact, but a free block next to a hole may have been handed
// out since. This keeps allocation as cheap as without bounds; a free that makes no run longer than its bound stops at the hole; and a
// search corrects the bounds that misled it. Under the device's lock.
#ifndef VR_CORE_HOLE_RUNS_H
#define VR_CORE_HOLE_RUNS_H

#include "core/state.h"

// Insert a hole into its pool's set, or remove it.
void vr_hole_insert(struct vr_shard *shard, uint32_t hole);
void vr_hole_remove(struct vr_shard *shard, uint32_t hole);

// Returns the start of the first run of expandable segments, by address, that has a hole and at least `rounded` bytes. 0 if there is no
// such run.
uint32_t vr_hole_run(const struct vr_shard *shard, bool small, uint64_t rounded);

// Update the bounds after a block of an expandable chain was freed and merged, and after a free block was handed out whose remainder
// follows it.
VR_NOINLINE void vr_hole_runs_freed_at_hole(const struct vram_allocator *allocator, const struct vr_block *block);
VR_NOINLINE void vr_hole_runs_taken(const struct vram_allocator *allocator, uint32_t taken);

VR_INLINE void vr_hole_runs_freed(const struct vram_allocator *allocator, const struct vr_block *block) {
    const bool behind = vr_block_at(allocator, block->previous)->state == VR_HOLE;
    if (VR_UNLIKELY(behind || vr_block_at(allocator, block->next)->state == VR_HOLE)) vr_hole_runs_freed_at_hole(allocator, block);
}
// Returns whether the stored values are upper bounds. Call it while the pool's memory is present and no merge is postponed.
bool vr_hole_runs_check(const struct vram_allocator *allocator, uint32_t root);

#endif
