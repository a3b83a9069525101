// routes.h: the routes that send requests to private pools.
#ifndef VR_CORE_CAPTURE_ROUTES_H
#define VR_CORE_CAPTURE_ROUTES_H

#include "base/base.h"
#include "vram/pool.h"

struct vr_device;

// An open route. Sends the requests that it accepts to its pool, to which it holds a reference.
struct vr_open_route {
    struct vram_pool *pool;
    struct vram_route route;
    uint64_t thread;
};

// A device's open routes. Guarded by all locks of the device; VR_GATE_ROUTES is set while there are any.
struct vr_routes {
    struct vr_open_route *items; // oldest first
    size_t count;
    size_t items_capacity;
};

// Returns the pool to which a request by this thread on `stream` is routed, or NULL for the default pools. Under the device's lock.
struct vram_pool *vr_route(struct vr_device *device, uint64_t stream);

// Returns whether the stream takes part in a capture whose requests are routed to a pool, and sets *id to that pool's id. Otherwise leaves
// *id unchanged. Takes the locks.
bool vr_capture_pool(struct vr_device *device, uint64_t stream, struct vram_pool_id *id);
// Returns whether an open route leads to the pool with this id; false if device is NULL. Takes the locks.
bool vr_pool_is_filled(struct vr_device *device, struct vram_pool_id id);

// Open and close a route. Under all locks. vr_route_close() returns false if there is no such route.
enum vram_status vr_route_open(struct vram_pool *pool, const struct vram_route *route);
bool vr_route_close(struct vram_pool *pool, const struct vram_route *route);

#endif
