// The slow path of malloc, with the whole device locked: fences, callbacks, garbage collection, new memory, the ladder of retries, the
// report.
#include "core/alloc.h"
#include "core/capture/lending.h"
#include "core/callbacks.h"
#include "core/capture/captures.h"
#include "core/oom_report.h"
#include "core/release.h"
#include "core/source/backend.h"
#include "core/source/source_ops.h"
#include "core/verifier.h"

// The result of an attempt to get new memory.
struct attempt {
    enum vram_status status;
    bool limit_hit;
};

static bool has_gate(const struct vr_device *device, uint32_t bit) {
    return (atomic_load_explicit(&device->gate, memory_order_relaxed) & bit) != 0;
}

static uint32_t search_shard(struct vr_shard *shard, const struct vr_alloc_request *request, bool with_expandable) {
    if (request->kind == VR_LARGE && shard->kept != NULL) shard->kept->source->recall_slots(shard, request->rounded);
    return vr_pool_search(shard, request->kind, request->rounded, with_expandable);
}

// Searches the cache. Each search of a default pool advances the garbage collector's clock by one, while garbage collection is on.
static uint32_t search_counted(const struct vr_alloc_request *request) {
    const struct vr_shard *shard = request->shard;
    if (has_gate(shard->device, VR_GATE_COLLECT) && shard->owner == NULL) shard->device->clock[request->kind]++;
    return search_shard(request->shard, request, shard->expandable);
}

// Checks the option's share of the device before the driver is asked (allocator.md §limits).
static bool is_rejected(const struct vr_device *device, uint64_t held, uint64_t segment_bytes) {
    if (!device->options.throw_on_malloc_oom) return false;
    const uint64_t most = (uint64_t)(device->options.per_process_memory_fraction * (double)device->total_bytes);
    return held + segment_bytes > most;
}

// Returns whether the source decides itself how much memory to request.
static bool has_slots(const struct vr_alloc_request *request) { return request->shard->source->has_slots; }

static struct attempt grow_slots(const struct vr_alloc_request *request, uint32_t *block) {
    struct vr_device *device = request->shard->device;
    const struct attempt attempt = {request->shard->source->grow(request->shard, request->kind == VR_SMALL, request->rounded, block),
                                    device->limit_bytes != VR_UNLIMITED};
    device->stats.num_oom_rejections += attempt.status == VRAM_REJECTED;
    return attempt;
}

static struct attempt get_memory(const struct vr_alloc_request *request, uint32_t *block) {
    struct vr_device *device = request->shard->device;
    if (has_slots(request)) return grow_slots(request, block);
    const uint64_t segment_bytes = vr_segment_size(&device->options, request->rounded);
    const uint64_t held = (uint64_t)device->stats.reserved[VRAM_STAT_ALL].current;
    const bool small = request->kind == VR_SMALL;
    if (device->limit_bytes != VR_UNLIMITED && held + segment_bytes > device->limit_bytes)
        return (struct attempt){VRAM_OUT_OF_MEMORY, true};
    if (is_rejected(device, held, segment_bytes)) {
        device->stats.num_oom_rejections++;
        return (struct attempt){VRAM_REJECTED, true};
    }
    return (struct attempt){request->shard->source->grow(request->shard, small, request->rounded, block), false};
}

// Returns whether a pool lends blocks. A pool without references does not, nor does one that a graph writes to.
static bool pool_lends(const struct vr_device *device, const struct vram_pool *pool) {
    if (pool->references == 0 || pool->captured) return false;
    return pool->options.use_on_oom || (vr_private_is_shared(pool, &device->options) && pool->options.allocate == NULL);
}

