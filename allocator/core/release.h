// release.h: giving cached memory back to the driver. All under all locks of the device, with its context current.
#ifndef VR_CORE_RELEASE_H
#define VR_CORE_RELEASE_H

#include "core/alloc.h"

// everything: waits for all fences, then releases everything that is wholly free: the large pools, then the small ones, each in the order
// (stream, size, tie, address), cudaMalloc segments before pages of expandable ones (allocator.md §release-of-the-cache). Pages whose
// stream captures stay. Then, always, the private pools that nobody references any more. The first failure is returned after all else was
// tried.
enum vram_status vr_release_all(struct vr_device *device, bool everything);
// The first part of it.
enum vram_status vr_release_default_pools(struct vr_device *device);
// Releases what is wholly free in the pools of one kind of these shards, in their order.
enum vram_status vr_release_kind(struct vr_shard *const *shards, size_t count, unsigned kind);
// The part of it that a request may try first when max_split_size is set (allocator.md §release-of-oversize-blocks): *enough whether
// `rounded` bytes' worth went back.
enum vram_status vr_release_available(struct vr_shard *shard, unsigned pool, uint64_t rounded, bool *enough);
// garbage_collection_threshold (allocator.md §garbage-collection): old unsplit segments of the large pool go back.
enum vram_status vr_collect_garbage(struct vr_device *device);
// Releases what is wholly free in a private pool: small, then large (allocator.md §release-of-the-cache).
enum vram_status vr_release_pool(struct vram_pool *pool);

// The cudaMalloc segments that the former two would give back, of the default pools or (pool not NULL) of a private one, in their order,
// until visit() says false. *walked grows by the free blocks that were looked at.
typedef bool (*vr_cached_visitor)(uint64_t address, uint64_t size_bytes, void *user);
enum vram_status vr_cached_walk(struct vr_device *device, const struct vram_pool *pool, vr_cached_visitor visit, void *user,
                                size_t *walked);

// The option reclaim_streams. The smallest free segment of another stream, of the same pools and size class, that may serve the request; of
// equal ones the oldest. It belongs to the request's stream from now on, which waits for all that the other stream has now: *block, free
// and in no index; 0 when there is none, or while a capture is under way, whose graph the waiting would change. DRIVER. Under all locks,
// context current.
enum vram_status vr_reclaim(const struct vr_alloc_request *request, uint32_t *block);

#endif
