// Lends memory of graphs, and takes it back. A loan is a block that the borrower's stream uses as if vram_record_stream() had been called:
// what its free leaves behind is ordered like any other use, so that free blocks stay free in the order of their own stream.
#include "core/capture/lending.h"
#include "core/alloc.h"
#include "core/capture/captures.h"

// --- lending -------------------------------------------------------------------------------------------------------------------------

static bool may_lend(const struct vram_pool *pool) {
    const struct vr_lending *lending = &pool->lending;
    return pool->captured && pool->options.allocate == NULL && lending->launching == 0 && !lending->barred;
}

static uint32_t find_in_shard(const struct vr_shard *shard, const struct vr_alloc_request *request) {
    const uint32_t block = vr_pool_search(shard, request->kind, request->rounded, shard->expandable);
    return vr_is_slot(vr_block_at(shard->device->allocator, block)) ? 0 : block;
}

// Finds the smallest block that fits in the pools that may lend.
static uint32_t find_lender(const struct vr_alloc_request *request, struct vr_shard **lender) {
    const struct vr_device *device = request->shard->device;
    uint32_t best = 0;
    for (const struct vram_pool *pool = device->pools; pool != NULL; pool = pool->next) {
        for (size_t i = 0; may_lend(pool) && i < pool->shard_count; i++) {
            const uint32_t block = find_in_shard(pool->shards[i], request);
            if (block == 0) continue;
            if (best != 0 && vr_block_at(device->allocator, block)->size >= vr_block_at(device->allocator, best)->size) continue;
            best = block;
            *lender = pool->shards[i];
        }
    }
    return best;
}

// Ensures that the shard has a spare record for the borrower's use.
static enum vram_status reserve_use(struct vr_shard *shard) {
    struct vram_allocator *allocator = shard->device->allocator;
    uint32_t made = 0;
    if (shard->spare_uses != 0) return VRAM_OK;
    VR_TRY(vr_slab_take(&allocator->uses, 1, &made));
    vr_use_at(allocator, made)->next = 0;
    shard->spare_uses = made;
    return VRAM_OK;
}

// Captures that vram does not know forbid an event on their streams.
static bool any_captures(const struct vr_shard *lender, uint64_t stream) {
    const struct vr_device *device = lender->device;
    const struct vr_lending *lending = &lender->owner->lending;
    bool captures = vr_any_captures(device) || vr_stream_is_capturing(device, stream) || vr_stream_is_capturing(device, lender->stream) ||
                    (lending->has_lent && vr_stream_is_capturing(device, lending->last));
    for (size_t i = 0; i < lending->launched_count && !captures; i++) captures = vr_stream_is_capturing(device, lending->launched[i]);
    return captures;
}

static enum vram_status order_streams(struct vr_device *device, uint64_t before, uint64_t after) {
    return before == after ? VRAM_OK : vr_streams_order(device, before, after);
}

// Makes the borrower's stream wait for all launches so far, and for the work that the lender's stream has.
static enum vram_status order_borrower(struct vr_shard *lender, uint64_t stream) {
    struct vr_device *device = lender->device;
    struct vr_lending *lending = &lender->owner->lending;
    for (size_t i = 0; i < lending->launched_count; i++) VR_TRY(order_streams(device, lending->launched[i], stream));
    if (lending->has_lent) VR_TRY(order_streams(device, lending->last, stream));
    return order_streams(device, lender->stream, stream);
}

// The launches since the last loan waited for what was lent before it.
static void note_borrower(struct vram_pool *pool, uint64_t stream) {
    struct vr_lending *lending = &pool->lending;
    for (size_t i = 0; lending->launched_count != 0 && i < pool->shard_count; i++) pool->shards[i]->lends = false;
    lending->launched_count = 0;
    lending->has_lent = true;
    lending->last = stream;
}

enum vram_status vr_lending_borrow(struct vr_alloc_request *request, uint32_t *block) {
    struct vr_device *device = request->shard->device;
    VR_ASSERT_ALL_LOCKED(device);
    const uint64_t stream = request->shard->stream;
    struct vr_shard *lender = NULL;
    *block = 0;
    if (!device->options.lend_graph_pools || request->shard->owner != NULL) return VRAM_OK;
    const uint32_t found = find_lender(request, &lender);
    if (found == 0 || any_captures(lender, stream)) return VRAM_OK;
    VR_TRY(vr_shard_reserve_records(lender, 8));
    VR_TRY(reserve_use(lender));
    VR_TRY(order_borrower(lender, stream));
    note_borrower(lender->owner, stream);
    lender->lends = true;
    device->stats.moved_bytes += (int64_t)request->rounded;
    vr_pool_remove(lender, found);
    request->shard = lender;
    *block = found;
    return VRAM_OK;
}

