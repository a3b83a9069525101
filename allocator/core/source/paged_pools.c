// Private pools on pages. They draw on the pages of the device as everybody does; what a graph may know stays. When a pool has ended its
// pages go to the default pools of the same stream, and its addresses wait for the next pool: their windows need no driver call then.
#include "core/device.h"
#include "core/sleep/sleepers.h"
#include "core/source/paged.h"
#include "core/source/source_ops.h"

// Where nothing lives no page needs memory: those that have none go first. Where one stays, for the driver keeps it or its bytes are in use
// still, the pool sleeps on. Whether the pages could go to the stream's default pools is no matter: these may sleep, too.
static void wake_empty(struct vr_device *device, const struct vram_pool *pool) {
    const struct vr_sleeper *sleeper = vr_sleeper_of(device, pool);
    if (sleeper == NULL || vr_sleeper_live(device, sleeper) != 0) return;
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, pool, number)) != 0;) {
        struct vr_segment *segment = vr_segment_at(device->allocator, number);
        if (segment->source != &vr_source_paged && segment->source != &vr_source_paged_small) return;
    }
    vr_paged_asleep_trim(device, pool);
    if (!vr_paged_all_there(device, pool)) return;
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, pool, number)) != 0;) {
        vr_blocks_wake(device, vr_segment_at(device->allocator, number));
    }
    vr_sleeper_forget(device, pool);
}

static void hand_over(struct vr_shard *shard) {
    struct vr_paged_shard *own = shard->paged;
    const struct vr_shard *home = vr_shard_find(shard->device, shard->stream);
    if (own == NULL || home == NULL || shard->asleep || home->asleep) return;
    struct vr_paged_shard *to = NULL;
    if (vr_paged_small_return(own) != VRAM_OK || vr_paged_claim_all(own) != VRAM_OK) return;
    if (vr_paged_shard_of(vr_shard_find(shard->device, shard->stream), &to) != VRAM_OK) return;
    for (uint32_t page = own->first[VR_PAGED_FREE], next; page != 0; page = next) {
        next = vr_paged_page_at(own->device, page)->next;
        if (vr_paged_page_move(own->device, page, to) != VRAM_OK) return;
    }
}

void vr_paged_hand_over(struct vram_pool *pool) {
    struct vr_paged_device *paged = pool->device->paged;
    if (paged == NULL || pool->references != 0 || vr_paged_settle(paged) != VRAM_OK) return;
    wake_empty(pool->device, pool);
    for (size_t i = 0; i < pool->shard_count; i++) hand_over(pool->shards[i]);
}

// --- giving back ------------------------------------------------------------------------------------------------------------------------

enum vram_status vr_paged_release_pool(struct vram_pool *pool) {
    struct vr_paged_device *paged = pool->device->paged;
    if (paged == NULL || !vr_paged_may_wait(paged)) return VRAM_OK;
    if (pool->references == 0) {
        // Graphs may have been launched on whatever stream. To wait for all of them would spoil a capture: it stays for the next time.
        if (pool->captured && vr_device_captures(pool->device)) return VRAM_OK;
        if (pool->captured) VR_TRY(vr_driver_status(vr_cu(pool->device->allocator->driver, ctx_synchronize, 0)));
        vr_paged_hand_over(pool);
        return VRAM_OK;
    }
    VR_TRY(vr_paged_settle(paged));
    enum vram_status first = VRAM_OK;
    bool waited = false;
    for (size_t i = 0; i < pool->shard_count; i++) {
        struct vr_paged_shard *own = pool->shards[i]->paged;
        if (own == NULL || own->shard->asleep) continue;
        VR_TRY(vr_paged_small_return(own));
        VR_TRY(vr_paged_claim_all(own));
        if (own->free_bytes != 0 && !waited) VR_TRY(vr_paged_wait(paged));
        waited |= own->free_bytes != 0;
        for (uint32_t page = own->first[VR_PAGED_FREE], next; page != 0; page = next) {
            next = vr_paged_page_at(paged, page)->next;
            const enum vram_status status = vr_paged_page_release(paged, page);
            if (first == VRAM_OK) first = status;
        }
    }
    return first;
}
