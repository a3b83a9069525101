// Finds free slots for the fast path: slots by exact size, a bit for each live slot, and for each slot the bits of those that overlap it.
// The first free slot is found without checking the others, however many there are.
#include "core/source/paged.h"

enum {
    PATIENCE = 5
}; // blocked slots that a search skips before it hides further ones, because skipping a few costs less than hiding and unhiding them

static struct vr_paged_hint *hint_of(struct vr_paged_shard *own, uint64_t bytes) {
    return &own->hints[(bytes >> 9 ^ bytes >> 15 ^ bytes >> 21) % VR_PAGED_HINTS];
}

// Returns the entry of a size, or 0.
static uint64_t number_of_size(struct vr_paged_shard *own, uint64_t bytes) {
    struct vr_paged_hint *hint = hint_of(own, bytes);
    if (VR_LIKELY(hint->bytes == bytes)) return hint->number;
    const uint64_t number = vr_map_get(&own->numbers, bytes);
    if (number != 0) *hint = (struct vr_paged_hint){bytes, number};
    return number;
}

// Finds the slot at the lowest place of the word that is not blocked.
static bool ready_in(struct vr_paged_shard *own, const struct vr_paged_look *looks, struct vr_paged_word *word, unsigned *passed,
                     struct vr_paged_found *found) {
    const struct vr_paged_marks *marks = own->device->marks;
    for (uint64_t ready = word->ready; ready != 0; ready &= ready - 1) {
        const struct vr_paged_look *look = &looks[(unsigned)__builtin_ctzll(ready)];
        if (VR_UNLIKELY(own->device->covered[look->slot] != 0)) {
            own->device->covered[look->slot] |= VR_PAGED_NOT_READY;
            word->ready &= ~(ready & (~ready + 1));
            continue;
        }
        const uint64_t blocked = (marks[look->words[0]].live & look->slots[0]) | (marks[look->words[1]].live & look->slots[1]);
        uint32_t blocker = 0;
        if (VR_UNLIKELY((blocked != 0 && *passed == PATIENCE) || (blocked == 0 && look->more)))
            blocker = vr_paged_blocker(own->device, &own->device->slots[look->slot]);
        if ((blocked | blocker) == 0) {
            *found = (struct vr_paged_found){look->block, look->slot, &word->ready, ready & (~ready + 1)};
            return true;
        }
        if (VR_UNLIKELY(*passed == PATIENCE)) vr_paged_hide(own, look->slot, blocker);
        *passed += *passed != PATIENCE;
    }
    return false;
}

VR_NOINLINE static bool find_further(struct vr_paged_shard *own, struct vr_paged_size *size, unsigned passed,
                                     struct vr_paged_found *found) {
    for (size_t i = 0; i * 64 < size->word_count; i++) {
        for (uint64_t some = size->some[i]; some != 0; some &= some - 1) {
            const size_t word = i * 64 + (unsigned)__builtin_ctzll(some);
            if (ready_in(own, &size->looks[word * 64], &size->words[word], &passed, found)) return true;
            if (size->words[word].ready == 0) size->some[i] &= ~(some & (~some + 1));
        }
    }
    return false;
}

bool vr_paged_find(const struct vr_shard *shard, uint64_t rounded, struct vr_paged_found *found) {
    if (VR_UNLIKELY(shard->vacant)) return false;
    struct vr_paged_shard *own = vr_paged_of(shard);
    const uint64_t number = number_of_size(own, rounded);
    if (number == 0) return false;
    struct vr_paged_size *size = &own->sizes[number];
    unsigned passed = 0;
    if (VR_UNLIKELY((size->fresh_count | own->stale) != 0)) return false;
    if (VR_LIKELY(ready_in(own, size->looks, &size->first, &passed, found))) return true;
    return size->word_count > 1 && find_further(own, size, passed, found);
}

uint32_t vr_paged_ready(const struct vr_shard *shard, uint64_t rounded) {
    struct vr_paged_found found;
    return vr_paged_find(shard, rounded, &found) ? found.block : 0;
}