void vr_lending_hand_out(struct vr_shard *lender, struct vr_block *item, uint64_t stream) {
    VR_ASSERT_ALL_LOCKED(lender->device);
    assert(item->state == VR_ALLOCATED && lender->owner->captured && lender->lends);
    item->of_graph = true;
    lender->owner->lending.live++;
    if (stream == lender->stream) return;
    const enum vram_status status = vr_uses_add(lender->device->allocator, item, stream, false);
    assert(status == VRAM_OK); // reserve_use()
    (void)status;
}

// --- launches ------------------------------------------------------------------------------------------------------------------------

static bool waits_already(const struct vr_lending *lending, uint64_t stream) {
    for (size_t i = 0; i < lending->launched_count; i++)
        if (lending->launched[i] == stream) return true;
    return false;
}

// Returns whether blocks were lent for which a launch on the stream has not waited yet.
static bool must_wait(const struct vram_pool *pool, uint64_t stream) {
    bool lent = false;
    for (size_t i = 0; i < pool->shard_count; i++) lent |= pool->shards[i]->lends;
    return lent && !waits_already(&pool->lending, stream);
}

static enum vram_status refuse_launch(struct vram_error *error, const char *why) {
    return vr_fail(error, VRAM_LENT, VRAM_NO_OFFSET, "memory of the graph's pool is lent (lend_graph_pools) %s", why);
}

// Finds a live loan for the message.
static enum vram_status refuse_for_loan(const struct vram_pool *pool, struct vram_error *error) {
    const struct vram_allocator *allocator = pool->device->allocator;
    for (uint32_t segment = pool->all_segments.first; segment != 0; segment = vr_segment_at(allocator, segment)->next) {
        for (uint32_t at = vr_segment_at(allocator, segment)->first; at != 0; at = vr_block_at(allocator, at)->next) {
            const struct vr_block *block = vr_block_at(allocator, at);
            if (vr_is_slot(block)) break;
            if (!block->of_graph) continue;
            return vr_fail(
                error, VRAM_LENT, VRAM_NO_OFFSET,
                "the graph would overwrite the block of %llu bytes at 0x%llx, which its pool lent (lend_graph_pools), and %u more; "
                "free it before the launch",
                (unsigned long long)block->size, (unsigned long long)block->address, (unsigned)(pool->lending.live - 1));
        }
    }
    return refuse_launch(error, "to a block that is not freed yet");
}

// Returns whether the stream's own order is not enough.
static bool needs_driver(const struct vram_pool *pool, uint64_t stream) {
    const struct vr_device *device = pool->device;
    bool needs = device->captures.deferred_count != 0 || vr_fences_wait_for_any(&device->fences);
    for (size_t i = 0; i < pool->shard_count; i++) needs |= pool->shards[i]->lends && pool->shards[i]->stream != stream;
    return needs;
}

// Makes the launch's stream wait for all blocks that were lent and freed: the streams of these blocks wait for the fences, and the launch's
// stream for them.
static enum vram_status order_launch(struct vram_pool *pool, uint64_t stream) {
    struct vr_device *device = pool->device;
    struct vr_context_guard guard;
    if (!needs_driver(pool, stream)) return VRAM_OK;
    VR_TRY(vr_context_enter(device, &guard));
    enum vram_status status = vr_deferred_convert(device);
    if (status == VRAM_OK) status = vr_fences_order_pool(device, pool);
    for (size_t i = 0; i < pool->shard_count && status == VRAM_OK; i++)
        if (pool->shards[i]->lends) status = order_streams(device, pool->shards[i]->stream, stream);
    vr_context_leave(&guard);
    return status;
}

enum vram_status vr_lending_begin_launch(struct vram_pool *pool, uint64_t stream, struct vram_error *error) {
    VR_ASSERT_ALL_LOCKED(pool->device);
    struct vr_lending *lending = &pool->lending;
    const bool waits = must_wait(pool, stream);
    if (lending->live != 0) return refuse_for_loan(pool, error);
    if (waits && vr_any_captures(pool->device)) return refuse_launch(error, "and a capture forbids the wait for it");
    lending->barred |= vr_is_capturing(pool->device, stream);
    if (!waits_already(lending, stream)) {
        VR_TRY(VR_GROW(lending, launched, lending->launched_count + 1));
        if (waits) VR_TRY(order_launch(pool, stream));
        lending->launched[lending->launched_count++] = stream;
    }
    lending->launching++;
    return VRAM_OK;
}

void vr_lending_end_launch(struct vram_pool *pool) {
    VR_ASSERT_ALL_LOCKED(pool->device);
    assert(pool->lending.launching != 0);
    pool->lending.launching--;
}

enum vram_status vram_pool_launch_begin(struct vram_pool *pool, uint64_t stream, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, pool);
    vr_error_clear(error);
    vr_device_lock(pool->device);
    const enum vram_status status = vr_lending_begin_launch(pool, stream, error);
    vr_device_unlock(pool->device);
    return vr_error_complete(error, status);
}

void vram_pool_launch_end(struct vram_pool *pool) {
    if (pool == NULL) return;
    vr_device_lock(pool->device);
    vr_lending_end_launch(pool);
    vr_device_unlock(pool->device);
}
