// Checkpoints: records which blocks of a private pool are live, and restores the pool to that state.
#include "core/capture/captures.h"
#include "core/alloc.h"
#include "core/source/backend.h"
#include "core/source/source_ops.h"
#include "core/verifier.h"

struct saved_block {
    uint64_t address;
    uint64_t size;
    uint64_t segment; // base address of its segment
    uint64_t stream;
    uint8_t small;
    bool live; // allocated and not lent by a graph; otherwise free, pending or lent
};

struct vram_checkpoint {
    struct saved_block *blocks; // grouped by segment; by ascending address in each
    size_t count;
    size_t blocks_capacity;
};

// Returns whether the block is live and belongs to the pool's own program; a loan belongs to another request (lending.h).
static bool is_own_live(const struct vr_block *block) { return block->state == VR_ALLOCATED && !block->of_graph; }

static struct saved_block saved_block_of(const struct vram_allocator *allocator, const struct vr_block *block) {
    return (struct saved_block){.address = block->address,
                                .size = block->size,
                                .segment = vr_segment_at(allocator, block->segment)->address,
                                .stream = vr_shard_of(allocator, block)->stream,
                                .small = block->small,
                                .live = is_own_live(block)};
}

// Completes the frees that ended captures deferred, so that they do not block a checkpoint (allocator.md §private-pools).
static enum vram_status complete_all_frees(struct vr_device *device) {
    if (device->captures.deferred_count == 0 || vr_device_captures(device)) return VRAM_OK;
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    const enum vram_status status = vr_deferred_convert(device);
    vr_context_leave(&guard);
    return status;
}

// Returns whether the pool has slots. A checkpoint cannot restore these; only pools unknown to graphs have them.
static bool has_slots(const struct vram_pool *pool) {
    for (size_t i = 0; i < pool->shard_count; i++)
        if (pool->shards[i]->kept != NULL) return true;
    return false;
}

struct slot_list {
    const struct vram_allocator *allocator;
    struct vram_checkpoint *list;
};

static enum vram_status list_slot(uint32_t block, void *user) {
    const struct slot_list *slots = user;
    struct vram_checkpoint *list = slots->list;
    if (vr_block_at(slots->allocator, block)->state != VR_ALLOCATED) return VRAM_OK;
    VR_TRY(VR_GROW(list, blocks, list->count + 1));
    list->blocks[list->count++] = saved_block_of(slots->allocator, vr_block_at(slots->allocator, block));
    return VRAM_OK;
}

static enum vram_status list_slots(const struct vram_pool *pool, struct vram_checkpoint *list) {
    return vr_source_each_slot(pool->device, pool, list_slot, &(struct slot_list){pool->device->allocator, list});
}

