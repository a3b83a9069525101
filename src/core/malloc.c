// The fast way of vram_malloc() and vram_pool_malloc(): decide, check, commit, under one shard's lock and without a driver call. Whatever
// it cannot do exactly (nothing cached fits, a fence may have passed, a new peak beyond the shard's allowance) starts again the slow way.
#include "core/plain.h"
#include "core/serve.h"

// The pair that repeats (pool.h): its block goes out again, and nothing is booked before its books are closed.
VR_INLINE bool take_ready(const struct vram_allocator *allocator, struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    // A request that some option rounds up into the other pool finds no pair of its size here.
    struct vr_pool *pool = &shard->pool[size_bytes <= VR_SMALL_LIMIT ? VR_SMALL : VR_LARGE];
    if (pool->ready == 0 || pool->pair.requested != size_bytes) return false;
    struct vr_block *item = vr_block_at(allocator, pool->ready);
    pool->lazy = pool->ready = 0;
    pool->pair.rounds++;
    item->state = VR_ALLOCATED;
    item->labels = 0;
    *address = item->address;
    return true;
}

// A block that was just freed and is booked as free already, or whose books are open for another request of the same rounded size: give it
// out again as it was.
VR_INLINE bool take_lazy(struct vr_shard *shard, struct vr_pool *pool, unsigned kind, uint64_t size_bytes, bool notified,
                         uint64_t *address) {
    const struct vram_allocator *allocator = shard->device->allocator;
    struct vr_block *item = vr_block_at(allocator, pool->lazy);
    if (!take_ready(allocator, shard, size_bytes, address)) {
        const struct vr_delta delta = {{[VR_F_COUNT] = 1,
                                        [VR_F_BYTES] = (int64_t)item->size,
                                        [VR_F_REQUESTED] = (int64_t)size_bytes,
                                        [VR_F_SPLITS] = pool->pair.splits,
                                        [VR_F_SPLIT_BYTES] = pool->pair.split_bytes}};
        vr_pool_close_pair(shard, kind);
        if (VR_UNLIKELY(!vr_shard_book(shard, kind, &delta, 0))) return false;
        pool->lazy = 0;
        item->state = VR_ALLOCATED;
        item->requested = size_bytes;
        item->labels = 0;
        *address = item->address;
    }
    if (notified) vr_notify_hand_out(shard, item);
    return true;
}

// A request of another size than the one whose free is left undone. What that merge would make, the block and the rest that it was cut
// from, mostly serves: then the border between the two moves, and neither leaves the index only to come back.
struct undone_merge {
    uint32_t block;
    uint32_t rest; // its next neighbour, free; 0: it was handed out whole
    uint64_t size; // of both
};

// The best fit as it would be after the merge: merge->block, one of the index, or 0.
VR_INLINE uint32_t search_beside(const struct vr_pool *pool, const struct vr_index_arena *arena, uint64_t rounded,
                                 const struct undone_merge *merge) {
    uint32_t found = vr_index_first_at_least(&pool->index, arena, rounded);
    if (found == merge->rest && found != 0) found = vr_index_next(&pool->index, arena, found);
    if (merge->size < rounded) return found;
    return found == 0 || vr_index_is_before(arena, &arena->blocks[merge->block], merge->size, found) ? merge->block : found;
}

// Gives the block `size` bytes of what the merge would make.
static void move_border(struct vr_shard *shard, struct vr_pool *pool, const struct undone_merge *merge, uint64_t size) {
    const struct vr_index_arena *arena = &shard->device->allocator->arena;
    struct vr_block *item = &arena->blocks[merge->block];
    if (merge->rest == 0) {
        if (size != merge->size) vr_pool_insert(shard, vr_block_split(shard, merge->block, size));
    } else if (size == merge->size) {
        vr_pool_remove(shard, merge->rest);
        vr_block_absorb_next(shard, merge->block);
    } else {
        vr_index_move(&pool->index, arena, merge->rest, item->address + size, merge->size - size);
        arena->blocks[merge->rest].age_base = shard->device->clock[item->small ? VR_SMALL : VR_LARGE];
        item->size = size;
    }
}

