#include "core/front.h"
#include "core/device.h"

// Books the free of a pair's block. The change is computed from the block, whose neighbours are the same as when it was handed out.
VR_INLINE void book_free(struct vr_device *device, const struct vr_block *item) {
    const struct vr_delta delta = vr_delta_of_free(device->allocator, item);
    vr_totals_book(&device->stats.totals, item->small, &delta);
}

// Books `rounds` frees of the block, each followed by handing it out again. Both states occurred before, so no peak rises.
VR_NOINLINE static void book_rounds(struct vr_device *device, const struct vr_block *item, uint64_t rounds) {
    const struct vr_delta delta = vr_delta_of_free(device->allocator, item);
    vr_totals_repeat(&device->stats.totals, item->small, &delta, rounds);
}

void vr_front_book(struct vr_device *device) {
    VR_ASSERT_LOCKED(device);
    struct vr_front *front = &device->front;
    if (front->frees != 0) {
        const struct vr_open_pair *pair = &front->counted->pair;
        const struct vr_block *item = vr_block_at(device->allocator, pair->block);
        const uint64_t rounds = front->frees - pair->back;
        if (rounds != 0) book_rounds(device, item, rounds);
        if (pair->back) book_free(device, item);
    }
    front->frees = 0;
    front->counted = NULL;
}

void vr_front_do_undone(struct vr_device *device, struct vr_pool *pool) {
    VR_ASSERT_LOCKED(device);
    const uint32_t block = pool->pair.block;
    vr_front_book(device);
    if (!pool->pair.back) return;
    pool->pair.back = false;
    (void)vr_pool_merge(vr_shard_of(device->allocator, vr_block_at(device->allocator, block)), block);
}

void vr_front_settle_all(struct vr_device *device) {
    VR_ASSERT_LOCKED(device);
    while (device->front.listed != NULL) {
        struct vr_pool *pool = device->front.listed;
        vr_front_settle(device, pool);
        device->front.listed = pool->pair.next;
        pool->pair.listed = false;
    }
}

void vr_front_book_free(struct vr_device *device, struct vr_pool *pool) {
    vr_front_book(device);
    book_free(device, vr_block_at(device->allocator, pool->pair.block));
}

void vr_front_book_malloc(struct vr_device *device, struct vr_pool *pool) {
    const struct vr_block *item = vr_block_at(device->allocator, pool->pair.block);
    struct vr_delta delta = vr_delta_of_free(device->allocator, item);
    for (int f = 0; f < VR_FAMILIES; f++) delta.of[f] = -delta.of[f];
    vr_front_book(device);
    vr_totals_book(&device->stats.totals, item->small, &delta);
    device->front.counted = pool;
}
