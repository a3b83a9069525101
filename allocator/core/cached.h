// cached.h: a request served by what its pool has, under the lock of one shard: decide, check, commit. Inlined into malloc, whose fast way
// it is, and into the slow way, for requests that only had to wait for somebody to look at the fences.
#ifndef VR_CORE_CACHED_H
#define VR_CORE_CACHED_H

#include "core/hole_runs.h"
#include "core/plain.h"
#include "core/serve.h"

// The pair that repeats (pool.h): its block goes out again, and nothing is booked before its books are closed.
VR_INLINE bool vr_take_ready(const struct vram_allocator *allocator, struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    // A request that some option rounds up into the other pool finds no pair of its size here.
    struct vr_pool *pool = &shard->pool[size_bytes <= VR_SMALL_LIMIT ? VR_SMALL : VR_LARGE];
    if (pool->pair.requested != size_bytes || pool->ready == 0) return false; // in this order: the first is easier to foresee
    assert(pool->ready == pool->pair.block);
    struct vr_block *item = vr_block_at(allocator, pool->pair.block); // no wait for what the free before this wrote
    pool->lazy = pool->ready = 0;
    pool->pair.rounds++;
    item->state = VR_ALLOCATED;
    item->labels = 0;
    *address = item->address;
    return true;
}

// The same where the books were closed and there is no room to open them, if those of another pair pass to this one (serve.h).
VR_INLINE bool vr_take_closed(struct vr_shard *shard, unsigned kind, uint64_t size_bytes, uint64_t *address) {
    const struct vr_pool *pool = &shard->pool[kind];
    return pool->pair.block == 0 && pool->pair.requested == size_bytes &&
           shard->counters.slack[kind][VR_F_BYTES] < (int64_t)pool->pair.size && vr_take_passed(shard, kind, address);
}

