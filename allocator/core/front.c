#include "core/front.h"
#include "core/device.h"

void vr_front_open(struct vr_device *device, struct vr_pool *pool, uint32_t block, uint64_t size_bytes) {
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

// --- statistics -----------------------------------------------------------------------------------------------------------------------

// What the free of the pair's block changes is asked of the block: since it was handed out its neighbours are the same.
static struct vr_delta delta_of(const struct vr_device *device, const struct vr_pool *pool) {
    return vr_delta_of_free(device->allocator, vr_block_at(device->allocator, pool->pair.block));
}

static unsigned kind_of(const struct vr_device *device, const struct vr_pool *pool) {
    return vr_block_at(device->allocator, pool->pair.block)->small;
}

void vr_front_book(struct vr_device *device) {
    struct vr_front *front = &device->front;
    const struct vr_pool *pool = front->counted;
    front->counted = NULL;
    if (pool == NULL || (front->rounds == 0 && !pool->pair.back)) return;
    const struct vr_delta delta = delta_of(device, pool);
    if (front->rounds != 0) vr_totals_repeat(&device->stats.totals, kind_of(device, pool), &delta, front->rounds);
    if (pool->pair.back) vr_totals_book(&device->stats.totals, kind_of(device, pool), &delta, 0, 0);
    front->rounds = 0;
}

void vr_front_book_free(struct vr_device *device, const struct vr_pool *pool) {
    const struct vr_delta delta = delta_of(device, pool);
    vr_front_book(device);
    vr_totals_book(&device->stats.totals, kind_of(device, pool), &delta, 0, 0);
}

void vr_front_book_malloc(struct vr_device *device, struct vr_pool *pool) {
    struct vr_delta delta = delta_of(device, pool);
    for (int f = 0; f < VR_FAMILIES; f++) delta.of[f] = -delta.of[f];
    vr_front_book(device);
    vr_totals_book(&device->stats.totals, kind_of(device, pool), &delta, 0, 0);
    device->front.counted = pool;
}

void vr_front_settle(struct vr_device *device, struct vr_pool *pool) {
    struct vr_open_pair *pair = &pool->pair;
    const uint32_t block = pair->block;
    const bool back = pair->back;
    vr_front_book(device);
    if (block == 0) return;
    pair->block = 0;
    pair->back = false;
    if (back) (void)vr_pool_merge(vr_shard_of(device->allocator, vr_block_at(device->allocator, block)), block);
}

void vr_front_settle_all(struct vr_device *device) {
    while (device->front.listed != NULL) {
        struct vr_pool *pool = device->front.listed;
        vr_front_settle(device, pool);
        device->front.listed = pool->pair.next;
        pool->pair.listed = false;
    }
}
