// release.h: returns cached memory to the driver. Call all of it under all locks of the device, with its context current.
#ifndef VR_CORE_RELEASE_H
#define VR_CORE_RELEASE_H

#include "core/alloc.h"

// Releases the free memory of the private pools without references. With `everything`, first waits for all fences and releases all memory
// that is wholly free: the large pools, then the small ones, each in the order (stream, size, tie, address), cudaMalloc segments before
// pages of expandable segments (allocator.md §release-of-the-cache). Keeps pages whose stream is capturing. Goes on after a failure, and
// returns the first one.
enum vram_status vr_release_all(struct vr_device *device, bool everything);
// Releases the default pools only: the first part of vr_release_all().
enum vram_status vr_release_default_pools(struct vr_device *device);
// Releases wholly free memory of the shards' pools of one kind, in the order of the shards.
enum vram_status vr_release_kind(struct vr_shard *const *shards, size_t count, unsigned kind);
// Releases oversize blocks, which a request may try first when max_split_size is set (allocator.md §release-of-oversize-blocks). *enough:
// whether it released at least `rounded` bytes.
enum vram_status vr_release_available(struct vr_shard *shard, unsigned pool, uint64_t rounded, bool *enough);
// Releases old unsplit segments of the large pool, by garbage_collection_threshold (allocator.md §garbage-collection).
enum vram_status vr_collect_garbage(struct vr_device *device);
// Releases what is wholly free in a private pool: small, then large (allocator.md §release-of-the-cache).
enum vram_status vr_release_pool(struct vram_pool *pool);

// Visits the cudaMalloc segments that vr_release_default_pools() or, with a pool, vr_release_pool() would release, in that order, until
// visit() returns false. Adds the number of free blocks examined to *walked.
typedef bool (*vr_cached_visitor)(uint64_t address, uint64_t size_bytes, void *user);
enum vram_status vr_cached_walk(struct vr_device *device, const struct vram_pool *pool, vr_cached_visitor visit, void *user,
                                size_t *walked);

// Implements the option reclaim_streams. Finds the smallest free segment of another stream, of the same pools and size class, that can
// serve the request; the oldest among equals. Moves it to the request's stream, which then waits for the work the other stream has now.
// *block: the free block, in no index; 0 if there is none, or while a capture is under way, whose graph the wait would change. DRIVER.
enum vram_status vr_reclaim(const struct vr_alloc_request *request, uint32_t *block);

#endif
