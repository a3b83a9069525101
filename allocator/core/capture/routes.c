// Chooses the pool for a request.
#include "core/capture/routes.h"
#include "core/capture/captures.h"
#include "core/device.h"

static bool route_accepts(const struct vr_device *device, const struct vr_open_route *open, uint64_t stream) {
    switch (open->route.kind) {
    case VRAM_ROUTE_THREAD: return open->thread == vr_os_thread_id();
    case VRAM_ROUTE_STREAM: return open->route.stream == stream;
    case VRAM_ROUTE_FILTER: return open->route.accepts(stream, open->route.user);
    case VRAM_ROUTE_CAPTURE: return open->route.stream == stream || vr_same_capture(device, open->route.stream, stream);
    default: return true;
    }
}

struct vram_pool *vr_route(struct vr_device *device, uint64_t stream) {
    VR_ASSERT_LOCKED(device);
    for (size_t i = device->routes.count; i-- > 0;) {
        if (route_accepts(device, &device->routes.items[i], stream)) return device->routes.items[i].pool;
    }
    return NULL;
}

bool vr_capture_pool(struct vr_device *device, uint64_t stream, struct vram_pool_id *id) {
    if ((atomic_load_explicit(&device->gate, memory_order_relaxed) & VR_GATE_CAPTURE) == 0) return false;
    vr_device_lock(device);
    const struct vram_pool *pool = vr_is_capturing(device, stream) ? vr_route(device, stream) : NULL;
    if (pool != NULL) *id = pool->id;
    vr_device_unlock(device);
    return pool != NULL;
}

bool vr_pool_is_filled(struct vr_device *device, struct vram_pool_id id) {
    bool filled = false;
    if (device == NULL) return false;
    vr_device_lock(device);
    for (size_t i = 0; i < device->routes.count && !filled; i++) {
        const struct vram_pool_id *open = &device->routes.items[i].pool->id;
        filled = open->first == id.first && open->second == id.second;
    }
    vr_device_unlock(device);
    return filled;
}

enum vram_status vr_route_open(struct vram_pool *pool, const struct vram_route *route) {
    VR_ASSERT_ALL_LOCKED(pool->device);
    struct vr_device *device = pool->device;
    VR_TRY(VR_GROW(&device->routes, items, device->routes.count + 1));
    device->routes.items[device->routes.count++] = (struct vr_open_route){.pool = pool, .route = *route, .thread = vr_os_thread_id()};
    vr_private_retain(pool);
    vr_device_gate(device, VR_GATE_ROUTES, true);
    return VRAM_OK;
}

static bool is_route(const struct vr_open_route *open, const struct vram_pool *pool, const struct vram_route *route) {
    if (open->pool != pool || open->route.kind != route->kind) return false;
    switch (route->kind) {
    case VRAM_ROUTE_THREAD: return open->thread == vr_os_thread_id();
    case VRAM_ROUTE_ALL: return true;
    case VRAM_ROUTE_FILTER: return open->route.accepts == route->accepts && open->route.user == route->user;
    default: return open->route.stream == route->stream;
    }
}

bool vr_route_close(struct vram_pool *pool, const struct vram_route *route) {
    VR_ASSERT_ALL_LOCKED(pool->device);
    struct vr_device *device = pool->device;
    for (size_t i = device->routes.count; i-- > 0;) {
        if (!is_route(&device->routes.items[i], pool, route)) continue;
        device->routes.count--;
        memmove(&device->routes.items[i], &device->routes.items[i + 1], (device->routes.count - i) * sizeof *device->routes.items);
        vr_device_gate(device, VR_GATE_ROUTES, device->routes.count != 0);
        vr_private_drop(pool);
        return true;
    }
    return false;
}
