// By which the fast way knows that a slot is free: what is in its way is counted.
#include "core/source/paged.h"

uint32_t vr_paged_ready(const struct vr_shard *shard, uint64_t rounded) {
    const struct vr_paged_shard *own = shard->paged;
    const uint32_t *blocked = own->device->blocked;
    if (VR_UNLIKELY(shard->asleep)) return 0;
    for (uint32_t at = (uint32_t)vr_map_get(&own->sizes, rounded); at != 0; at = own->words[at].next) {
        for (uint64_t idle = own->words[at].idle; idle != 0; idle &= idle - 1) {
            const uint32_t slot = own->words[at].slots[(unsigned)__builtin_ctzll(idle)];
            if (blocked[slot] == 0) return own->device->slots[slot].block;
        }
    }
    return 0;
}

void vr_paged_note(struct vr_paged_shard *own, struct vr_paged_slot *slot, uint32_t number) {
    if (slot->dirty) return;
    slot->dirty = true;
    own->dirty[own->dirty_count++] = number;
}

void vr_paged_give(struct vr_shard *shard, uint32_t block) {
    struct vr_paged_shard *own = shard->paged;
    struct vr_block *item = vr_block_at(shard->device->allocator, block);
    const uint32_t number = item->previous;
    struct vr_paged_slot *slot = &own->device->slots[number];
    uint32_t *blocked = own->device->blocked;
    assert(slot->block == block && slot->own == own && blocked[number] == 1 && slot->live);
    for (uint32_t i = 0; i < slot->conflict_count; i++) blocked[slot->conflicts[i]]--;
    blocked[number] = 0;
    own->words[slot->word].idle |= (uint64_t)1 << slot->bit;
    slot->live = false;
    item->state = VR_FREE;
    vr_paged_note(own, slot, number);
}

void vr_paged_slot_leave(struct vr_paged_device *device, uint32_t slot) { device->blocked[slot]++; }
void vr_paged_slot_return(struct vr_paged_device *device, uint32_t slot) { device->blocked[slot]--; }

enum vram_status vr_paged_word_room(struct vr_paged_shard *own) {
    if (own->word_count == 0) own->word_count = 1;
    VR_TRY(VR_GROW(own, words, own->word_count + 1));
    return vr_map_reserve(&own->sizes, 1);
}

void vr_paged_slot_enter(struct vr_paged_shard *own, uint32_t slot, uint64_t size) {
    uint32_t at = (uint32_t)vr_map_get(&own->sizes, size), last = 0;
    for (; at != 0 && own->words[at].used == UINT64_MAX; at = own->words[at].next) last = at;
    if (at == 0) {
        at = own->spare_word;
        if (at == 0) {
            at = (uint32_t)own->word_count++;
        } else {
            own->spare_word = own->words[at].next;
        }
        own->words[at] = (struct vr_paged_word){0};
        if (last != 0) {
            own->words[last].next = at;
        } else {
            const enum vram_status status = vr_map_set(&own->sizes, size, at);
            assert(status == VRAM_OK);
            (void)status;
        }
    }
    struct vr_paged_word *word = &own->words[at];
    struct vr_paged_slot *item = &own->device->slots[slot];
    item->word = at;
    item->bit = (uint8_t)(unsigned)__builtin_ctzll(~word->used);
    word->used |= (uint64_t)1 << item->bit;
    word->slots[item->bit] = slot;
    word->idle |= (uint64_t)1 << item->bit;
}

// A size that nobody has any more has no words, either.
static void drop_words(struct vr_paged_shard *own, uint64_t size) {
    const uint32_t first = (uint32_t)vr_map_get(&own->sizes, size);
    uint32_t last = first;
    for (uint32_t at = first; at != 0; at = own->words[at].next) {
        if (own->words[at].used != 0) return;
        last = at;
    }
    (void)vr_map_take(&own->sizes, size);
    own->words[last].next = own->spare_word;
    own->spare_word = first;
}

void vr_paged_slot_remove(struct vr_paged_shard *own, uint32_t slot) {
    const struct vr_paged_slot *item = &own->device->slots[slot];
    own->words[item->word].idle &= ~((uint64_t)1 << item->bit);
    own->words[item->word].used &= ~((uint64_t)1 << item->bit);
    if (own->words[item->word].used == 0) drop_words(own, vr_paged_block_of(item)->size);
}
