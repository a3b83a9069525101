// Pages: their owners, their used bytes, and updating them after the fast path.
#include "core/source/paged.h"

// --- the table --------------------------------------------------------------------------------------------------------------------------

enum vram_status vr_paged_page_take(struct vr_paged_device *device, uint32_t *page) {
    if (device->spare_page_count != 0) {
        *page = device->spare_pages[--device->spare_page_count];
        return VRAM_OK;
    }
    if (device->page_count == 0) device->page_count = 1;
    VR_TRY(VR_GROW(device, pages, device->page_count + 1));
    VR_TRY(VR_GROW(device, spare_pages, device->page_count + 1));
    *page = (uint32_t)device->page_count++;
    device->pages[*page] = (struct vr_paged_page){0};
    return VRAM_OK;
}

void vr_paged_page_give(struct vr_paged_device *device, uint32_t page) {
    struct vr_paged_page *item = vr_paged_page_at(device, page);
    free(item->used);
    free(item->windows);
    free(item->views);
    free(item->shown);
    *item = (struct vr_paged_page){0};
    device->spare_pages[device->spare_page_count++] = page;
}

// --- lists ------------------------------------------------------------------------------------------------------------------------------

void vr_paged_list_append(struct vr_paged_device *device, uint32_t page, enum vr_paged_list list) {
    struct vr_paged_page *item = vr_paged_page_at(device, page);
    struct vr_paged_shard *own = item->own;
    item->list = (uint8_t)list;
    item->previous = own->last[list];
    item->next = 0;
    if (own->last[list] != 0) vr_paged_page_at(device, own->last[list])->next = page;
    if (own->first[list] == 0) own->first[list] = page;
    own->last[list] = page;
    if (list != VR_PAGED_FREE) return;
    own->free_bytes += item->size;
    item->freed = ++device->uses;
}

void vr_paged_list_remove(struct vr_paged_device *device, uint32_t page) {
    struct vr_paged_page *item = vr_paged_page_at(device, page);
    struct vr_paged_shard *own = item->own;
    if (item->previous != 0) vr_paged_page_at(device, item->previous)->next = item->next;
    if (item->next != 0) vr_paged_page_at(device, item->next)->previous = item->previous;
    if (own->first[item->list] == page) own->first[item->list] = item->next;
    if (own->last[item->list] == page) own->last[item->list] = item->previous;
    if (item->list == VR_PAGED_FREE) own->free_bytes -= item->size;
}

static void relist_page(struct vr_paged_device *device, uint32_t page) {
    const struct vr_paged_page *item = vr_paged_page_at(device, page);
    const enum vr_paged_list list = item->used_bytes == 0            ? VR_PAGED_FREE
                                    : item->used_bytes == item->size ? VR_PAGED_FULL
                                                                     : VR_PAGED_PARTIAL;
    if (item->list == list) return;
    vr_paged_list_remove(device, page);
    vr_paged_list_append(device, page, list);
}

// --- used ranges ------------------------------------------------------------------------------------------------------------------------

static size_t position_of(const struct vr_paged_page *page, uint64_t low) {
    size_t at;
    VR_LOWER_BOUND(at, i, 0, page->used_count, page->used[i].low < low);
    return at;
}

static void use_range(struct vr_paged_page *page, uint64_t low, uint64_t high, uint32_t slot) {
    const size_t at = position_of(page, low);
    assert((at == 0 || page->used[at - 1].high <= low) && (at == page->used_count || high <= page->used[at].low));
    assert(page->used_count < page->used_capacity);
    if (at != page->used_count) memmove(&page->used[at + 1], &page->used[at], (page->used_count - at) * sizeof *page->used);
    page->used[at] = (struct vr_paged_view){.low = low, .high = high, .slot = slot};
    page->used_count++;
    page->used_bytes += high - low;
}

static void unuse_range(struct vr_paged_page *page, uint64_t low, uint64_t high) {
    const size_t at = position_of(page, low);
    assert(at < page->used_count && page->used[at].low == low && page->used[at].high == high);
    page->used_count--;
    if (at != page->used_count) memmove(&page->used[at], &page->used[at + 1], (page->used_count - at) * sizeof *page->used);
    page->used_bytes -= high - low;
}

static void use_window(struct vr_paged_page *page, uint64_t address, bool live, uint64_t use) {
    size_t at = page->window_count - 1;
    while (page->windows[at].address != address) at--;
    page->windows[at].live += live ? 1 : UINT32_MAX;
    page->windows[at].last_use = use;
}

