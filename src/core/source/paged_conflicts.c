// By which the fast way knows that a slot is free: what is in its way is counted.
#include "core/source/paged.h"

// Into and out of the index of its shard's pool.
static void show(const struct vr_paged_slot *slot) {
    struct vr_shard *shard = slot->own->shard;
    vr_paged_block_of(slot)->state = VR_FREE;
    vr_index_insert(&shard->pool[VR_LARGE].index, &shard->device->allocator->arena, slot->block);
}

static void hide(const struct vr_paged_slot *slot) {
    struct vr_shard *shard = slot->own->shard;
    vr_index_remove(&shard->pool[VR_LARGE].index, &shard->device->allocator->arena, slot->block);
    vr_paged_block_of(slot)->state = VR_HOLE;
}

static void note(struct vr_paged_shard *own, struct vr_paged_slot *slot, uint32_t number) {
    if (slot->dirty) return;
    slot->dirty = true;
    own->dirty[own->dirty_count++] = number;
}

void vr_paged_take(struct vr_shard *shard, uint32_t block) {
    struct vr_paged_shard *own = shard->paged;
    const uint32_t number = vr_block_at(shard->device->allocator, block)->previous;
    struct vr_paged_slot *slots = own->device->slots, *slot = &slots[number];
    assert(slot->block == block && slot->own == own && slot->blocked == 0);
    for (uint32_t i = 0; i < slot->conflict_count; i++) {
        struct vr_paged_slot *other = &slots[slot->conflicts[i]];
        if (other->blocked++ == 0) hide(other);
    }
    slot->blocked = 1;
    slot->live = true;
    note(own, slot, number);
}

void vr_paged_give(struct vr_shard *shard, uint32_t block) {
    struct vr_paged_shard *own = shard->paged;
    const uint32_t number = vr_block_at(shard->device->allocator, block)->previous;
    struct vr_paged_slot *slots = own->device->slots, *slot = &slots[number];
    assert(slot->block == block && slot->own == own && slot->blocked == 1 && slot->live);
    for (uint32_t i = 0; i < slot->conflict_count; i++) {
        struct vr_paged_slot *other = &slots[slot->conflicts[i]];
        if (--other->blocked == 0) show(other);
    }
    slot->blocked = 0;
    slot->live = false;
    show(slot);
    note(own, slot, number);
}

void vr_paged_slot_leave(struct vr_paged_device *device, uint32_t slot) {
    if (device->slots[slot].blocked++ == 0) hide(&device->slots[slot]);
}

void vr_paged_slot_return(struct vr_paged_device *device, uint32_t slot) {
    if (--device->slots[slot].blocked == 0) show(&device->slots[slot]);
}
