// drive.h: the doors for replay and checkpoints: put the allocator into a given state and drive the two halves of a free apart.
// Segments and blocks are made in the pool that the open routes say (vram_pool_begin()), the default pools without one.
// All of it goes through the same blocks, index, sources and statistics as vram_malloc() and vram_free().
#ifndef VR_CORE_DRIVE_H
#define VR_CORE_DRIVE_H

#include "base/base.h"
#include "vram/allocator.h"

struct vram_pool;

// Makes a segment of segment_bytes (exactly; the driver's cuMemAlloc is called with it) on (device, stream), in the small or large
// pool, wholly free. *address is where the driver put it. INVALID_ARGUMENT unless the size is a multiple of 512.
enum vram_status vr_drive_add_segment(struct vram_allocator *allocator, uint32_t device, uint64_t stream, bool small_pool,
                                      uint64_t segment_bytes, uint64_t *address);
// Reserves one expandable segment of reserve_bytes of address space with nothing mapped (the driver's cuMemAddressReserve places it).
enum vram_status vr_drive_add_expandable(struct vram_allocator *allocator, uint32_t device, uint64_t stream, bool small_pool,
                                         uint64_t reserve_bytes, uint64_t *address);
// Maps [address, address + size_bytes) of an expandable segment made before: page aligned from the segment's base, now unmapped.
enum vram_status vr_drive_map(struct vram_allocator *allocator, uint64_t address, uint64_t size_bytes);
// Gives the wholly free cudaMalloc segment at `address` back to the driver. INVALID_ARGUMENT when it is not that.
enum vram_status vr_drive_release(struct vram_allocator *allocator, uint64_t address);
// vram_empty_cache_device() without the private pools.
enum vram_status vr_drive_empty_default_pools(struct vram_allocator *allocator, uint32_t device);
// Unmaps every whole page of the free block of an expandable segment that contains `address`. INVALID_ARGUMENT when there is none.
enum vram_status vr_drive_unmap(struct vram_allocator *allocator, uint64_t address);
// Hands out the block [address, address + size_bytes): it must lie in one free block of (device, stream, pool). Splits off what is
// before and after, whatever the split rules say. INVALID_ARGUMENT when the range is not free there.
enum vram_status vr_drive_malloc_at(struct vram_allocator *allocator, uint32_t device, uint64_t stream, bool small_pool, uint64_t address,
                                    uint64_t size_bytes, uint64_t requested_bytes);
// vram_malloc() of a request that has searched the cache already: the source is asked, whatever the cache has by now.
enum vram_status vr_drive_malloc_past_cache(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes, uint64_t stream,
                                            uint64_t *address);
// The first half of a free: allocated counters fall, the block stays active until vr_drive_free_complete(), no event is recorded.
enum vram_status vr_drive_free_request(struct vram_allocator *allocator, uint64_t address);
// The second half, for a block that vr_drive_free_request() took: merged and reusable.
enum vram_status vr_drive_free_complete(struct vram_allocator *allocator, uint64_t address);

// The cudaMalloc segments that vram_empty_cache_device() or, with a pool, vram_pool_empty_cache() would give back, in that order, until
// visit() says false. *walked grows by the free blocks that were looked at. visit() is called under the device's locks.
enum vram_status vr_drive_walk_cached(struct vram_allocator *allocator, uint32_t device, const struct vram_pool *pool,
                                      bool (*visit)(uint64_t address, uint64_t size_bytes, void *user), void *user, size_t *walked);

// Would vram_malloc() find a cached block now, without asking the driver? *address the block it would take (0 if none).
enum vram_status vr_drive_peek(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes, uint64_t stream, uint64_t *address);
// The free blocks that are as large as the first one that is large enough for the request, in their order, until visit() says false.
// visit() is called under the device's locks.
enum vram_status vr_drive_walk_rivals(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes, uint64_t stream,
                                      bool (*visit)(uint64_t address, uint64_t segment_address, void *user), void *user);
// The same where vr_drive_peek() finds none: free memory of an expandable segment that vram_malloc() would take without mapping more.
enum vram_status vr_drive_peek_mapped(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes, uint64_t stream,
                                      uint64_t *address);

#endif
