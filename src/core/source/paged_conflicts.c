// By which the fast way knows that a slot is free: what is in its way is counted.
#include "core/source/paged.h"

void vr_paged_give(struct vr_shard *shard, uint32_t block) {
    struct vr_paged_shard *own = shard->paged;
    struct vr_block *item = vr_block_at(shard->device->allocator, block);
    const uint32_t number = item->previous;
    struct vr_paged_slot *slot = &own->device->slots[number];
    uint32_t *blocked = own->device->blocked;
    const uint32_t *conflicts = slot->conflicts, count = slot->conflict_count;
    assert(slot->block == block && slot->own == own && blocked[number] == 1 && slot->live);
    for (uint32_t i = 0; i < count; i++) vr_paged_unblock(own->device, conflicts[i]);
    blocked[number] = 0;
    vr_paged_ready_set(own, slot);
    slot->live = false;
    item->state = VR_FREE;
    vr_paged_note(own, slot, number);
}

void vr_paged_slot_leave(struct vr_paged_device *device, uint32_t slot) { device->blocked[slot]++; }
void vr_paged_slot_return(struct vr_paged_device *device, uint32_t slot) { vr_paged_unblock(device, slot); }