// Hands out the block of the merge.
VR_INLINE bool take_merged(const struct vr_alloc_request *request, const struct undone_merge *merge, bool notified, uint64_t *address) {
    struct vr_shard *shard = request->shard;
    struct vr_pool *pool = &shard->pool[request->kind];
    const struct vr_index_arena *arena = &shard->device->allocator->arena;
    struct vr_block *item = &arena->blocks[merge->block];
    const uint64_t size = vr_plain_splits(request->kind, merge->size, request->rounded) ? request->rounded : merge->size;
    const bool was_split = (item->previous | (merge->rest != 0 ? arena->blocks[merge->rest].next : item->next)) != 0;
    struct vr_delta delta;
    vr_delta_of_hand_out(was_split, merge->size, size, request->size_bytes, &delta);
    vr_pool_close_pair(shard, request->kind);
    if (VR_UNLIKELY(!vr_shard_book(shard, request->kind, &delta, 0))) return false;
    move_border(shard, pool, merge, size);
    pool->lazy = 0;
    pool->last_rounded = request->rounded;
    pool->pair.splits = delta.of[VR_F_SPLITS];
    pool->pair.split_bytes = delta.of[VR_F_SPLIT_BYTES];
    item->state = VR_ALLOCATED;
    item->requested = request->size_bytes;
    item->labels = 0;
    if (notified) vr_notify_hand_out(shard, item);
    *address = item->address;
    return true;
}

// Hands out a block of the index; the pool is settled.
VR_INLINE bool take_found(const struct vr_alloc_request *request, uint32_t block, bool notified, uint64_t *address) {
    struct vr_shard *shard = request->shard;
    struct vr_pool *pool = &shard->pool[request->kind];
    const struct vr_block *item = vr_block_at(shard->device->allocator, block);
    const uint64_t block_size = vr_pool_splits(shard, item, request->rounded) ? request->rounded : item->size;
    if (VR_UNLIKELY(block_size >= shard->device->options.max_split_bytes)) return false;
    struct vr_delta delta;
    vr_delta_of_malloc(item, block_size, request->size_bytes, &delta);
    if (VR_UNLIKELY(!vr_shard_book(shard, request->kind, &delta, 0))) return false;
    vr_hand_out_as(request, block, block_size, false, notified);
    pool->last = block;
    pool->last_rounded = request->rounded;
    pool->pair.splits = delta.of[VR_F_SPLITS];
    pool->pair.split_bytes = delta.of[VR_F_SPLIT_BYTES];
    *address = item->address;
    return true;
}

// The same of a plain shard, and no block of an expandable segment.
VR_INLINE bool take_plain(const struct vr_alloc_request *request, uint32_t block, bool notified, uint64_t *address) {
    struct vr_shard *shard = request->shard;
    struct vram_allocator *allocator = shard->device->allocator;
    struct vr_pool *pool = &shard->pool[request->kind];
    struct vr_block *item = vr_block_at(allocator, block);
    const uint64_t size = vr_plain_splits(request->kind, item->size, request->rounded) ? request->rounded : item->size;
    struct vr_delta delta;
    vr_delta_of_hand_out((item->previous | item->next) != 0, item->size, size, request->size_bytes, &delta);
    if (VR_UNLIKELY(!vr_shard_book(shard, request->kind, &delta, 0))) return false;
    vr_plain_take(shard, request->kind, block, size);
    item->state = VR_ALLOCATED;
    item->requested = request->size_bytes;
    item->held.uses = item->held.pending = 0;
    item->labels = 0;
    vr_address_map_set(&allocator->addresses, item->address, block);
    pool->last = block;
    pool->last_rounded = request->rounded;
    pool->pair.splits = delta.of[VR_F_SPLITS];
    pool->pair.split_bytes = delta.of[VR_F_SPLIT_BYTES];
    if (notified) vr_notify_hand_out(shard, item);
    *address = item->address;
    return true;
}

