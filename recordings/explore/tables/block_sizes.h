// block_sizes.h: how large a block the allocator gave for each request, which a history does not say.
//
// By the rules of the allocator (allocator.md §sizes, allocator.md §best-fit): a request is rounded; a large block takes what is left of
// the free piece it was cut from when that rest is too small to be kept. What was left is known from who lived after the block when it was
// made. Blocks of the final state say it themselves.
#ifndef VR_EXPLORE_TABLES_BLOCK_SIZES_H
#define VR_EXPLORE_TABLES_BLOCK_SIZES_H

#include "analyze/lifetimes.h"
#include "analyze/segment_lives.h"
#include "config/options.h"
#include "explore/tables/curve.h"

struct vr_block_sizes {
    const struct vr_view *view;
    const struct vr_lifetimes *lifetimes; // active
    struct vr_options options;            // as recorded
    uint32_t *rest;                       // by row: what it took beyond its rounded size, in units of 512 bytes
};

// Found a piece at a time. Borrows all it is given; `rows` are those of the lifetimes. Given to the caller: vr_block_sizing_destroy().
// NO_HOST_MEMORY.
struct vr_block_sizing;
enum vram_status vr_block_sizing_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const struct vr_event_rows *rows,
                                        const struct vr_segment_lives *segments, struct vr_block_sizing **sizing);
// NULL is ignored.
void vr_block_sizing_destroy(struct vr_block_sizing *sizing);
// Looks at up to `most` further rows or events. *share: how much of all is done, 1 when it is finished. NO_HOST_MEMORY.
enum vram_status vr_block_sizing_go_on(struct vr_block_sizing *sizing, size_t most, double *share);
// What was found, once; given to the caller: vr_block_sizes_release().
void vr_block_sizing_take(struct vr_block_sizing *sizing, struct vr_block_sizes *sizes);
void vr_block_sizes_release(struct vr_block_sizes *sizes);
// The size of a row's block. *estimated: it lived before the recording and is gone by the end, so that nothing says what it took.
uint64_t vr_block_size_at(const struct vr_block_sizes *sizes, size_t row, bool *estimated);

#endif
