// private.h: private pools inside the allocator; routes into them.
#ifndef VR_CORE_CAPTURE_PRIVATE_H
#define VR_CORE_CAPTURE_PRIVATE_H

#include "core/device.h"

// The pool that a request on `stream` is routed to by this thread; NULL: the default pools. Under all locks.
struct vram_pool *vr_route(struct vr_device *device, uint64_t stream);

// Whether the stream takes part in a capture, and the id of the pool that its requests are routed to then; *id is untouched otherwise.
// Takes the locks.
bool vr_capture_pool(struct vr_device *device, uint64_t stream, struct vram_pool_id *id);
// Whether a route leads into the pool of this id. device may be NULL: none does. Takes the locks.
bool vr_pool_is_filled(struct vr_device *device, struct vram_pool_id id);

// References, under all locks. Dropping the last makes the pool freeable.
void vr_private_retain(struct vram_pool *pool);
void vr_private_drop(struct vram_pool *pool);

// Releases what is wholly free in the pool: small, then large (allocator-behaviour 3.7). Under all locks, context current.
enum vram_status vr_private_shrink(struct vram_pool *pool);
// The same for every freeable pool; pools that hold nothing more are gone afterwards.
enum vram_status vr_private_shrink_freeable(struct vr_device *device);
// Frees the structs of all pools. At the end only.
void vr_private_release_all(struct vr_device *device);

// Opens and closes a route. Under all locks. vr_route_close: false when there is no such route.
enum vram_status vr_route_open(struct vram_pool *pool, const struct vram_route *route);
bool vr_route_close(struct vram_pool *pool, const struct vram_route *route);

#endif
