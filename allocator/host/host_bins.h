// host_bins.h: sizes of blocks, and the free ones of a pool by size.
#ifndef VR_HOST_HOST_BINS_H
#define VR_HOST_HOST_BINS_H

#include "host/host_state.h"

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

// A doubly linked list through `previous` and `next`.
void vr_host_list_push(struct vr_host_block **list, struct vr_host_block *block);
void vr_host_list_remove(struct vr_host_block **list, struct vr_host_block *block);

#endif
