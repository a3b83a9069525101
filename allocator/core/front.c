#include "core/front.h"
#include "core/device.h"

// --- statistics -----------------------------------------------------------------------------------------------------------------------

// What the free of the pair's block changes is asked of the block: since it was handed out its neighbours are the same.
static struct vr_delta delta_of(const struct vr_device *device, const struct vr_pool *pool) {
    return vr_delta_of_free(device->allocator, vr_block_at(device->allocator, pool->pair.block));
}

static unsigned kind_of(const struct vr_device *device, const struct vr_pool *pool) {
    return vr_block_at(device->allocator, pool->pair.block)->small;
}

void vr_front_book_counted(struct vr_device *device, const struct vr_pool *pool) {
    struct vr_front *front = &device->front;
    const struct vr_delta delta = delta_of(device, pool);
    if (front->rounds != 0) vr_totals_repeat(&device->stats.totals, kind_of(device, pool), &delta, front->rounds);
    if (pool->pair.back) vr_totals_book(&device->stats.totals, kind_of(device, pool), &delta);
    front->rounds = 0;
}

void vr_front_book_free(struct vr_device *device, const struct vr_pool *pool) {
    const struct vr_delta delta = delta_of(device, pool);
    vr_front_book(device);
    vr_totals_book(&device->stats.totals, kind_of(device, pool), &delta);
}

void vr_front_book_malloc(struct vr_device *device, struct vr_pool *pool) {
    struct vr_delta delta = delta_of(device, pool);
    for (int f = 0; f < VR_FAMILIES; f++) delta.of[f] = -delta.of[f];
    vr_front_book(device);
    vr_totals_book(&device->stats.totals, kind_of(device, pool), &delta);
    device->front.counted = pool;
}

void vr_front_merge(struct vr_device *device, uint32_t block) {
    (void)vr_pool_merge(vr_shard_of(device->allocator, vr_block_at(device->allocator, block)), block);
}

void vr_front_settle_all(struct vr_device *device) {
    while (device->front.listed != NULL) {
        struct vr_pool *pool = device->front.listed;
        vr_front_settle(device, pool);
        device->front.listed = pool->pair.next;
        pool->pair.listed = false;
    }
}
