// host_pools.h: private pools and the routes into them. All under the state lock.
#ifndef VR_HOST_HOST_POOLS_H
#define VR_HOST_HOST_POOLS_H

#include "host/host_state.h"

// The pool of a request on `stream` by this thread: that of the newest route that accepts it, or the default one. While a route of a
// capture is open the driver is asked who captures, under the state lock: it answers without waiting.
struct vram_host_pool *vr_host_route(struct vram_host *host, uint64_t stream);

// References. Dropping the last one lets go of the blocks that were kept for graphs: their uses are waited for as after any free.
void vr_host_pool_hold(struct vram_host_pool *pool);
void vr_host_pool_drop(struct vram_host_pool *pool);

// Keeps a freed block for the graphs that know it.
void vr_host_keep(struct vram_host *host, struct vr_host_block *block);

// Sizes of blocks, and the free ones of a pool by size.

// Without pinned_max_round_threshold_mb: up to VR_HOST_ROUND_LIMIT sizes are powers of two, above it multiples of an eighth of the power
// of two below them, at most of VR_HOST_LARGEST_STEP.
#define VR_HOST_ROUND_LIMIT  (64 * VR_MIB)
#define VR_HOST_LARGEST_STEP (64 * VR_MIB)
// No request is larger; sums of sizes cannot overflow below it.
#define VR_HOST_REQUEST_LIMIT ((uint64_t)1 << 60)

// The size of a block for a request of size_bytes (not 0, at most VR_HOST_REQUEST_LIMIT).
uint64_t vr_host_round(const struct vr_options *options, uint64_t size_bytes);
// A free block serves a request when it is less than twice as large, which is also the most that powers of two waste.
VR_INLINE uint64_t vr_host_slack_limit(uint64_t size) { return 2 * size - 1; }
// The bin of a size; not 0.
unsigned vr_host_bin(uint64_t size);
// ceil(log2(size)): PyTorch's bucket.
unsigned vr_host_bucket(uint64_t size);

// Makes a block of no list a free one of its pool. Under the state lock, as all below.
void vr_host_bins_insert(struct vr_host_block *block);
// Takes a free block out of its bin.
void vr_host_bins_remove(struct vr_host_block *block);
// The smallest free block of at least `size` and at most vr_host_slack_limit(size), the last freed of equal ones; it stays in its bin.
// NULL when there is none.
struct vr_host_block *vr_host_bins_find(const struct vram_host_pool *pool, uint64_t size);

// The smallest free block above VR_HOST_ROUND_LIMIT that is not of the reserve segment; it stays in its bin. NULL when there is none.
struct vr_host_block *vr_host_bins_find_large(const struct vram_host_pool *pool);

#endif