// A slot of paged memory, which has the size of the request; the pool is settled.
VR_INLINE bool take_slot(const struct vr_alloc_request *request, bool notified, uint64_t *address) {
    struct vr_shard *shard = request->shard;
    struct vram_allocator *allocator = shard->device->allocator;
    struct vr_pool *pool = &shard->pool[request->kind];
    const uint32_t block = vr_paged_ready(shard, request->rounded);
    if (VR_UNLIKELY(block == 0 || request->rounded >= shard->device->options.max_split_bytes)) return false;
    const struct vr_delta delta = {
        {[VR_F_COUNT] = 1, [VR_F_BYTES] = (int64_t)request->rounded, [VR_F_REQUESTED] = (int64_t)request->size_bytes}};
    if (VR_UNLIKELY(!vr_shard_book(shard, request->kind, &delta, 0))) return false;
    struct vr_block *item = vr_block_at(allocator, block);
    vr_paged_take(shard, block);
    item->state = VR_ALLOCATED;
    item->requested = request->size_bytes;
    item->held.uses = item->held.pending = 0;
    item->labels = 0;
    vr_address_map_set(&allocator->addresses, item->address, block);
    pool->last = block;
    pool->last_rounded = request->rounded;
    pool->pair.splits = pool->pair.split_bytes = 0;
    if (notified) vr_notify_hand_out(shard, item);
    *address = item->address;
    return true;
}

// notified: somebody listens (a constant to the compiler, so that the way without costs nothing).
VR_INLINE bool take_cached(struct vr_shard *shard, uint64_t size_bytes, bool notified, uint64_t *address) {
    const struct vram_allocator *allocator = shard->device->allocator;
    const uint64_t rounded = vr_round_for(shard->device, size_bytes);
    const unsigned kind = vr_pool_kind(rounded);
    const struct vr_alloc_request request = {shard, size_bytes, rounded, kind};
    struct vr_pool *pool = &shard->pool[kind];
    if (pool->lazy != 0 && pool->last_rounded == rounded && take_lazy(shard, pool, kind, size_bytes, notified, address)) return true;
    if (VR_UNLIKELY(vr_shard_reserve_records(shard, 1) != VRAM_OK)) return false;
    uint32_t block = 0;
    const struct vr_block *item = vr_block_at(allocator, pool->lazy);
    if (VR_UNLIKELY(!shard->plain || (pool->lazy != 0 && item->expandable))) {
        vr_pool_settle(shard, kind);
        if (shard->paged != NULL && kind == VR_LARGE && vr_index_is_empty(&pool->index)) return take_slot(&request, notified, address);
        block = vr_pool_search(shard, kind, rounded, shard->expandable);
        return VR_LIKELY(block != 0) && take_found(&request, block, notified, address);
    }
    if (pool->lazy != 0) {
        const uint32_t rest = vr_is_free(allocator, item->next) ? item->next : 0;
        const struct undone_merge merge = {pool->lazy, rest, item->size + (rest != 0 ? vr_block_at(allocator, rest)->size : 0)};
        assert(!vr_is_free(allocator, item->previous));
        block = search_beside(pool, &allocator->arena, rounded, &merge);
        if (block == pool->lazy) return take_merged(&request, &merge, notified, address);
        vr_pool_settle(shard, kind);
    } else {
        vr_pool_settle(shard, kind);
        block = vr_index_first_at_least(&pool->index, &allocator->arena, rounded);
    }
    if (VR_UNLIKELY(block == 0 || vr_block_at(allocator, block)->expandable)) {
        block = vr_pool_search(shard, kind, rounded, false);
        return block != 0 && take_found(&request, block, notified, address);
    }
    return take_plain(&request, block, notified, address);
}

// With a listener. The shard is locked; the gate is not 0.
VR_NOINLINE static bool take_notified(struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    return take_cached(shard, size_bytes, true, address);
}

// --- private pools --------------------------------------------------------------------------------------------------------------------

// What is in force of the gate for a request that names its pool: routes do not concern it.
VR_INLINE uint32_t gate_of_pool(const struct vr_device *device) {
    return atomic_load_explicit(&device->gate, memory_order_relaxed) & ~(uint32_t)VR_GATE_ROUTES;
}

// The shard of the pool's stream, locked; NULL where only all locks find it.
VR_INLINE struct vr_shard *lock_near(struct vram_pool *pool, uint64_t stream) {
    struct vr_shard *shard = atomic_load_explicit(vr_shard_near(pool, stream), memory_order_acquire);
    if (VR_UNLIKELY(shard == NULL)) return NULL;
    vr_shard_lock(shard);
    if (VR_LIKELY(shard->owner == pool && shard->stream == stream)) return shard;
    vr_shard_unlock(shard);
    return NULL;
}