// Finds a cached block in a pool that lends to the default pools (allocator.md §private-pools). Changes the request's shard to the
// lender's.
static uint32_t borrow_block(struct vr_alloc_request *request) {
    const struct vr_device *device = request->shard->device;
    if (request->shard->owner != NULL) return 0;
    for (const struct vram_pool *pool = device->pools; pool != NULL; pool = pool->next) {
        if (!pool_lends(device, pool)) continue;
        for (size_t i = 0; i < pool->shard_count; i++) {
            if (pool->shards[i]->stream != request->shard->stream) continue;
            // If requests use slots, the other pools use expandable segments.
            const uint32_t block = search_shard(pool->shards[i], request, has_slots(request));
            if (block == 0 || vr_shard_reserve_records(pool->shards[i], 8) != VRAM_OK) continue;
            request->shard = pool->shards[i];
            request->shard->device->stats.moved_bytes += (int64_t)request->rounded;
            if (!vr_is_slot(vr_block_at(device->allocator, block))) vr_pool_remove(request->shard, block);
            return block;
        }
    }
    return 0;
}

static bool collects_garbage(const struct vr_device *device) {
    return !device->options.paged && device->limit_bytes != VR_UNLIMITED && device->options.garbage_collection_threshold > 0;
}

// Searches the cache after the wait for other streams. A block freed by that wait may be part of a segment with live blocks, which was not
// released. Returns a block in no index, or 0.
static uint32_t search_again(const struct vr_alloc_request *request) {
    struct vr_shard *shard = request->shard;
    const uint32_t block = search_shard(shard, request, shard->expandable);
    if (block != 0 && !vr_is_slot(vr_block_at(shard->device->allocator, block))) vr_pool_remove(shard, block);
    return block;
}

// The ladder (allocator.md §the-ladder). Stops at the first success, and at any failure except lack of memory. Releases nothing for a
// request in a capture, and nothing at all from a pool that a graph uses.
static struct attempt find_memory(struct vr_alloc_request *request, uint32_t *block) {
    struct vr_device *device = request->shard->device;
    const uint64_t stream = request->shard->stream;
    if (device->options.reclaim_streams) {
        const enum vram_status status = vr_reclaim(request, block);
        if (status != VRAM_OK || *block != 0) return (struct attempt){status, false};
    }
    if (collects_garbage(device) && !vr_request_captures(device, stream)) {
        const enum vram_status status = vr_collect_garbage(device);
        if (status != VRAM_OK) return (struct attempt){status, false};
    }
    if (device->options.share_live_pools && has_slots(request) && vr_source_must_grow(request->shard, request->rounded)) {
        *block = borrow_block(request);
        if (*block != 0) return (struct attempt){VRAM_OK, false};
    }
    struct attempt attempt = get_memory(request, block);
    if (attempt.status != VRAM_OUT_OF_MEMORY) return attempt;
    *block = borrow_block(request);
    if (*block != 0) return (struct attempt){VRAM_OK, false};
    if (vr_request_captures(device, stream)) return attempt;
    bool enough = false;
    const bool kept = request->shard->owner != NULL && request->shard->owner->captured;
    const enum vram_status status = kept ? VRAM_OK : vr_release_available(request->shard, request->kind, request->rounded, &enough);
    if (status != VRAM_OK) return (struct attempt){status, false};
    if (enough) attempt = get_memory(request, block);
    if (attempt.status != VRAM_OUT_OF_MEMORY) return attempt;
    const enum vram_status released = vr_release_all(device, true);
    if (released != VRAM_OK) return (struct attempt){released, false};
    // Free slots can serve any request for slots, so they are released only for other requests.
    const enum vram_status pages =
        has_slots(request) ? VRAM_OK : vr_source_give_back_free(device, vr_segment_size(&device->options, request->rounded));
    if (pages != VRAM_OK) return (struct attempt){pages, false};
    device->stats.num_alloc_retries++;
    if (device->options.search_after_wait) *block = search_again(request);
    return *block != 0 ? (struct attempt){VRAM_OK, false} : get_memory(request, block);
}

