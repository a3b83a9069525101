// Blocks at exact addresses: vram_malloc_at(), and checkpoints of private pools, which need them.
#include "core/alloc.h"
#include "core/sleep/sleepers.h"
#include "core/source/backend.h"

enum vram_status vr_alloc_at(const struct vr_alloc_request *request, uint64_t address, uint64_t block_size) {
    struct vr_shard *shard = request->shard;
    struct vr_device *device = shard->device;
    struct vram_allocator *allocator = device->allocator;
    uint32_t block = vr_block_containing(device, address);
    if (block == 0) return VRAM_INVALID_ARGUMENT;
    const struct vr_block *item = vr_block_at(allocator, block);
    // The address map counts on blocks of the large pool being longer than 1 MiB.
    if (request->kind == VR_LARGE && block_size <= VR_SMALL_LIMIT) return VRAM_INVALID_ARGUMENT;
    if (item->state != VR_FREE || vr_shard_of(allocator, item) != shard || item->small != request->kind ||
        !vr_block_holds(item, address, block_size) || address % VR_MIN_BLOCK != 0 || block_size % VR_MIN_BLOCK != 0) {
        return VRAM_INVALID_ARGUMENT;
    }
    vr_pool_remove(shard, block);
    if (item->address < address) block = vr_split_off_below(request, block, address);
    vr_alloc_part(request, block, block_size, true);
    return VRAM_OK;
}

// What the split rules give a request at this address: its rounded size, or all that is there.
static enum vram_status serve_at(struct vr_alloc_request *request, uint64_t address) {
    const struct vr_device *device = request->shard->device;
    struct vram_pool *pool = device->routes.count == 0 ? NULL : vr_route(request->shard->device, request->shard->stream);
    if (pool != NULL) VR_TRY(vr_shard_of_pool(pool, request->shard->stream, &request->shard));
    if (device->sleepers != NULL) VR_TRY(vr_sleeper_request(request->shard->device, request->shard->owner));
    VR_TRY(vr_shard_reserve_records(request->shard, 8));
    const uint32_t found = vr_block_containing(device, address);
    if (found == 0 || vr_block_at(device->allocator, found)->state != VR_FREE) return VRAM_INVALID_ARGUMENT;
    struct vr_block rest = *vr_block_at(device->allocator, found);
    if (!vr_block_holds(&rest, address, request->rounded)) return VRAM_INVALID_ARGUMENT;
    rest.size -= address - rest.address;
    return vr_alloc_at(request, address, vr_pool_splits(request->shard, &rest, request->rounded) ? request->rounded : rest.size);
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
    struct vr_alloc_request request = {.shard = shard, .size_bytes = size_bytes, .rounded = vr_round_for(device, size_bytes)};
    request.kind = vr_pool_kind(request.rounded);
    enum vram_status status = vr_complete_frees(device, stream);
    if (status == VRAM_OK) status = serve_at(&request, address);
    vr_device_unlock(device);
    vr_context_leave(&guard);
    return vr_verify_if_enabled(allocator, status);
}
