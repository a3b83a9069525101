// block_sizes.h: the block size that the allocator gave for each request, which a history does not record.
//
// By the allocator's rules (allocator.md §sizes, allocator.md §best-fit), a request is rounded. A large block also takes the remainder of
// the free block that it was split from if the remainder is too small to keep. The remainder follows from the blocks that were live after
// it at the time. For blocks of the final state, the recording has the size.
#ifndef VR_EXPLORE_TABLES_BLOCK_SIZES_H
#define VR_EXPLORE_TABLES_BLOCK_SIZES_H

#include "analyze/lifetimes.h"
#include "analyze/segment_lives.h"
#include "config/options.h"
#include "explore/tables/curve.h"

struct vr_block_sizes {
    const struct vr_view *view;
    const struct vr_lifetimes *lifetimes; // active lifetimes
    struct vr_options options;            // as recorded
    uint32_t *rest;                       // by row: bytes beyond the rounded size, in units of 512 bytes
};

// Computes the sizes in pieces. Borrows all arguments; `rows` belong to the lifetimes. The caller owns *sizing: vr_block_sizing_destroy().
// NO_HOST_MEMORY.
struct vr_block_sizing;
enum vram_status vr_block_sizing_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const struct vr_event_rows *rows,
                                        const struct vr_segment_lives *segments, struct vr_block_sizing **sizing);
// NULL is ignored.
void vr_block_sizing_destroy(struct vr_block_sizing *sizing);
// Processes up to `most` more rows or events. *share is the completed share of the work, 1 when finished. NO_HOST_MEMORY.
enum vram_status vr_block_sizing_go_on(struct vr_block_sizing *sizing, size_t most, double *share);
// Moves the result out of a finished computation; call once. The caller owns *sizes: vr_block_sizes_release().
void vr_block_sizing_take(struct vr_block_sizing *sizing, struct vr_block_sizes *sizes);
void vr_block_sizes_release(struct vr_block_sizes *sizes);
// Returns the block size of a row. *estimated: the block existed before the history and is gone by its end, so its size is not recorded.
uint64_t vr_block_size_at(const struct vr_block_sizes *sizes, size_t row, bool *estimated);

#endif