// Tries the ladder, and then the memory of graphs. A loan comes last, because no graph of its pool can be launched before it is freed.
static struct attempt find_or_borrow(struct vr_alloc_request *request, uint32_t *block) {
    const struct attempt attempt = find_memory(request, block);
    if (attempt.status != VRAM_OUT_OF_MEMORY) return attempt;
    const enum vram_status status = vr_lending_borrow(request, block);
    return status == VRAM_OK && *block == 0 ? attempt : (struct attempt){status, false};
}

enum vram_status vr_complete_frees(struct vr_device *device, uint64_t stream) {
    VR_ASSERT_ALL_LOCKED(device);
    if (vr_any_captures(device) && vr_stream_is_capturing(device, stream)) {
        return device->options.graph_capture_record_stream_reuse ? vr_deferred_reuse(device, stream) : VRAM_OK;
    }
    if (has_gate(device, VR_GATE_CAPTURE)) {
        if (vr_request_captures(device, stream)) return VRAM_OK;
        VR_TRY(vr_deferred_convert(device));
    }
    return has_gate(device, VR_GATE_FENCES) ? vr_fences_poll(device, NULL) : VRAM_OK;
}

// Brings back the memory of a vacant pool for the request. ASLEEP if the pool may not be woken; OUT_OF_MEMORY fills in *oom.
static enum vram_status meet_vacant(const struct vr_alloc_request *request, struct vram_oom *oom) {
    struct vr_device *device = request->shard->device;
    const enum vram_status status = vr_vacant_request(device, request->shard->owner);
    if (status != VRAM_OUT_OF_MEMORY) return status;
    vr_oom_describe(request, vr_vacant_needs(device, request->shard->owner), false, device->limit_bytes != VR_UNLIMITED, oom);
    device->stats.num_ooms++;
    vr_notify_range(request->shard, VR_RECORD_OOM, NULL, oom->device_free_bytes, request->rounded);
    return status;
}

// Chooses the pool of the request: the caller's choice, else the newest route that accepts it, else the default pool, whose shard is
// `home`. Must be called again whenever the locks were released, because the route may have been closed and its pool destroyed meanwhile.
static enum vram_status choose_pool(struct vr_alloc_request *request, struct vr_shard *home, struct vram_pool *pool, struct vram_oom *oom) {
    struct vr_device *device = home->device;
    request->shard = home;
    if (pool == NULL && device->routes.count != 0) pool = vr_route(device, home->stream);
    if (pool != NULL) VR_TRY(vr_shard_of_pool(pool, home->stream, &request->shard));
    if (VR_UNLIKELY(device->vacant != NULL)) VR_TRY(meet_vacant(request, oom));
    return vr_shard_reserve_records(request->shard, 8);
}

static enum vram_status malloc_whole_device(struct vr_alloc_request *request, struct vram_pool *pool, struct vr_context_guard *guard,
                                            uint64_t *address, struct vram_oom *oom) {
    struct vr_shard *home = request->shard;
    struct vr_device *device = home->device;
    VR_TRY(vr_complete_frees(device, home->stream));
    VR_TRY(choose_pool(request, home, pool, oom));
    // For a capture that was not begun through vram, its requests are the only sign of the pools its graph uses.
    if (request->shard->owner != NULL && vr_is_capturing(device, home->stream)) vr_private_mark_captured(request->shard->owner);
    uint32_t block = search_counted(request);
    if (block == 0 && atomic_load_explicit(&device->allocator->callback_count, memory_order_relaxed) != 0) {
        bool freed = false;
        vr_device_unlock(device);
        const enum vram_status status = vr_run_callbacks(device, request->size_bytes, &freed);
        vr_device_lock_guarded(device, guard);
        VR_TRY(status);
        VR_TRY(choose_pool(request, home, pool, oom));
        if (freed) block = search_counted(request);
    }
    const bool loose = block == 0;
    const struct vram_pool *asked = request->shard->owner;
    if (loose) {
        const struct attempt attempt = find_or_borrow(request, &block);
        if (attempt.status == VRAM_OUT_OF_MEMORY || attempt.status == VRAM_REJECTED) {
            const bool rejected = attempt.status == VRAM_REJECTED;
            vr_oom_describe(request, vr_segment_size(&device->options, request->rounded), rejected, attempt.limit_hit, oom);
            if (!rejected) {
                device->stats.num_ooms++;
                vr_notify_range(request->shard, VR_RECORD_OOM, NULL, oom->device_free_bytes, request->rounded);
            }
        }
        VR_TRY(attempt.status);
    }
    // A release in between may have changed the number of spare records. The splits before and after the block need two.
    const enum vram_status status = vr_shard_reserve_records(request->shard, 2);
    if (status != VRAM_OK) {
        if (loose && !vr_is_slot(vr_block_at(device->allocator, block))) vr_pool_insert(request->shard, block);
        return status;
    }
    struct vr_block *item = vr_block_at(device->allocator, vr_alloc_block(request, block, loose));
    *address = item->address;
    item->lent = request->shard->owner != asked; // the block is in the lender's shard
    if (item->lent && request->shard->owner->captured) vr_lending_hand_out(request->shard, item, home->stream);
    return VRAM_OK;
}

