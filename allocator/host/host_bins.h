// host_bins.h: sizes of blocks, and the free ones of a pool by size.
#ifndef VR_HOST_HOST_BINS_H
#define VR_HOST_HOST_BINS_H

#include "host/host_state.h"

// Without pinned_max_round_threshold_mb, sizes up to VR_HOST_ROUND_LIMIT are rounded to powers of two, larger sizes to multiples of an
// eighth of the power of two below them, at most of VR_HOST_LARGEST_STEP.
#define VR_HOST_ROUND_LIMIT  (64 * VR_MIB)
#define VR_HOST_LARGEST_STEP (64 * VR_MIB)
// The largest request; sums of sizes below it cannot overflow.
#define VR_HOST_REQUEST_LIMIT ((uint64_t)1 << 60)

// Returns the block size for a request of size_bytes (not 0, at most VR_HOST_REQUEST_LIMIT).
uint64_t vr_host_round(const struct vr_options *options, uint64_t size_bytes);
// A free block serves a request if it is less than twice as large, which is also the maximum waste of powers of two.
VR_INLINE uint64_t vr_host_slack_limit(uint64_t size) { return 2 * size - 1; }
// Returns the bin of a size; the size must not be 0.
unsigned vr_host_bin(uint64_t size);
// Returns ceil(log2(size)): PyTorch's bucket.
unsigned vr_host_bucket(uint64_t size);

// Makes a block that is in no list a free block of its pool. Called with the state lock held, like all functions below.
void vr_host_bins_insert(struct vr_host_block *block);
// Removes a free block from its bin.
void vr_host_bins_remove(struct vr_host_block *block);
// Returns the smallest free block of at least `size` and at most vr_host_slack_limit(size); among blocks of equal size, the last freed.
// NULL if there is none. It stays in its bin.
struct vr_host_block *vr_host_bins_find(const struct vram_host_pool *pool, uint64_t size);

// Returns the smallest free block above VR_HOST_ROUND_LIMIT outside the reserve segment, or NULL. It stays in its bin.
struct vr_host_block *vr_host_bins_find_large(const struct vram_host_pool *pool);

// A doubly linked list through `previous` and `next`.
void vr_host_list_push(struct vr_host_block **list, struct vr_host_block *block);
void vr_host_list_remove(struct vr_host_block **list, struct vr_host_block *block);

#endif
