#include "core/front.h"
#include "core/device.h"

void vr_front_open(struct vr_device *device, struct vr_pool *pool, uint32_t block, uint64_t size_bytes) {
    struct vr_open_pair *pair = &pool->pair;
    if (!vr_front_may_repeat(device)) return;
    assert(pair->block == 0 && !pair->back);
    pair->block = block;
    pair->size_bytes = size_bytes;
    if (pair->listed) return;
    pair->listed = true;
    pair->next = device->front.listed;
    device->front.listed = pool;
}

// --- statistics -----------------------------------------------------------------------------------------------------------------------

// What a round changes is asked of the block: since it was handed out its neighbours are the same.
void vr_front_book(struct vr_device *device) {
    struct vr_front *front = &device->front;
    if (front->counted == NULL) return;
    const struct vr_open_pair *pair = &front->counted->pair;
    const struct vr_block *item = vr_block_at(device->allocator, pair->block);
    const struct vr_delta delta = vr_delta_of_free(device->allocator, item);
    if (front->rounds != 0) vr_totals_repeat(&device->stats.totals, item->small, &delta, front->rounds);
    if (pair->back) vr_totals_book(&device->stats.totals, item->small, &delta, 0, 0);
    front->counted = NULL;
    front->rounds = 0;
}

void vr_front_count(struct vr_device *device, struct vr_pool *pool) {
    vr_front_book(device);
    device->front.counted = pool;
}

void vr_front_book_malloc(struct vr_device *device, struct vr_pool *pool) {
    const struct vr_block *item = vr_block_at(device->allocator, pool->pair.block);
    struct vr_delta delta = vr_delta_of_free(device->allocator, item);
    for (int f = 0; f < VR_FAMILIES; f++) delta.of[f] = -delta.of[f];
    vr_front_count(device, pool);
    vr_totals_book(&device->stats.totals, item->small, &delta, 0, 0);
}

void vr_front_settle(struct vr_device *device, struct vr_pool *pool) {
    struct vr_open_pair *pair = &pool->pair;
    const uint32_t block = pair->block;
    const bool back = pair->back;
    if (device->front.counted != NULL) vr_front_book(device);
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