// Reports a failure outside the pools: the request exceeds an exabyte, or the driver refused while caching is off.
static enum vram_status refuse_request(struct vr_device *device, struct vr_shard *shard, uint64_t size_bytes) {
    const struct vr_alloc_request request = {.shard = shard, .size_bytes = size_bytes, .rounded = size_bytes, .kind = VR_LARGE};
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    struct vram_oom oom;
    vr_device_lock_guarded(device, &guard);
    vr_oom_describe(&request, size_bytes, false, false, &oom);
    vr_device_unlock(device);
    vr_context_leave(&guard);
    vr_oom_announce(device->allocator, &oom);
    return VRAM_OUT_OF_MEMORY;
}

enum vram_status vr_native_malloc(struct vr_shard *shard, struct vram_pool *pool, uint64_t size_bytes, uint64_t *address) {
    struct vr_device *device = shard->device;
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    struct vram_oom oom;
    vr_device_lock_guarded(device, &guard);
    struct vr_alloc_request request = vr_alloc_request_of(shard, size_bytes);
    const enum vram_status status = malloc_whole_device(&request, pool, &guard, address, &oom);
    vr_device_unlock(device);
    vr_context_leave(&guard);
    if (status == VRAM_OUT_OF_MEMORY || status == VRAM_REJECTED) vr_oom_announce(device->allocator, &oom);
    return status;
}

static enum vram_status serve_request(struct vr_device *device, struct vram_pool *pool, uint64_t size_bytes, uint64_t stream,
                                      uint64_t *address) {
    const struct vram_allocator *allocator = device->allocator;
    struct vr_shard *home = vr_shard_find(device, stream);
    if (size_bytes == 0) {
        *address = 0;
        return VRAM_OK;
    }
    if (home == NULL) VR_TRY(vr_shard_make(device, stream, &home));
    if (size_bytes >= VR_REQUEST_LIMIT) return refuse_request(device, home, size_bytes);
    if (pool != NULL || atomic_load_explicit(&allocator->caching, memory_order_relaxed))
        return allocator->backend->malloc(home, pool, size_bytes, address);
    const enum vram_status status = vr_raw_malloc(device, size_bytes, stream, address);
    return status == VRAM_OUT_OF_MEMORY ? refuse_request(device, home, size_bytes) : status;
}

enum vram_status vr_malloc_fallback(struct vr_device *device, struct vram_pool *pool, uint64_t size_bytes, uint64_t stream,
                                    uint64_t *address) {
    struct vr_verifier *verifier = device->allocator->verifier;
    VR_TRY(serve_request(device, pool, size_bytes, stream, address));
    if (VR_UNLIKELY(verifier != NULL) && *address != 0) verifier->handed_out(verifier, device, *address);
    VR_NO_TAIL_CALL();
    return VRAM_OK;
}
