// Checkpoints: which blocks of a private pool are live, and putting a pool back to that.
#include "core/capture/captures.h"
#include "core/serve.h"
#include "core/source/backend.h"

struct saved_block {
    uint64_t address;
    uint64_t size;
    uint64_t requested;
    uint64_t stream;
    uint8_t small;
};

struct vram_checkpoint {
    struct saved_block *blocks; // by ascending address
    size_t count;
    size_t blocks_capacity;
};

static struct saved_block save(const struct vram_allocator *allocator, const struct vr_block *block) {
    return (struct saved_block){block->address, block->size, block->requested, vr_shard_of(allocator, block)->stream, block->small};
}

// Frees that a capture put off are no obstacle once it is over (allocator.md §private-pools).
static enum vram_status settle(struct vr_device *device) {
    if (device->captures.deferred_count == 0 || vr_device_captures(device)) return VRAM_OK;
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    const enum vram_status status = vr_deferred_convert(device);
    vr_context_leave(&guard);
    return status;
}

// Lists the live blocks of a pool. INVALID_ARGUMENT while one of its blocks waits.
static enum vram_status list_live(const struct vram_pool *pool, struct vram_checkpoint *list) {
    const struct vr_device *device = pool->device;
    const struct vram_allocator *allocator = device->allocator;
    for (size_t i = 0; i < device->segments.count; i++) {
        uint32_t at = vr_segment_at(allocator, device->segments.items[i])->first;
        if (vr_shard_of(allocator, vr_block_at(allocator, at))->owner != pool) continue;
        for (; at != 0; at = vr_block_at(allocator, at)->next) {
            const struct vr_block *block = vr_block_at(allocator, at);
            if (block->state == VR_PENDING) return VRAM_INVALID_ARGUMENT;
            if (block->state != VR_ALLOCATED) continue;
            VR_TRY(VR_GROW(list, blocks, list->count + 1));
            list->blocks[list->count++] = save(allocator, block);
        }
    }
    return VRAM_OK;
}

enum vram_status vram_pool_checkpoint(struct vram_pool *pool, struct vram_checkpoint **checkpoint) {
    VR_REQUIRE(pool && checkpoint);
    if (!pool->device->allocator->backend->has_blocks) return VRAM_UNSUPPORTED;
    struct vram_checkpoint *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    vr_gather(pool->device, VR_LEVEL_ALL, 0);
    vr_device_lock(pool->device);
    enum vram_status status = settle(pool->device);
    if (status == VRAM_OK) status = list_live(pool, made);
    vr_device_unlock(pool->device);
    if (status != VRAM_OK) {
        vram_checkpoint_destroy(made);
        return status;
    }
    *checkpoint = made;
    return VRAM_OK;
}

void vram_checkpoint_destroy(struct vram_checkpoint *checkpoint) {
    if (checkpoint == NULL) return;
    free(checkpoint->blocks);
    free(checkpoint);
}

// Whether the saved block's place belongs to the pool still: then it will be free once everything of the pool is.
static bool place_is_there(const struct vram_pool *pool, const struct saved_block *saved) {
    const struct vr_device *device = pool->device;
    const struct vram_allocator *allocator = device->allocator;
    for (uint64_t address = saved->address; address < saved->address + saved->size;) {
        const uint32_t at = vr_block_containing(device, address);
        if (at == 0) return false;
        const struct vr_block *block = vr_block_at(allocator, at);
        const struct vr_shard *shard = vr_shard_of(allocator, block);
        if (block->state == VR_HOLE || shard->owner != pool || shard->stream != saved->stream || block->small != saved->small) return false;
        address = block->address + block->size;
    }
    return true;
}

static void free_live(struct vram_pool *pool, const struct saved_block *live) {
    struct vr_device *device = pool->device;
    struct vram_allocator *allocator = device->allocator;
    const uint32_t block = vr_address_map_find(&allocator->addresses, live->address);
    assert(vr_block_at(allocator, block)->held.uses == 0);
    vr_free_now(device, block);
}