static bool take_in_pool(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream, uint32_t gate, uint64_t *address) {
    if (size_bytes >= VR_REQUEST_LIMIT || gate_of_pool(pool->device) != gate) return false;
    struct vr_shard *shard = lock_near(pool, stream);
    if (shard == NULL) return false;
    bool taken = gate_of_pool(pool->device) == gate;
    if (taken) taken = gate == 0 ? take_cached(shard, size_bytes, false, address) : take_notified(shard, size_bytes, address);
    vr_shard_unlock(shard);
    return taken;
}

// Called by the public function itself: see the depth given to vr_gather().
VR_NOINLINE static enum vram_status serve_from_pool(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    struct vr_device *device = pool->device;
    if (size_bytes == 0) {
        *address = 0;
        return VRAM_OK;
    }
    if (VR_LIKELY(take_in_pool(pool, size_bytes, stream, 0, address))) return VRAM_OK;
    struct vr_shard *shard = NULL;
    VR_TRY(vr_shard_get(device, stream, &shard));
    vr_gather(device, VR_LEVEL_STATE, 1);
    if (take_in_pool(pool, size_bytes, stream, VR_GATE_LISTENER, address)) return VRAM_OK;
    return vr_malloc_slow(shard, pool, size_bytes, address);
}

// A leaf, as vram_malloc() is.
enum vram_status vram_pool_malloc(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    VR_REQUIRE(pool && address);
    const struct vr_device *device = pool->device;
    struct vr_shard *shard = atomic_load_explicit(vr_shard_near(pool, stream), memory_order_acquire);
    bool taken = false;
    if (VR_LIKELY(shard != NULL) && vr_shard_try_lock(shard)) {
        taken = shard->owner == pool && shard->stream == stream && gate_of_pool(device) == 0 &&
                take_ready(device->allocator, shard, size_bytes, address);
        vr_shard_unlock(shard);
    }
    enum vram_status status = VRAM_OK;
    if (!taken) status = serve_from_pool(pool, size_bytes, stream, address);
    VR_NO_TAIL_CALL();
    return vr_checked(device->allocator, status);
}

// Nothing but routes keeps the request from the fast way: it goes to the pool that they say, which they must still say under that pool's
// lock.
VR_NOINLINE static bool take_routed(struct vr_shard *home, uint64_t size_bytes, uint64_t *address) {
    struct vr_device *device = home->device;
    const uint64_t stream = home->stream;
    struct vram_pool *pool = NULL, *still = NULL;
    vr_shard_lock(home);
    bool plain = atomic_load_explicit(&device->gate, memory_order_relaxed) == VR_GATE_ROUTES && vr_route_plain(device, stream, &pool);
    const bool taken = plain && pool == NULL && take_cached(home, size_bytes, false, address);
    struct vr_shard *near = pool == NULL ? NULL : atomic_load_explicit(vr_shard_near(pool, stream), memory_order_acquire);
    vr_shard_unlock(home);
    if (near == NULL) return taken;
    vr_shard_lock(near);
    plain = atomic_load_explicit(&device->gate, memory_order_relaxed) == VR_GATE_ROUTES && vr_route_plain(device, stream, &still);
    const bool routed =
        plain && still == pool && near->owner == pool && near->stream == stream && take_cached(near, size_bytes, false, address);
    vr_shard_unlock(near);
    return routed;
}

// --- the default pools ----------------------------------------------------------------------------------------------------------------

// Whatever the bare fast way could not do. Called by the public function's own callee: see the depth given to vr_gather().
VR_NOINLINE static enum vram_status serve_slowly(struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    struct vr_device *device = shard->device;
    if ((atomic_load_explicit(&device->gate, memory_order_relaxed) & VR_GATE_LISTENER) != 0) {
        vr_gather(device, VR_LEVEL_STATE, 2);
        if (size_bytes < VR_REQUEST_LIMIT) {
            vr_shard_lock(shard);
            const bool bare = atomic_load_explicit(&device->gate, memory_order_relaxed) == VR_GATE_LISTENER;
            const bool served = bare && take_notified(shard, size_bytes, address);
            vr_shard_unlock(shard);
            if (served) return VRAM_OK;
        }
    }
    if (atomic_load_explicit(&device->gate, memory_order_relaxed) == VR_GATE_ROUTES && size_bytes < VR_REQUEST_LIMIT &&
        take_routed(shard, size_bytes, address)) {
        return VRAM_OK;
    }
    return vr_malloc_slow(shard, NULL, size_bytes, address);
}