// A block that was just freed and is booked as free already, or whose books are open for another request of the same rounded size: give it
// out again as it was.
VR_INLINE bool vr_take_lazy(struct vr_shard *shard, struct vr_pool *pool, unsigned kind, uint64_t size_bytes, bool notified,
                            uint64_t *address) {
    const struct vram_allocator *allocator = shard->device->allocator;
    struct vr_block *item = vr_block_at(allocator, pool->lazy);
    if (!vr_take_ready(allocator, shard, size_bytes, address) && !vr_take_closed(shard, kind, size_bytes, address)) {
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
struct vr_undone_merge {
    uint32_t block;
    uint32_t rest; // its next neighbour, free; 0: it was handed out whole
    uint64_t size; // of both
};

VR_INLINE uint32_t vr_search_but_rest(const struct vr_pool *pool, const struct vr_index_arena *arena, uint64_t rounded, uint32_t rest) {
    const uint32_t found = vr_index_first_at_least(&pool->index, arena, rounded);
    return found == rest && found != 0 ? vr_index_next(&pool->index, arena, found) : found;
}

// The first free block of at least `rounded` bytes, but for the rest; 0: there is none. One search answers all requests of its size and
// more, up to that of what it found, until something else happens to the pool.
VR_INLINE uint32_t vr_find_beside(struct vr_pool *pool, const struct vr_index_arena *arena, uint64_t rounded, uint32_t rest) {
    const uint32_t known = pool->beside;
    if (rounded >= pool->beside_from && (known == 0 || arena->blocks[known].size >= rounded)) {
        assert(VRAM_CHECK < 2 || vr_search_but_rest(pool, arena, rounded, rest) == known);
        return known;
    }
    pool->beside_from = rounded;
    pool->beside = vr_search_but_rest(pool, arena, rounded, rest);
    return pool->beside;
}

// The best fit as it would be after the merge: merge->block, one of the index, or 0.
VR_INLINE uint32_t vr_search_beside(struct vr_pool *pool, const struct vr_index_arena *arena, uint64_t rounded,
                                    const struct vr_undone_merge *merge) {
    const uint32_t found = vr_find_beside(pool, arena, rounded, merge->rest);
    if (merge->size < rounded) return found;
    if (found == 0 || merge->size < arena->blocks[found].size) return merge->block;
    return vr_index_is_before(arena, &arena->blocks[merge->block], merge->size, found) ? merge->block : found;
}

// Gives the block `size` bytes of what the merge would make.
VR_INLINE void vr_move_border(struct vr_shard *shard, struct vr_pool *pool, const struct vr_undone_merge *merge, uint64_t size) {
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

// Books a hand-out in the place of the pool's pair, whose block is back; closes the books of that.
VR_INLINE bool book_instead(struct vr_shard *shard, unsigned kind, uint32_t block, const struct vr_delta *delta) {
    struct vr_pool *pool = &shard->pool[kind];
    pool->ready = 0;
    if (VR_LIKELY(pool->pair.block != 0 && pool->pair.rounds == 0) &&
        VR_LIKELY(vr_hot_pair_replace(&shard->counters, kind, &pool->pair, block, delta))) {
        return true;
    }
    vr_pool_close_pair(shard, kind);
    if (VR_UNLIKELY(!vr_shard_book_rises(shard, kind, delta))) return false;
    vr_hot_pair_open(&pool->pair, block, delta);
    return true;
}

// Hands out the block of the merge.
VR_INLINE bool vr_take_merged(const struct vr_alloc_request *request, const struct vr_undone_merge *merge, bool notified,
                              uint64_t *address) {
    struct vr_shard *shard = request->shard;
    struct vr_pool *pool = &shard->pool[request->kind];
    const struct vr_index_arena *arena = &shard->device->allocator->arena;
    struct vr_block *item = &arena->blocks[merge->block];
    const uint64_t size = vr_plain_splits(request->kind, merge->size, request->rounded) ? request->rounded : merge->size;
    const bool was_split = (item->previous | (merge->rest != 0 ? arena->blocks[merge->rest].next : item->next)) != 0;
    struct vr_delta delta;
    vr_delta_of_hand_out(was_split, merge->size, size, request->size_bytes, &delta);
    if (VR_UNLIKELY(!book_instead(shard, request->kind, merge->block, &delta))) return false;
    vr_move_border(shard, pool, merge, size);
    pool->lazy = 0;
    pool->last_rounded = request->rounded;
    item->state = VR_ALLOCATED;
    item->requested = request->size_bytes;
    item->labels = 0;
    if (notified) vr_notify_hand_out(shard, item);
    *address = item->address;
    return true;
}

// Hands out a block of the index; the pool is settled.
VR_INLINE bool vr_take_found(const struct vr_alloc_request *request, uint32_t block, bool notified, uint64_t *address) {
    struct vr_shard *shard = request->shard;
    struct vr_pool *pool = &shard->pool[request->kind];
    const struct vr_block *item = vr_block_at(shard->device->allocator, block);
    const uint64_t block_size = vr_pool_splits(shard, item, request->rounded) ? request->rounded : item->size;
    if (VR_UNLIKELY(block_size >= shard->device->options.max_split_bytes)) return false;
    struct vr_delta delta;
    vr_delta_of_malloc(item, block_size, request->size_bytes, &delta);
    if (VR_UNLIKELY(!vr_shard_book_rises(shard, request->kind, &delta))) return false;
    vr_hand_out_as(request, block, block_size, false, notified);
    vr_pool_begin_pair(pool, block, request->rounded, &delta);
    *address = item->address;
    return true;
}

// The same of a plain shard, and no block of an expandable segment.
VR_INLINE bool vr_take_plain(const struct vr_alloc_request *request, uint32_t block, bool notified, uint64_t *address) {
    struct vr_shard *shard = request->shard;
    struct vram_allocator *allocator = shard->device->allocator;
    struct vr_pool *pool = &shard->pool[request->kind];
    struct vr_block *item = vr_block_at(allocator, block);
    const uint64_t size = vr_plain_splits(request->kind, item->size, request->rounded) ? request->rounded : item->size;
    struct vr_delta delta;
    vr_delta_of_hand_out((item->previous | item->next) != 0, item->size, size, request->size_bytes, &delta);
    if (VR_UNLIKELY(!vr_shard_book_rises(shard, request->kind, &delta))) return false;
    vr_plain_take(shard, request->kind, block, size);
    item->state = VR_ALLOCATED;
    item->requested = request->size_bytes;
    item->held.uses = item->held.pending = 0;
    item->labels = 0;
    vr_address_map_set(&allocator->addresses, item->address, block);
    vr_pool_begin_pair(pool, block, request->rounded, &delta);
    if (notified) vr_notify_hand_out(shard, item);
    *address = item->address;
    return true;
}

// A slot of paged memory, which has the size of the request; the pool is settled.
VR_INLINE bool take_slot(const struct vr_alloc_request *request, bool notified, uint64_t *address) {
    struct vr_shard *shard = request->shard;
    struct vram_allocator *allocator = shard->device->allocator;
    struct vr_pool *pool = &shard->pool[request->kind];
    struct vr_paged_found found;
    if (VR_UNLIKELY(request->rounded >= shard->device->options.max_split_bytes)) return false;
    if (VR_UNLIKELY(!vr_paged_find(shard, request->rounded, &found))) return false;
    const struct vr_delta delta = {
        {[VR_F_COUNT] = 1, [VR_F_BYTES] = (int64_t)request->rounded, [VR_F_REQUESTED] = (int64_t)request->size_bytes}};
    if (VR_UNLIKELY(!vr_shard_book_rises(shard, request->kind, &delta))) return false;
    const uint32_t block = found.block;
    struct vr_block *item = vr_block_at(allocator, block);
    vr_paged_take_found(shard, &found);
    item->state = VR_ALLOCATED;
    item->requested = request->size_bytes;
    item->held.uses = item->held.pending = 0;
    item->labels = 0;
    vr_address_map_set(&allocator->addresses, item->address, block);
    vr_pool_begin_pair(pool, block, request->rounded, &delta);
    if (notified) vr_notify_hand_out(shard, item);
    *address = item->address;
    return true;
}

// notified: somebody listens (a constant to the compiler, so that the way without costs nothing).
VR_INLINE bool vr_take_cached(struct vr_shard *shard, uint64_t size_bytes, bool notified, uint64_t *address) {
    const struct vram_allocator *allocator = shard->device->allocator;
    const uint64_t rounded = vr_round_for(shard->device, size_bytes);
    const unsigned kind = vr_pool_kind(rounded);
    const struct vr_alloc_request request = {shard, size_bytes, rounded, kind};
    struct vr_pool *pool = &shard->pool[kind];
    if (pool->lazy != 0 && pool->last_rounded == rounded && vr_take_lazy(shard, pool, kind, size_bytes, notified, address)) return true;
    if (VR_UNLIKELY(vr_shard_reserve_records(shard, 1) != VRAM_OK)) return false;
    uint32_t block = 0;
    const struct vr_block *item = vr_block_at(allocator, pool->lazy);
    if (VR_UNLIKELY(!shard->plain || (pool->lazy != 0 && item->expandable))) {
        vr_pool_settle(shard, kind);
        if (shard->paged != NULL && kind == VR_LARGE && vr_index_is_empty(&pool->index)) return take_slot(&request, notified, address);
        block = vr_pool_search(shard, kind, rounded, shard->expandable);
        if (VR_UNLIKELY(block == 0)) return false;
        const struct vr_block *found = vr_block_at(allocator, block);
        if (VR_UNLIKELY(vr_pool_address_in(shard, found, rounded) != found->address)) return false; // the slow way splits off what is below
        if (VR_UNLIKELY(!vr_take_found(&request, block, notified, address))) return false;
        if (VR_UNLIKELY(vr_block_at(allocator, block)->expandable == VR_EXPANDABLE_CHAIN)) vr_hole_runs_taken(allocator, block);
        return true;
    }
    if (pool->lazy != 0) {
        const uint32_t rest = vr_is_free(allocator, item->next) ? item->next : 0;
        const struct vr_undone_merge merge = {pool->lazy, rest, item->size + (rest != 0 ? vr_block_at(allocator, rest)->size : 0)};
        assert(!vr_is_free(allocator, item->previous));
        block = vr_search_beside(pool, &allocator->arena, rounded, &merge);
        if (block == pool->lazy) return vr_take_merged(&request, &merge, notified, address);
        vr_pool_settle(shard, kind);
    } else {
        vr_pool_settle(shard, kind);
        block = vr_index_first_at_least(&pool->index, &allocator->arena, rounded);
    }
    if (VR_UNLIKELY(block == 0 || vr_block_at(allocator, block)->expandable)) {
        block = vr_pool_search(shard, kind, rounded, false); // of no expandable segment
        return block != 0 && vr_take_found(&request, block, notified, address);
    }
    return vr_take_plain(&request, block, notified, address);
}

#endif