// The live blocks' own streams wait for the other streams that use them: the memory goes on at once, in the order of its stream.
// INVALID_ARGUMENT where a capture forbids that.
static enum vram_status order_uses(struct vr_device *device, const struct vram_checkpoint *live) {
    struct vram_allocator *allocator = device->allocator;
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < live->count && status == VRAM_OK; i++) {
        struct vr_block *block = vr_block_at(allocator, vr_address_map_find(&allocator->addresses, live->blocks[i].address));
        if (block->held.uses == 0) continue;
        const bool forbidden = vr_any_captures(device) || vr_use_captures(device, block);
        status = forbidden ? VRAM_INVALID_ARGUMENT : vr_uses_order(device, block);
    }
    vr_context_leave(&guard);
    return status;
}

static enum vram_status make_saved(struct vram_pool *pool, const struct saved_block *saved) {
    struct vr_alloc_request request = {.size_bytes = saved->requested, .rounded = saved->size, .kind = saved->small ? VR_SMALL : VR_LARGE};
    VR_TRY(vr_shard_of_pool(pool, saved->stream, &request.shard));
    VR_TRY(vr_shard_reserve_records(request.shard, 8));
    return vr_hand_out_at(&request, saved->address, saved->size);
}

static enum vram_status restore_locked(struct vram_pool *pool, const struct vram_checkpoint *checkpoint, struct vram_checkpoint *live) {
    VR_TRY(settle(pool->device));
    VR_TRY(list_live(pool, live));
    for (size_t i = 0; i < checkpoint->count; i++) {
        if (!place_is_there(pool, &checkpoint->blocks[i])) return VRAM_INVALID_ARGUMENT;
    }
    VR_TRY(order_uses(pool->device, live));
    for (size_t i = 0; i < live->count; i++) free_live(pool, &live->blocks[i]);
    for (size_t i = 0; i < checkpoint->count; i++) VR_TRY(make_saved(pool, &checkpoint->blocks[i]));
    return VRAM_OK;
}

static void notify_restored(const struct vram_restore_observer *observer, const struct vram_checkpoint *freed,
                            const struct vram_checkpoint *created) {
    if (observer == NULL) return;
    for (size_t i = 0; observer->freed != NULL && i < freed->count; i++) observer->freed(freed->blocks[i].address, observer->user);
    for (size_t i = 0; observer->created != NULL && i < created->count; i++) {
        observer->created(created->blocks[i].address, created->blocks[i].size, observer->user);
    }
}

enum vram_status vram_pool_restore(struct vram_pool *pool, const struct vram_checkpoint *checkpoint,
                                   const struct vram_restore_observer *observer) {
    VR_REQUIRE(pool && checkpoint);
    if (!pool->device->allocator->backend->has_blocks) return VRAM_UNSUPPORTED;
    struct vram_checkpoint live = {0};
    vr_gather(pool->device, VR_LEVEL_STATE, 0);
    vr_device_lock(pool->device);
    const enum vram_status status = restore_locked(pool, checkpoint, &live);
    vr_device_unlock(pool->device);
    if (status == VRAM_OK) notify_restored(observer, &live, checkpoint);
    free(live.blocks);
    return vr_checked(pool->device->allocator, status);
}

enum vram_status vram_pool_holds_exactly(struct vram_pool *pool, const uint64_t *addresses, size_t count, bool *equal) {
    VR_REQUIRE(pool && equal && (addresses || count == 0));
    uint64_t *sorted = malloc((count + 1) * sizeof *sorted);
    if (sorted == NULL) return VRAM_NO_HOST_MEMORY;
    if (count != 0) memcpy(sorted, addresses, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, vr_order_u64);
    struct vram_checkpoint live = {0};
    vr_device_lock(pool->device);
    const enum vram_status status = list_live(pool, &live);
    vr_device_unlock(pool->device);
    bool same = live.count == count;
    for (size_t i = 0; same && i < count; i++) same = live.blocks[i].address == sorted[i];
    free(live.blocks);
    free(sorted);
    VR_TRY(status);
    *equal = same;
    return VRAM_OK;
}