static enum vram_status take_size(struct vr_paged_shard *own, uint64_t bytes, uint64_t *number) {
    *number = own->spare_size;
    VR_TRY(vr_map_reserve(&own->numbers, 1));
    if (*number == 0) {
        if (own->size_count == 0) own->size_count = 1;
        VR_TRY(VR_GROW(own, sizes, own->size_count + 1));
        *number = own->size_count++;
        own->sizes[*number] = (struct vr_paged_size){0};
    } else {
        own->spare_size = own->sizes[*number].next;
    }
    return vr_map_set(&own->numbers, bytes, *number); // room was reserved
}

static enum vram_status further_word(struct vr_paged_size *size) {
    const size_t word = size->word_count;
    VR_TRY(VR_GROW(size, words, word + 1));
    VR_TRY(VR_GROW(size, some, word / 64 + 1));
    if (word == 1 || word % 64 == 0) size->some[word / 64] = 0;
    return VRAM_OK;
}

enum vram_status vr_paged_size_room(struct vr_paged_shard *own, uint64_t bytes) {
    uint64_t number = vr_map_get(&own->numbers, bytes);
    if (number == 0) VR_TRY(take_size(own, bytes, &number));
    struct vr_paged_size *size = &own->sizes[number];
    while (size->full < size->word_count && vr_paged_word_at(size, size->full)->used == UINT64_MAX) size->full++;
    if (size->full < size->word_count) return VRAM_OK;
    VR_TRY(VR_GROW(size, looks, (size->word_count + 1) * 64));
    if (size->word_count != 0) VR_TRY(further_word(size));
    *vr_paged_word_at(size, size->word_count) = (struct vr_paged_word){0};
    size->word_count++;
    return VRAM_OK;
}

void vr_paged_slot_look(const struct vr_paged_slot *slot) {
    struct vr_paged_look *look = &slot->own->sizes[slot->size].looks[slot->place];
    for (uint32_t i = 0; i < 2; i++) {
        const struct vr_paged_way way = i < slot->way_count ? slot->ways[i] : (struct vr_paged_way){0};
        look->slots[i] = way.slots;
        look->words[i] = way.word;
    }
    look->block = slot->block;
    look->more = slot->way_count > 2;
}

void vr_paged_slot_enter(struct vr_paged_shard *own, uint32_t slot, uint64_t bytes) {
    const uint64_t number = vr_map_get(&own->numbers, bytes);
    struct vr_paged_size *size = &own->sizes[number];
    struct vr_paged_slot *item = &own->device->slots[slot];
    struct vr_paged_word *word = vr_paged_word_at(size, size->full);
    assert(number != 0 && size->full < size->word_count && word->used != UINT64_MAX);
    const unsigned bit = (unsigned)__builtin_ctzll(~word->used);
    item->size = (uint32_t)number;
    item->place = (uint32_t)(size->full * 64 + bit);
    word->used |= (uint64_t)1 << bit;
    size->looks[item->place].slot = slot;
    vr_paged_slot_look(item);
    size->count++;
    own->device->sizes_met += size->period != own->device->period;
    size->period = own->device->period;
    vr_paged_fresh_set(item);
}

void vr_paged_slot_remove(struct vr_paged_shard *own, uint32_t slot) {
    const struct vr_paged_slot *item = &own->device->slots[slot];
    struct vr_paged_size *size = &own->sizes[item->size];
    vr_paged_ready_clear(own, item);
    struct vr_paged_word *word = vr_paged_word_at(size, item->place / 64);
    word->used &= ~((uint64_t)1 << item->place % 64);
    if (!item->linked) vr_paged_fresh_clear(item);
    if (item->place / 64 < size->full) size->full = item->place / 64;
    if (--size->count != 0) return;
    // That was the last slot of this size.
    const uint64_t bytes = vr_paged_block_of(item)->size;
    (void)vr_map_take(&own->numbers, bytes);
    *hint_of(own, bytes) = (struct vr_paged_hint){0};
    size->word_count = size->full = 0;
    size->next = own->spare_size;
    own->spare_size = item->size;
}

void vr_paged_sizes_free(struct vr_paged_shard *own) {
    for (size_t i = 1; i < own->size_count; i++) {
        free(own->sizes[i].words);
        free(own->sizes[i].some);
        free(own->sizes[i].looks);
    }
    free(own->sizes);
    vr_map_release(&own->numbers);
}

// --- blocked slots ----------------------------------------------------------------------------------------------------------------------

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
    VR_ASSERT_LOCKED(shard->device);
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
