// front.h: what makes a malloc and its free that repeat cheap. The policy below it (alloc.h) knows nothing of it.
//
// A program asks again and again for what it has just given back. So the free of the block that a pool handed out last is left undone, and
// the same request takes the block again: no index and no neighbour changes. Once the front is settled, the state of the policy is what it
// would be had each call gone through the policy.
//
// That is so because nothing else happens to the pool while its pair is open: every other call that concerns the pool settles it first. And
// from a hand-out on, while nothing else is booked, the device alternates between two states, with the block out and with it back, both of
// which it was in: no peak can rise, so that rounds are only counted, and booked before anything else is. Whatever concerns every request
// (fences, captures, routes, ...) keeps pairs from being opened and used. All of it runs under the device's lock.
#ifndef VR_CORE_FRONT_H
#define VR_CORE_FRONT_H

#include "core/pool.h"

#ifndef VRAM_FRONT
#define VRAM_FRONT 1 // 0: every call goes through the policy
#endif

// Books the rounds that the pool's pair counted, and its last free.
void vr_front_book_counted(struct vr_device *device, const struct vr_pool *pool);
// Ends the counting, and books it.
VR_INLINE void vr_front_book(struct vr_device *device) {
    const struct vr_pool *pool = device->front.counted;
    device->front.counted = NULL;
    if (pool != NULL && (device->front.rounds != 0 || pool->pair.back)) vr_front_book_counted(device, pool);
}
// Does the merge that the free of the block left undone.
void vr_front_merge(struct vr_device *device, uint32_t block);
// Before the policy changes anything in a pool: books what is counted, does the merge that was left undone, and closes the pool's pair.
VR_INLINE void vr_front_settle(struct vr_device *device, struct vr_pool *pool) {
    const struct vr_open_pair pair = pool->pair;
    vr_front_book(device);
    pool->pair.block = 0;
    pool->pair.back = false;
    if (pair.back) vr_front_merge(device, pair.block);
}
// The same of all pools.
void vr_front_settle_all(struct vr_device *device);

// Whether pairs may be used: only the gate bit of a listener may be set, because the front notifies it itself.
VR_INLINE bool vr_front_may_repeat(const struct vr_device *device) {
    return VRAM_FRONT && (atomic_load_explicit(&device->gate, memory_order_relaxed) & ~(uint32_t)VR_GATE_LISTENER) == 0;
}

// The block was handed out for this request, as it was found in the cache: a pair may begin. The pool is settled.
VR_INLINE void vr_front_open(struct vr_device *device, struct vr_pool *pool, uint32_t block, uint64_t size_bytes) {
    struct vr_open_pair *pair = &pool->pair;
    if (!vr_front_may_repeat(device)) return;
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
void vr_front_book_free(struct vr_device *device, const struct vr_pool *pool);

// A request that the open pair of its pool answers. False, and nothing has changed, where it does not. (One that some option rounds up into
// the other pool finds no pair of its size here.)
VR_INLINE bool vr_front_malloc(struct vr_device *device, struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    struct vr_pool *pool = &shard->pool[size_bytes <= VR_SMALL_LIMIT ? VR_SMALL : VR_LARGE];
    struct vr_open_pair *pair = &pool->pair;
    if (!pair->back || pair->size_bytes != size_bytes || !vr_front_may_repeat(device)) return false;
    struct vr_block *item = vr_block_at(device->allocator, pair->block);
    if (VR_UNLIKELY(device->front.counted != pool)) {
        vr_front_book_malloc(device, pool);
    } else {
        device->front.rounds++;
    }
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
    if (VR_UNLIKELY(device->front.counted != pool)) vr_front_book_free(device, pool);
    if (VR_UNLIKELY(vr_has_listener(device))) vr_notify_freed(shard, item);
    pool->pair.back = true;
    item->state = VR_AT_FRONT;
    return true;
}

#endif