// Enters a slot that was handed out into one of its pages.
static void use_page(struct vr_paged_shard *own, uint32_t number, const struct vr_paged_walk *walk) {
    use_range(walk->page, walk->low, walk->high, number);
    vr_paged_show(walk->page, walk->low, walk->high, walk->base);
    if (own->device->slots[number].linked) return;
    vr_paged_cover(own, number, walk);
    walk->page->slots_made++;
}

// Brings the pages of a slot up to date after it was handed out or freed: their used bytes, live windows, holes and lists. Then the slots
// that a freed one covered are ready again.
static void apply_slot(struct vr_paged_shard *own, uint32_t number) {
    struct vr_paged_device *device = own->device;
    struct vr_paged_slot *slot = &device->slots[number];
    const bool live = vr_paged_is_live(device, number);
    struct vr_paged_runs runs = {.own = own, .cuts = live};
    struct vr_paged_walk walk = vr_paged_walk_block(own, vr_paged_block_of(slot));
    while (vr_paged_walk_next(&walk)) {
        if (live) {
            use_page(own, number, &walk);
        } else {
            unuse_range(walk.page, walk.low, walk.high);
        }
        use_window(walk.page, walk.base, live, device->uses);
        vr_paged_runs_add(&runs, walk.page, walk.low, walk.high);
        relist_page(device, walk.number);
    }
    vr_paged_runs_flush(&runs);
    slot->applied = live;
    device->slots_reused += live && slot->linked;
    if (!live && slot->covers) vr_paged_uncover(own, number);
}

// Reserves room for holes: each page of a changed slot adds at most one hole to each of its windows.
static enum vram_status make_room_for_ranges(struct vr_paged_shard *own) {
    const struct vr_paged_device *device = own->device;
    size_t most = 0;
    for (size_t i = 0; i < own->dirty_count; i++) {
        const struct vr_paged_slot *slot = &device->slots[own->dirty[i]];
        if (vr_paged_is_live(device, own->dirty[i]) == slot->applied) continue;
        struct vr_paged_walk walk = vr_paged_walk_block(own, vr_paged_block_of(slot));
        while (vr_paged_walk_next(&walk)) most += walk.page->window_count;
    }
    return vr_paged_hole_room(own, most);
}

// Handles a slot that was handed out and freed since the last settling: a new owner of its pages must wait for that use too.
static void use_anew(struct vr_paged_shard *own, const struct vr_paged_slot *slot) {
    struct vr_paged_walk walk = vr_paged_walk_block(own, vr_paged_block_of(slot));
    while (vr_paged_walk_next(&walk)) {
        if (walk.page->list != VR_PAGED_FREE) continue;
        vr_paged_list_remove(own->device, walk.number);
        vr_paged_list_append(own->device, walk.number, VR_PAGED_FREE);
    }
}

// Handles freed slots first, because their bytes may be in use again.
static enum vram_status settle_shard(struct vr_paged_shard *own) {
    if (own->dirty_count == 0) return VRAM_OK;
    VR_TRY(make_room_for_ranges(own));
    for (int live = 0; live < 2; live++) {
        for (size_t i = 0; i < own->dirty_count; i++) {
            const struct vr_paged_slot *slot = &own->device->slots[own->dirty[i]];
            if (vr_paged_is_live(own->device, own->dirty[i]) != (live != 0)) continue;
            if (slot->applied != (live != 0)) {
                apply_slot(own, own->dirty[i]);
            } else if (live == 0) {
                use_anew(own, slot);
                if (slot->covers) vr_paged_uncover(own, own->dirty[i]);
            }
        }
    }
    for (size_t i = 0; i < own->dirty_count; i++) {
        const uint32_t number = own->dirty[i];
        struct vr_paged_slot *slot = &own->device->slots[number];
        own->device->marks[number / 64].dirty &= ~((uint64_t)1 << number % 64);
        slot->last_use = ++own->device->uses;
        if (!slot->linked && !slot->applied) vr_paged_slot_keep(own->device, number);
    }
    own->dirty_count = 0;
    return VRAM_OK;
}

