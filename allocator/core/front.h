// front.h: what makes a malloc and its free that repeat cheap. The policy below it (alloc.h) knows nothing of it.
//
// A program asks again and again for what it has just given back. So the free of the block that a pool handed out last is left undone, and
// the same request takes the block again: no index and no neighbour changes. Once the front is settled, the state of the policy is what it
// would be had each call gone through the policy.
//
// That is so because nothing else happens to the pool while its pair is open: every other call that concerns the pool settles it first. And
// from a hand-out on, while nothing else is booked, the device alternates between two states, with the block out and with it back, both of
// which it was in: no peak can rise, so that rounds are only counted, and booked before anything else is. A fence concerns a pair when its
// block lies in the pair's pool: a request looks at the fences first, here as in the policy, and one that has passed settles its pool.
// Whatever else concerns every request (captures, routes, ...) keeps pairs from being opened and used. All of it runs under the device's
// lock.
#ifndef VR_CORE_FRONT_H
#define VR_CORE_FRONT_H

#include "core/pool.h"

#ifndef VRAM_FRONT
#define VRAM_FRONT 1 // 0: every call goes through the policy
#endif

// Books what is counted, and ends the counting.
void vr_front_book(struct vr_device *device);
// The same, and does the merge that was left undone in the pool.
void vr_front_do_undone(struct vr_device *device, struct vr_pool *pool);
// Before the policy changes anything in a pool: books what is counted, does the merge that was left undone, and closes the pool's pair.
VR_INLINE void vr_front_settle(struct vr_device *device, struct vr_pool *pool) {
    if (device->front.frees != 0 || pool->pair.back) vr_front_do_undone(device, pool);
    device->front.counted = NULL;
    pool->pair.block = 0;
}
// The same of all pools.
void vr_front_settle_all(struct vr_device *device);

// Whether pairs may be used. The front notifies a listener and looks at the fences itself.
#define VR_FRONT_IS_ON(gate) (VRAM_FRONT && ((gate) & ~(uint32_t)(VR_GATE_LISTENER | VR_GATE_FENCES)) == 0)

// The block was handed out for this request, as it was found in the cache: a pair may begin. The pool is settled.
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

// Books a call of a pair that is not counted. After the malloc it is: the state with the block back was there a moment ago.
void vr_front_book_malloc(struct vr_device *device, struct vr_pool *pool);
void vr_front_book_free(struct vr_device *device, struct vr_pool *pool);
// Looks at the fences. False where the policy has to look again, or one that passed settled the pool.
VR_INLINE bool vr_front_is_left(struct vr_device *device, const struct vr_pool *pool) {
    bool polled = true;
    return vr_fences_poll(device, &polled) == VRAM_OK && polled && pool->pair.back;
}

// A request that the open pair of its pool answers. False where it does not: the policy is to. (One that some option rounds up into the
// other pool finds no pair of its size here.)
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

// The free of an allocated block. False, and nothing has changed, where it is not that of an open pair, or has more to change than that.
VR_INLINE bool vr_front_free(struct vr_shard *shard, struct vr_block *item, uint32_t block) {
    struct vr_device *device = shard->device;
    struct vr_pool *pool = &shard->pool[item->small];
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
