// By which the fast way knows that a slot is free: a bit of each live one, and of each slot the bits that are in its way.
#include "core/source/paged.h"

void vr_paged_hide(struct vr_paged_shard *own, uint32_t number, uint32_t blocker) {
    struct vr_paged_slot *slot = &own->device->slots[number], *other = &own->device->slots[blocker];
    slot->blocker = blocker;
    slot->next_waiting = other->first_waiting;
    other->first_waiting = number;
    if (slot->linked) {
        vr_paged_ready_clear(own, slot);
    } else {
        vr_paged_fresh_clear(slot);
    }
}

static void show_again(struct vr_paged_slot *slot) {
    slot->blocker = slot->next_waiting = 0;
    if (slot->linked) {
        vr_paged_ready_set_if_free(slot);
    } else {
        vr_paged_fresh_set(slot);
    }
}

void vr_paged_unhide_all(struct vr_paged_device *device, struct vr_paged_slot *blocker) {
    for (uint32_t number = blocker->first_waiting, next; number != 0; number = next) {
        struct vr_paged_slot *slot = &device->slots[number];
        next = slot->next_waiting;
        show_again(slot);
    }
    blocker->first_waiting = 0;
}

void vr_paged_unhide(struct vr_paged_device *device, uint32_t number) {
    struct vr_paged_slot *slot = &device->slots[number];
    if (slot->blocker == 0) return;
    uint32_t *link = &device->slots[slot->blocker].first_waiting;
    while (*link != number) link = &device->slots[*link].next_waiting;
    *link = slot->next_waiting;
    show_again(slot);
}

void vr_paged_give(struct vr_shard *shard, uint32_t block) {
    struct vr_paged_shard *own = vr_paged_of(shard);
    struct vr_paged_device *device = own->device;
    struct vr_block *item = vr_block_at(shard->device->allocator, block);
    const uint32_t number = item->previous;
    struct vr_paged_slot *slot = &device->slots[number];
    assert(slot->block == block && slot->own == own && vr_paged_is_live(device, number) && slot->foreign == 0);
    assert(VRAM_CHECK < 2 || vr_paged_blocker(device, slot) == 0);
    if (VR_UNLIKELY(slot->first_waiting != 0)) vr_paged_unhide_all(device, slot);
    if (VR_LIKELY(slot->linked)) {
        vr_paged_ready_set(own, slot);
    } else {
        vr_paged_fresh_set(slot);
        own->stale += slot->is_in_the_way;
    }
    item->state = VR_FREE;
    vr_paged_mark(own, number, false);
}

void vr_paged_slot_leave(struct vr_paged_device *device, uint32_t number) {
    struct vr_paged_slot *slot = &device->slots[number];
    assert(!vr_paged_is_live(device, number));
    slot->foreign++;
    vr_paged_ready_clear(slot->own, slot);
}

void vr_paged_slot_return(struct vr_paged_device *device, uint32_t number) {
    struct vr_paged_slot *slot = &device->slots[number];
    slot->foreign--;
    vr_paged_ready_set_if_free(slot);
}