// Checks the slot, which the fast path does not read.
VR_INLINE bool may_be_taken(const struct vr_paged_shard *own, const struct vr_paged_found *found) {
    const struct vr_paged_slot *slot = &own->device->slots[found->slot];
    return slot->block == found->block && slot->own == own && slot->foreign == 0 && own->device->covered[found->slot] == 0 &&
           vr_paged_blocker(own->device, slot) == 0;
}

// Reports where the bytes are before a listener sees the block.
static void show_block(const struct vr_paged_shard *own, uint32_t block) {
    struct vr_paged_walk walk = vr_paged_walk_block(own, vr_block_at(own->shard->device->allocator, block));
    while (vr_paged_walk_next(&walk)) vr_paged_show(walk.page, walk.low, walk.high, walk.base);
}

void vr_paged_take_found(struct vr_shard *shard, const struct vr_paged_found *found) {
    VR_ASSERT_LOCKED(shard->device);
    struct vr_paged_shard *own = vr_paged_of(shard);
    assert((*found->ready & found->bit) != 0 && !vr_paged_is_live(own->device, found->slot));
    assert(VRAM_CHECK < 2 || may_be_taken(own, found));
    *found->ready &= ~found->bit;
    vr_paged_mark(own, found->slot, true);
    if (vr_has_listener(shard->device)) show_block(own, found->block);
}

// Hands out a new slot while everything is settled, so its pages are updated at once.
static void take_fresh(struct vr_paged_shard *own, uint32_t number) {
    struct vr_paged_slot *slot = &own->device->slots[number];
    own->device->marks[number / 64].live |= (uint64_t)1 << number % 64;
    vr_paged_fresh_clear(slot);
    slot->covers = true;
    apply_slot(own, number);
    slot->last_use = ++own->device->uses;
}

void vr_paged_take(struct vr_shard *shard, uint32_t block) {
    struct vr_paged_shard *own = vr_paged_of(shard);
    const uint32_t number = vr_block_at(shard->device->allocator, block)->previous;
    const struct vr_paged_slot *slot = &own->device->slots[number];
    if (!slot->linked) {
        take_fresh(own, number);
        return;
    }
    struct vr_paged_word *word = vr_paged_word_at(&own->sizes[slot->size], slot->place / 64);
    vr_paged_take_found(shard, &(struct vr_paged_found){block, number, &word->ready, (uint64_t)1 << slot->place % 64});
}

// Settles the newest shard first.
enum vram_status vr_paged_settle(struct vr_paged_device *device) {
    VR_ASSERT_ALL_LOCKED(device->device);
    for (size_t word = (device->numbered_count + 63) / 64; word-- > 0;) {
        uint64_t left = atomic_load_explicit(&device->unsettled[word], memory_order_relaxed);
        while (left != 0) {
            const unsigned bit = vr_log2_floor(left);
            left &= ~((uint64_t)1 << bit);
            VR_TRY(settle_shard(device->numbered[word * 64 + bit]));
            atomic_fetch_and_explicit(&device->unsettled[word], ~((uint64_t)1 << bit), memory_order_relaxed);
        }
    }
    return VRAM_OK;
}

// --- moving -----------------------------------------------------------------------------------------------------------------------------

enum vram_status vr_paged_page_move(struct vr_paged_device *device, uint32_t page, struct vr_paged_shard *to) {
    VR_ASSERT_ALL_LOCKED(device->device);
    struct vr_paged_page *item = vr_paged_page_at(device, page);
    struct vr_paged_shard *from = item->own;
    assert(item->used_bytes == 0 && from != to);
    VR_TRY(vr_paged_hole_room(to, item->window_count));
    if (!from->is_small) VR_TRY(vr_paged_hole_room(from, item->window_count)); // a hole may be cut in two
    vr_paged_close_holes(item);
    for (size_t i = 0; i < item->view_count; i++) {
        const uint32_t slot = item->views[i].slot;
        if (device->slots[slot].own == from) vr_paged_slot_leave(device, slot);
        if (device->slots[slot].own == to) vr_paged_slot_return(device, slot);
    }
    vr_paged_list_remove(device, page);
    if (from->shard->owner != to->shard->owner) {
        vr_paged_count_page(from, -1);
        vr_paged_count_page(to, 1);
        vr_reserved_move(from->shard, to->shard, item->away ? 0 : (int64_t)item->size);
    }
    item->own = to;
    vr_paged_open_holes(item);
    vr_paged_list_append(device, page, to->is_small ? VR_PAGED_FULL : VR_PAGED_FREE);
    return VRAM_OK;
}
