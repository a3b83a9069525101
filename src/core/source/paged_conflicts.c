// By which the fast way knows that a slot is free: what is in its way is counted.
#include "core/source/paged.h"

static void show(struct vr_paged_shard *own, const struct vr_paged_slot *slot) { own->words[slot->word].ready |= (uint64_t)1 << slot->bit; }
static void hide(struct vr_paged_shard *own, const struct vr_paged_slot *slot) {
    own->words[slot->word].ready &= ~((uint64_t)1 << slot->bit);
}

uint32_t vr_paged_ready(const struct vr_shard *shard, uint64_t rounded) {
    const struct vr_paged_shard *own = shard->paged;
    for (uint32_t at = (uint32_t)vr_map_get(&own->sizes, rounded); at != 0; at = own->words[at].next) {
        const uint64_t ready = own->words[at].ready;
        if (ready != 0) return own->device->slots[own->words[at].slots[(unsigned)__builtin_ctzll(ready)]].block;
    }
    return 0;
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
        if (other->blocked++ == 0) hide(own, other);
    }
    hide(own, slot);
    slot->blocked = 1;
    slot->live = true;
    note(own, slot, number);
}

void vr_paged_give(struct vr_shard *shard, uint32_t block) {
    struct vr_paged_shard *own = shard->paged;
    struct vr_block *item = vr_block_at(shard->device->allocator, block);
    const uint32_t number = item->previous;
    struct vr_paged_slot *slots = own->device->slots, *slot = &slots[number];
    assert(slot->block == block && slot->own == own && slot->blocked == 1 && slot->live);
    for (uint32_t i = 0; i < slot->conflict_count; i++) {
        struct vr_paged_slot *other = &slots[slot->conflicts[i]];
        if (--other->blocked == 0) show(own, other);
    }
    show(own, slot);
    slot->blocked = 0;
    slot->live = false;
    item->state = VR_FREE;
    note(own, slot, number);
}

void vr_paged_slot_leave(struct vr_paged_device *device, uint32_t slot) {
    struct vr_paged_slot *item = &device->slots[slot];
    if (item->blocked++ == 0) hide(item->own, item);
}

void vr_paged_slot_return(struct vr_paged_device *device, uint32_t slot) {
    struct vr_paged_slot *item = &device->slots[slot];
    if (--item->blocked == 0) show(item->own, item);
}

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
    show(own, item);
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
    hide(own, item);
    own->words[item->word].used &= ~((uint64_t)1 << item->bit);
    if (own->words[item->word].used == 0) drop_words(own, vr_paged_block_of(item)->size);
}