// The shard is locked, and is not any more afterwards.
VR_INLINE enum vram_status serve_locked(struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    const bool served = size_bytes - 1 < VR_REQUEST_LIMIT - 1 && atomic_load_explicit(&shard->device->gate, memory_order_relaxed) == 0 &&
                        take_cached(shard, size_bytes, false, address);
    vr_shard_unlock(shard);
    if (VR_LIKELY(served)) return VRAM_OK;
    if (VR_UNLIKELY(size_bytes == 0)) {
        *address = 0;
        return VRAM_OK;
    }
    return serve_slowly(shard, size_bytes, address);
}

// What the leaf hands on with the shard locked.
VR_NOINLINE static enum vram_status serve(struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    const enum vram_status status = serve_locked(shard, size_bytes, address);
    VR_NO_TAIL_CALL();
    return status;
}

// The same where the gate is not 0. Where somebody listens who takes no stack of the call, the lock that is held will do.
VR_NOINLINE static enum vram_status serve_gated(struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    const struct vr_device *device = shard->device;
    const bool without_stack = atomic_load_explicit(&device->gate, memory_order_relaxed) == VR_GATE_LISTENER &&
                               size_bytes - 1 < VR_REQUEST_LIMIT - 1 && !vr_takes_stack(device, VR_LEVEL_STATE);
    bool served = false;
    if (VR_LIKELY(without_stack)) {
        const uint32_t ready = shard->pool[size_bytes <= VR_SMALL_LIMIT ? VR_SMALL : VR_LARGE].ready;
        vr_current_stack_set(0);
        served = take_ready(device->allocator, shard, size_bytes, address);
        if (VR_LIKELY(served)) {
            vr_notify_hand_out(shard, vr_block_at(device->allocator, ready));
        } else {
            served = take_notified(shard, size_bytes, address);
        }
    }
    vr_shard_unlock(shard);
    enum vram_status status = VRAM_OK;
    if (VR_UNLIKELY(!served) && size_bytes != 0) {
        status = serve_slowly(shard, size_bytes, address);
    } else if (VR_UNLIKELY(!served)) {
        *address = 0;
    }
    VR_NO_TAIL_CALL();
    return status;
}

// A stream that was not met before, or whose shard is not where the search for it begins, or whose lock somebody has.
VR_NOINLINE static enum vram_status find_and_serve(struct vram_allocator *allocator, uint32_t ordinal, uint64_t size_bytes, uint64_t stream,
                                                   uint64_t *address) {
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    if (VR_UNLIKELY(device == NULL)) VR_TRY(vr_device_get(allocator, ordinal, &device));
    if (VR_UNLIKELY(size_bytes == 0)) {
        *address = 0;
        return VRAM_OK;
    }
    struct vr_shard *shard = NULL;
    VR_TRY(vr_shard_get(device, stream, &shard));
    vr_shard_lock(shard);
    const enum vram_status status = serve_locked(shard, size_bytes, address);
    VR_NO_TAIL_CALL();
    return status;
}

// A leaf: what it cannot do itself goes on, with the shard locked if it has it. So a pair that repeats saves no register.
enum vram_status vram_malloc(struct vram_allocator *allocator, uint32_t ordinal, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    const struct vr_device *device = vr_device_if_used(allocator, ordinal);
    struct vr_shard *shard = VR_LIKELY(device != NULL) ? vr_shard_guess(device, stream) : NULL;
    enum vram_status status = VRAM_OK;
    if (VR_UNLIKELY(shard == NULL) || !vr_shard_try_lock(shard)) {
        status = find_and_serve(allocator, ordinal, size_bytes, stream, address);
    } else if (VR_UNLIKELY(atomic_load_explicit(&device->gate, memory_order_relaxed) != 0)) {
        status = serve_gated(shard, size_bytes, address);
    } else if (take_ready(allocator, shard, size_bytes, address)) {
        vr_shard_unlock(shard);
    } else {
        status = serve(shard, size_bytes, address);
    }
    VR_NO_TAIL_CALL();
    return vr_checked(allocator, status);
}
