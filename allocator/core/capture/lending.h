// lending.h: lends free memory of pools that graphs use to requests of the default pools, until the next launch
// (allocator.md §memory-of-graphs-that-is-lent).
#ifndef VR_CORE_CAPTURE_LENDING_H
#define VR_CORE_CAPTURE_LENDING_H

#include "core/block.h"

struct vr_alloc_request;
struct vr_shard;
struct vram_pool;

// The loans of a pool, and its launches. Guarded by all locks of the device; `live` by its lock alone.
struct vr_lending {
    uint32_t live;      // lent blocks that are not freed yet
    uint32_t launching; // launches that have begun but not ended: the pool lends nothing
    bool barred;        // launches are unknown, so the pool never lends: the first capture preceded lend_graph_pools, or a graph became
                        // part of another one
    bool has_lent;
    uint64_t last;      // if has_lent: the stream of the last loan. Its work follows all launches before that loan
    uint64_t *launched; // the streams of the launches since the last loan, each once. They wait for all loans
    size_t launched_count;
    size_t launched_capacity;
};

// Finds a free block of a captured pool for a request of the default pools, while lend_graph_pools is on. *block: 0 if there is none;
// otherwise in no index, and the request's shard is the lender's. The request's stream then waits for the launches of the pool's graphs and
// for the block's own stream. Under all locks, with the context current. DRIVER, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_lending_borrow(struct vr_alloc_request *request, uint32_t *block);
// Marks the block that vr_lending_borrow() found as lent to the stream, after it was handed out.
void vr_lending_hand_out(struct vr_shard *lender, struct vr_block *item, uint64_t stream);

// Takes the pool's memory back for a launch on the stream: if something was lent since the last launch on it, the stream waits for the
// streams that used it. No block is lent until vr_lending_end_launch(). LENT if a lent block is live, or if a capture forbids the wait;
// DRIVER, NO_HOST_MEMORY. error may be NULL. Under all locks.
enum vram_status vr_lending_begin_launch(struct vram_pool *pool, uint64_t stream, struct vram_error *error);
void vr_lending_end_launch(struct vram_pool *pool);

#endif
