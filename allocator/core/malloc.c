// vram_malloc() and vram_pool_malloc(): requests that the front or the cache serves, under the device's lock and without allocating from
// the driver. slow.c serves all others. Also vram_malloc_at().
#include "core/alloc.h"
#include "core/front.h"
#include "core/source/source_ops.h"
#include "core/source/backend.h"

// Serves a request from the cache alone. *address stays 0 if the cache has no fitting block, or if only the slow path can decide.
VR_NOINLINE static enum vram_status malloc_cached(struct vr_shard *shard, const struct vram_pool *pool, uint64_t size_bytes,
                                                  uint64_t *address) {
    struct vr_device *device = shard->device;
    const uint32_t gate = atomic_load_explicit(&device->gate, memory_order_relaxed);
    bool polled = true;
    if (size_bytes - 1 >= VR_REQUEST_LIMIT - 1 || (gate & (VR_GATE_RAW | VR_GATE_CAPTURE | VR_GATE_COLLECT | VR_GATE_VERIFY)) != 0)
        return VRAM_OK;
    // NVIDIA's documents list no error of cuEventQuery for a missing context, so none is made current. If a driver returns one, the slow
    // path polls again with a context.
    if ((gate & VR_GATE_FENCES) != 0) VR_TRY(vr_fences_poll(device, &polled));
    if (VR_UNLIKELY((gate & VR_GATE_ROUTES) != 0 && pool == NULL)) {
        const struct vram_pool *routed = vr_route(device, shard->stream);
        if (routed != NULL) shard = vr_shard_find_in_pool(routed, shard->stream);
    }
    if (VR_UNLIKELY(shard == NULL || !polled)) return VRAM_OK;
    const struct vr_alloc_request request = vr_alloc_request_of(shard, size_bytes);
    struct vr_pool *own = &shard->pool[request.kind];
    vr_front_settle(device, own);
    // vr_alloc_block() needs two records: for the remainder before the block, and the one after it.
    if (VR_UNLIKELY(shard->spare_count < 2) && vr_shard_reserve_records(shard, 2) != VRAM_OK) return VRAM_OK;
    const uint32_t found = vr_pool_search(shard, request.kind, request.rounded, shard->expandable);
    if (found == 0) return VRAM_OK;
    const uint32_t block = vr_alloc_block(&request, found, false);
    if (VR_LIKELY(VR_FRONT_IS_ON(gate))) vr_front_open(device, own, block, size_bytes);
    *address = vr_block_at(device->allocator, block)->address;
    return VRAM_OK;
}

VR_INLINE enum vram_status malloc_on(struct vr_device *device, struct vram_pool *pool, uint64_t size_bytes, uint64_t stream,
                                     uint64_t *address) {
    enum vram_status status = VRAM_OK;
    uint64_t found = 0;
    vr_device_lock_short(device);
    struct vr_shard *shard = VR_LIKELY(pool == NULL) ? vr_shard_find(device, stream) : vr_shard_find_in_pool(pool, stream);
    if (VR_LIKELY(shard != NULL) && !vr_front_malloc(device, shard, size_bytes, &found))
        status = malloc_cached(shard, pool, size_bytes, &found);
    vr_device_unlock_short(device);
    if (VR_UNLIKELY(found == 0)) return status != VRAM_OK ? status : vr_malloc_fallback(device, pool, size_bytes, stream, address);
    *address = found;
    return VRAM_OK;
}

enum vram_status vram_malloc(struct vram_allocator *allocator, uint32_t ordinal, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    if (VR_UNLIKELY(device == NULL)) VR_TRY(vr_device_get(allocator, ordinal, &device));
    if (VR_UNLIKELY(vr_has_listener(device))) vr_gather(device, VR_LEVEL_STATE, 0);
    return vr_verify_if_enabled(allocator, malloc_on(device, NULL, size_bytes, stream, address));
}

enum vram_status vram_pool_malloc(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    VR_REQUIRE(pool && address);
    struct vr_device *device = pool->device;
    if (VR_UNLIKELY(vr_has_listener(device))) vr_gather(device, VR_LEVEL_STATE, 0);
    return vr_verify_if_enabled(device->allocator, malloc_on(device, pool, size_bytes, stream, address));
}

// --- at an address that the caller chose ----------------------------------------------------------------------------------------------

static enum vram_status malloc_locked_at(struct vr_alloc_request *request) {
    const struct vr_device *device = request->shard->device;
    struct vram_pool *pool = device->routes.count == 0 ? NULL : vr_route(request->shard->device, request->shard->stream);
    if (pool != NULL) VR_TRY(vr_shard_of_pool(pool, request->shard->stream, &request->shard));
    if (device->vacant != NULL) VR_TRY(vr_vacant_request(request->shard->device, request->shard->owner));
    VR_TRY(vr_shard_reserve_records(request->shard, 2));
    return vr_alloc_at(request, vr_block_containing(device, request->address));
}

enum vram_status vram_malloc_at(struct vram_allocator *allocator, uint32_t ordinal, uint64_t size_bytes, uint64_t stream,
                                uint64_t address) {
    VR_REQUIRE(allocator);
    if (size_bytes == 0 || size_bytes >= VR_REQUEST_LIMIT || address % VR_MIN_BLOCK != 0 || !vram_caching(allocator))
        return VRAM_INVALID_ARGUMENT;
    if (!allocator->backend->has_blocks) return VRAM_UNSUPPORTED;
    struct vr_device *device = NULL;
    struct vr_shard *shard = NULL;
    VR_TRY(vr_device_get(allocator, ordinal, &device));
    VR_TRY(vr_shard_get(device, stream, &shard));
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    vr_gather(device, VR_LEVEL_STATE, 0);
    vr_device_lock_guarded(device, &guard);
    struct vr_alloc_request request = vr_alloc_request_of(shard, size_bytes);
    request.address = address;
    enum vram_status status = vr_complete_frees(device, stream);
    if (status == VRAM_OK) status = malloc_locked_at(&request);
    vr_device_unlock(device);
    vr_context_leave(&guard);
    return vr_verify_if_enabled(allocator, status);
}