// Lists a pool's live blocks (only_live), or all its mapped blocks.
static enum vram_status list_pieces(const struct vram_pool *pool, bool only_live, struct vram_checkpoint *list) {
    const struct vr_device *device = pool->device;
    const struct vram_allocator *allocator = device->allocator;
    for (uint32_t number = vr_segment_first(device); number != 0; number = vr_segment_after(device, number)) {
        uint32_t at = vr_segment_at(allocator, number)->first;
        if (vr_shard_of(allocator, vr_block_at(allocator, at))->owner != pool) continue;
        if (vr_segment_at(allocator, number)->source->has_slots) continue;
        for (; at != 0; at = vr_block_at(allocator, at)->next) {
            const struct vr_block *block = vr_block_at(allocator, at);
            if (block->state == VR_HOLE || (only_live && !is_own_live(block))) continue;
            VR_TRY(VR_GROW(list, blocks, list->count + 1));
            list->blocks[list->count++] = saved_block_of(allocator, block);
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
    enum vram_status status = vr_is_vacant(pool->device, pool) ? VRAM_ASLEEP : complete_all_frees(pool->device);
    if (status == VRAM_OK && has_slots(pool)) status = VRAM_UNSUPPORTED;
    if (status == VRAM_OK) status = list_pieces(pool, false, made);
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

// Returns whether the saved block's range still belongs to the pool. If so, it is free once all blocks of the pool are.
static bool place_is_there(const struct vram_pool *pool, const struct saved_block *saved) {
    const struct vram_allocator *allocator = pool->device->allocator;
    const uint64_t end = saved->address + saved->size;
    for (uint32_t at = vr_block_containing(pool->device, saved->address); at != 0; at = vr_block_at(allocator, at)->next) {
        const struct vr_block *block = vr_block_at(allocator, at);
        const struct vr_shard *shard = vr_shard_of(allocator, block);
        if (block->state == VR_HOLE || shard->owner != pool || shard->stream != saved->stream || block->small != saved->small) return false;
        if (block->address + block->size >= end) return true;
    }
    return false;
}

static void free_live(struct vram_pool *pool, const struct saved_block *live) {
    const struct vram_allocator *allocator = pool->device->allocator;
    const uint32_t block = vr_address_map_find(&allocator->addresses, live->address);
    vr_free_now(vr_shard_of(allocator, vr_block_at(allocator, block)), block);
}

// Makes the owning streams of used or pending blocks wait for the other streams, so that the memory is reusable at once in stream order.
// Returns INVALID_ARGUMENT, with nothing ordered, if a capture forbids that.
static enum vram_status order_uses(const struct vram_pool *pool, const struct vram_checkpoint *all) {
    struct vr_device *device = pool->device;
    struct vram_allocator *allocator = device->allocator;
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < all->count && status == VRAM_OK; i++) {
        const uint32_t at = vr_block_containing(device, all->blocks[i].address);
        const struct vr_block *block = vr_block_at(allocator, at);
        const bool waits = block->state == VR_PENDING, used = block->state == VR_ALLOCATED && block->held.uses != 0;
        if ((waits || used) && (vr_any_captures(device) || vr_use_captures(device, block, NULL))) status = VRAM_INVALID_ARGUMENT;
    }
    for (size_t i = 0; i < all->count && status == VRAM_OK; i++) {
        struct vr_block *block = vr_block_at(allocator, vr_block_containing(device, all->blocks[i].address));
        if (block->state == VR_ALLOCATED && block->held.uses != 0) status = vr_uses_order(device, block);
    }
    if (status == VRAM_OK) status = vr_fences_order_pool(device, pool);
    vr_context_leave(&guard);
    return status;
}

// Like PyTorch, records the block's size as its requested size.
static enum vram_status make_saved(struct vram_pool *pool, const struct saved_block *saved) {
    struct vr_alloc_request request = {.size_bytes = saved->size,
                                       .rounded = saved->size,
                                       .kind = saved->small ? VR_SMALL : VR_LARGE,
                                       .exact = true,
                                       .address = saved->address};
    VR_TRY(vr_shard_of_pool(pool, saved->stream, &request.shard));
    VR_TRY(vr_shard_reserve_records(request.shard, 2));
    return vr_alloc_at(&request, vr_block_containing(request.shard->device, request.address));
}

// Returns whether the block is to be allocated. A free block is skipped if its memory was returned to the driver, or if it is a block of
// the large pool of 1 MiB or less, left by vram_malloc_at(): no request could have it.
static bool is_made(const struct vram_pool *pool, const struct saved_block *saved) {
    return saved->live || ((saved->small != 0 || saved->size > VR_SMALL_LIMIT) && place_is_there(pool, saved));
}

// Restores one segment, saved[0, count): allocates all its blocks in order, then frees those that were free. This reproduces the splits
// whatever the current options say, and PyTorch's counters.
static enum vram_status make_segment(struct vram_pool *pool, const struct saved_block *saved, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (is_made(pool, &saved[i])) VR_TRY(make_saved(pool, &saved[i]));
    }
    for (size_t i = 0; i < count; i++) {
        if (!saved[i].live && is_made(pool, &saved[i])) free_live(pool, &saved[i]);
    }
    return VRAM_OK;
}

static enum vram_status check_places(const struct vram_pool *pool, const struct vram_checkpoint *checkpoint) {
    for (size_t i = 0; i < checkpoint->count; i++) {
        if (checkpoint->blocks[i].live && !place_is_there(pool, &checkpoint->blocks[i])) return VRAM_INVALID_ARGUMENT;
    }
    return VRAM_OK;
}

// Called under all locks. Stores the pool's previous blocks in *all.
static enum vram_status restore_locked(struct vram_pool *pool, const struct vram_checkpoint *checkpoint, struct vram_checkpoint *all) {
    VR_ASSERT_ALL_LOCKED(pool->device);
    if (vr_is_vacant(pool->device, pool)) return VRAM_ASLEEP;
    if (has_slots(pool)) return VRAM_UNSUPPORTED;
    if (pool->lending.live != 0) return VRAM_LENT;
    VR_TRY(complete_all_frees(pool->device));
    VR_TRY(list_pieces(pool, false, all));
    VR_TRY(check_places(pool, checkpoint));
    VR_TRY(order_uses(pool, all));
    vr_pool_give_up_check(pool->device, pool); // its blocks come and go without the verifier
    for (size_t i = 0; i < all->count; i++) {
        if (all->blocks[i].live) free_live(pool, &all->blocks[i]);
    }
    for (size_t from = 0, end; from < checkpoint->count; from = end) {
        for (end = from + 1; end < checkpoint->count && checkpoint->blocks[end].segment == checkpoint->blocks[from].segment;) end++;
        VR_TRY(make_segment(pool, &checkpoint->blocks[from], end - from));
    }
    return VRAM_OK;
}

static void notify_restored(const struct vram_restore_observer *observer, const struct vram_checkpoint *freed,
                            const struct vram_checkpoint *created) {
    if (observer == NULL) return;
    for (size_t i = 0; observer->freed != NULL && i < freed->count; i++) {
        if (freed->blocks[i].live) observer->freed(freed->blocks[i].address, observer->user);
    }
    for (size_t i = 0; observer->created != NULL && i < created->count; i++) {
        if (created->blocks[i].live) observer->created(created->blocks[i].address, created->blocks[i].size, observer->user);
    }
}

enum vram_status vram_pool_restore(struct vram_pool *pool, const struct vram_checkpoint *checkpoint,
                                   const struct vram_restore_observer *observer) {
    VR_REQUIRE(pool && checkpoint);
    if (!pool->device->allocator->backend->has_blocks) return VRAM_UNSUPPORTED;
    struct vram_checkpoint all = {0};
    vr_gather(pool->device, VR_LEVEL_STATE, 0);
    vr_device_lock(pool->device);
    const enum vram_status status = restore_locked(pool, checkpoint, &all);
    vr_device_unlock(pool->device);
    if (status == VRAM_OK) notify_restored(observer, &all, checkpoint);
    free(all.blocks);
    return vr_verify_if_enabled(pool->device->allocator, status);
}

static int saved_by_address(const void *a, const void *b) {
    const struct saved_block *x = a, *y = b;
    return VR_ORDER(x->address, y->address);
}

enum vram_status vram_pool_holds_exactly(struct vram_pool *pool, const uint64_t *addresses, size_t count, bool *equal) {
    VR_REQUIRE(pool && equal && (addresses || count == 0));
    uint64_t *sorted = malloc((count + 1) * sizeof *sorted);
    if (sorted == NULL) return VRAM_NO_HOST_MEMORY;
    if (count != 0) memcpy(sorted, addresses, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, vr_order_u64);
    struct vram_checkpoint live = {0};
    vr_device_lock(pool->device);
    enum vram_status status = list_pieces(pool, true, &live);
    if (status == VRAM_OK) status = list_slots(pool, &live);
    vr_device_unlock(pool->device);
    if (live.count != 0) qsort(live.blocks, live.count, sizeof *live.blocks, saved_by_address);
    bool same = live.count == count;
    for (size_t i = 0; same && i < count; i++) same = live.blocks[i].address == sorted[i];
    free(live.blocks);
    free(sorted);
    VR_TRY(status);
    *equal = same;
    return VRAM_OK;
}
