// front.h: makes a repeated malloc and free pair cheap. The policy below it (alloc.h) does not know about it.
//
// Programs often request again what they have just freed. So the front postpones the merge when the block that a pool handed out last is
// freed, and the same request takes the block again: no index and no neighbour changes. Settling the front brings the policy to the state
// it would have if every call had gone through it.
//
// This works because nothing else happens to the pool while its pair is open: every other call that concerns the pool settles it first.
// Counters are postponed as well. While a pair repeats, the device alternates between two states: the block is live, or it is free. The
// counters have seen both states, so no peak can rise. Rounds are therefore only counted, and they are booked before anything else is. A
// fence concerns a pair if its block is in the pair's pool. Requests therefore poll the fences first, as they do in the policy, and a
// passed fence settles its pool. Anything else that concerns every request (captures, routes, ...) prevents pairs from being opened and
// used. All of it runs under the device's lock.
#ifndef VR_CORE_FRONT_H
#define VR_CORE_FRONT_H

#include "core/pool.h"

#ifndef VRAM_FRONT
#define VRAM_FRONT 1 // 0: every call goes through the policy
#endif

// Books the counted rounds and stops counting.
void vr_front_book(struct vr_device *device);
// Books the counted rounds, then does the merge that was postponed in the pool.
void vr_front_do_undone(struct vr_device *device, struct vr_pool *pool);
// Settles a pool before the policy changes anything in it: books the counted rounds, does the postponed merge, and closes the pool's pair.
VR_INLINE void vr_front_settle(struct vr_device *device, struct vr_pool *pool) {
    if (device->front.frees != 0 || pool->pair.back) vr_front_do_undone(device, pool);
    device->front.counted = NULL;
    pool->pair.block = 0;
}
// Settles all pools.
void vr_front_settle_all(struct vr_device *device);

// Returns whether pairs may be used: no gate bit is set except those for listeners and fences, which the front handles itself.
#define VR_FRONT_IS_ON(gate) (VRAM_FRONT && ((gate) & ~(uint32_t)(VR_GATE_LISTENER | VR_GATE_FENCES)) == 0)

// Opens a pair after the policy served this request from the cache with this block. The pool must be settled.
VR_INLINE void vr_front_open(struct vr_device *device, struct vr_pool *pool, uint32_t block, uint64_t size_bytes) {
    struct vr_open_pair *pair = &pool->pair;
    assert(pair->block == 0 && !pair->back && device->front.counted == NULL);
    pair->block = block;
    pair->size_bytes = size_bytes;
    device->front.counted = pool;
    if (pair->listed) return;
    pair->listed = true;
    pair->next = device->front.listed;
    device->front.listed = pool;
}

// Book a call of a pair that is not being counted. After the malloc, the pair is counted: the state with the block back was there just
// before.
void vr_front_book_malloc(struct vr_device *device, struct vr_pool *pool);
void vr_front_book_free(struct vr_device *device, struct vr_pool *pool);
// Polls the fences. Returns false if the policy must poll again, or if a passed fence settled the pool.
VR_INLINE bool vr_front_is_left(struct vr_device *device, const struct vr_pool *pool) {
    bool polled = true;
    return vr_fences_poll(device, &polled) == VRAM_OK && polled && pool->pair.back;
}

// Serves a request from the open pair of its pool. Returns false if it cannot; the policy must then serve it. (A request that some option
// rounds up into the other pool finds no pair of its size here.)
VR_INLINE bool vr_front_malloc(struct vr_device *device, struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    struct vr_pool *pool = &shard->pool[size_bytes <= VR_SMALL_LIMIT ? VR_SMALL : VR_LARGE];
    struct vr_open_pair *pair = &pool->pair;
    if (!pair->back || pair->size_bytes != size_bytes) return false;
    const uint32_t gate = atomic_load_explicit(&device->gate, memory_order_relaxed);
    if (VR_UNLIKELY(gate != 0) && (!VR_FRONT_IS_ON(gate) || ((gate & VR_GATE_FENCES) != 0 && !vr_front_is_left(device, pool))))
        return false;
    struct vr_block *item = vr_block_at(device->allocator, pair->block);
    if (VR_UNLIKELY(device->front.counted != pool)) vr_front_book_malloc(device, pool);
    pair->back = false;
    item->state = VR_ALLOCATED;
    item->labels = 0;
    if (VR_UNLIKELY(vr_has_listener(device))) vr_notify_hand_out(shard, item);
    *address = item->address;
    return true;
}

// Frees an allocated block of the pool if it is that of an open pair and nothing else depends on it. Otherwise returns false and changes
// nothing.
VR_INLINE bool vr_front_free(struct vr_shard *shard, struct vr_pool *pool, struct vr_block *item, uint32_t block) {
    struct vr_device *device = shard->device;
    if (pool->pair.block != block || item->held.uses != 0 || item->marks != 0) return false;
    if (VR_UNLIKELY(device->front.counted != pool)) {
        vr_front_book_free(device, pool);
    } else {
        device->front.frees++;
    }
    if (VR_UNLIKELY(vr_has_listener(device))) vr_notify_freed(shard, item);
    pool->pair.back = true;
    item->state = VR_AT_FRONT;
    return true;
}

#endif
