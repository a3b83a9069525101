// hole_runs.h: the holes of a pool, a tree by address, and the runs in which free blocks and holes follow each other. The first run that is
// long enough is where an expandable segment grows.
//
// Each hole has bounds of the holes at and below it in the tree, in units of 512 bytes (block.h): `longest` of the runs that begin there,
// `last` of the last one that does as far as it goes there (0: none does), `joined` of what goes on a run that began before. They are
// bounds from above: whether a run begins at a hole is always known, but a free block next to a hole may have been handed out since. So
// handing out is as cheap as it was, a free that makes no run longer than it was once stops at the hole, and a search puts right what
// misled it. Under the device's lock.
#ifndef VR_CORE_HOLE_RUNS_H
#define VR_CORE_HOLE_RUNS_H

#include "core/state.h"

// Into and out of the pool's set of holes.
void vr_hole_insert(struct vr_shard *shard, uint32_t hole);
void vr_hole_remove(struct vr_shard *shard, uint32_t hole);

// Where the first run of expandable segments begins, by address, that has a hole and at least `rounded` bytes; 0: there is none.
uint32_t vr_hole_run(const struct vr_shard *shard, bool small, uint64_t rounded);

// A block of an expandable chain is free now, and merged; or one that was free is handed out, and what is left of it lies behind.
VR_NOINLINE void vr_hole_runs_freed_at_hole(const struct vram_allocator *allocator, const struct vr_block *block);
VR_NOINLINE void vr_hole_runs_taken(const struct vram_allocator *allocator, uint32_t taken);

VR_INLINE void vr_hole_runs_freed(const struct vram_allocator *allocator, const struct vr_block *block) {
    const bool behind = vr_block_at(allocator, block->previous)->state == VR_HOLE;
    if (VR_UNLIKELY(behind || vr_block_at(allocator, block->next)->state == VR_HOLE)) vr_hole_runs_freed_at_hole(allocator, block);
}
// Whether the bounds of a pool's holes are bounds. The pool is awake, and no free block waits to be merged.
bool vr_hole_runs_check(const struct vram_allocator *allocator, uint32_t root);

#endif
