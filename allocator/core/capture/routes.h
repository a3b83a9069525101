// routes.h: what sends requests to private pools.
#ifndef VR_CORE_CAPTURE_ROUTES_H
#define VR_CORE_CAPTURE_ROUTES_H

#include "base/base.h"
#include "vram/pool.h"

struct vr_device;

// An open route: requests that it accepts go to its pool, of which it holds a reference.
struct vr_open_route {
    struct vram_pool *pool;
    struct vram_route route;
    uint64_t thread;
};

// Of a device. Guarded by all its locks; VR_GATE_ROUTES is set while there are any.
struct vr_routes {
    struct vr_open_route *items; // oldest first
    size_t count;
    size_t items_capacity;
};

// The pool that a request on `stream` is routed to by this thread; NULL: the default pools. Under all locks.
struct vram_pool *vr_route(struct vr_device *device, uint64_t stream);

// The same, where nobody outside must be asked for it: false where a function of the user or the driver decides. Under any lock of the
// device.
bool vr_route_plain(const struct vr_device *device, uint64_t stream, struct vram_pool **pool);

// Whether the stream takes part in a capture, and the id of the pool that its requests are routed to then; *id is untouched otherwise.
// Takes the locks.
bool vr_capture_pool(struct vr_device *device, uint64_t stream, struct vram_pool_id *id);
// Whether a route leads into the pool of this id. device may be NULL: none does. Takes the locks.
bool vr_pool_is_filled(struct vr_device *device, struct vram_pool_id id);

// Opens and closes a route. Under all locks. vr_route_close: false when there is no such route.
enum vram_status vr_route_open(struct vram_pool *pool, const struct vram_route *route);
bool vr_route_close(struct vram_pool *pool, const struct vram_route *route);

#endif
