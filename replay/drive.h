// drive.h: entry points for replay. They put the allocator into a given state and run the two halves of a free separately. Segments and
// blocks are made in the pool that the open routes choose (vram_pool_begin()), or in the default pools. They use the same blocks, index,
// sources and statistics as vram_malloc() and vram_free().
#ifndef VR_REPLAY_DRIVE_H
#define VR_REPLAY_DRIVE_H

#include "base/base.h"
#include "vram/allocator.h"

struct vram_pool;

// Makes a free segment of exactly segment_bytes (the size passed to cuMemAlloc) on (device, stream), in the small or large pool. *address:
// where the driver placed it. INVALID_ARGUMENT unless the size is a multiple of 512.
enum vram_status vr_drive_add_segment(struct vram_allocator *allocator, uint32_t device, uint64_t stream, bool small_pool,
                                      uint64_t segment_bytes, uint64_t *address);
// Reserves an expandable segment of reserve_bytes of address space with nothing mapped. cuMemAddressReserve places it.
enum vram_status vr_drive_add_expandable(struct vram_allocator *allocator, uint32_t device, uint64_t stream, bool small_pool,
                                         uint64_t reserve_bytes, uint64_t *address);
// Maps [address, address + size_bytes) of an expandable segment. The range must be unmapped, and page-aligned relative to the segment's
// base.
enum vram_status vr_drive_map(struct vram_allocator *allocator, uint64_t address, uint64_t size_bytes);
// Gives the cudaMalloc segment at `address` back to the driver. INVALID_ARGUMENT unless it is one and wholly free.
enum vram_status vr_drive_release(struct vram_allocator *allocator, uint64_t address);
// Like vram_empty_cache_device(), without the private pools.
enum vram_status vr_drive_empty_default_pools(struct vram_allocator *allocator, uint32_t device);
// Unmaps every whole page of the free block that contains `address` in an expandable segment. INVALID_ARGUMENT if there is no such block.
enum vram_status vr_drive_unmap(struct vram_allocator *allocator, uint64_t address);
// Allocates the block [address, address + size_bytes), which must lie in one free block of (device, stream, pool). Splits off the memory
// before and after it regardless of the split rules. INVALID_ARGUMENT if the range is not free there.
enum vram_status vr_drive_malloc_at(struct vram_allocator *allocator, uint32_t device, uint64_t stream, bool small_pool, uint64_t address,
                                    uint64_t size_bytes, uint64_t requested_bytes);
// Like vram_malloc() after its search of the cache has failed: asks the source for memory, whatever the cache contains.
enum vram_status vr_drive_malloc_past_cache(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes, uint64_t stream,
                                            uint64_t *address);
// Runs the first half of a free: allocated counters fall and the block stays active until vr_drive_free_complete(). Records no event.
enum vram_status vr_drive_free_request(struct vram_allocator *allocator, uint64_t address);
// Runs the second half of a free that vr_drive_free_request() began: merges the block and makes it reusable.
enum vram_status vr_drive_free_complete(struct vram_allocator *allocator, uint64_t address);

// Visits the cudaMalloc segments that vram_empty_cache_device() or, with a pool, vram_pool_empty_cache() would return to the driver, in
// that order, until visit() returns false. Adds the number of free blocks examined to *walked. Calls visit() under the device's locks.
enum vram_status vr_drive_walk_cached(struct vram_allocator *allocator, uint32_t device, const struct vram_pool *pool,
                                      bool (*visit)(uint64_t address, uint64_t size_bytes, void *user), void *user, size_t *walked);

// Finds the cached block that vram_malloc() would take now without asking the driver. Sets *address to its address, or to 0.
enum vram_status vr_drive_peek(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes, uint64_t stream, uint64_t *address);
// Visits the free blocks of the same size as the best fit for the request, in their order, until visit() returns false. Calls visit() under
// the device's locks.
enum vram_status vr_drive_walk_rivals(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes, uint64_t stream,
                                      bool (*visit)(uint64_t address, uint64_t segment_address, void *user), void *user);
// Finds the free memory of an expandable segment that vram_malloc() would take without mapping more, if vr_drive_peek() finds nothing. Sets
// *address likewise.
enum vram_status vr_drive_peek_mapped(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes, uint64_t stream,
                                      uint64_t *address);

#endif
