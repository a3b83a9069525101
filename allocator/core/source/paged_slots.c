// Makes, links and forgets slots.
#include "core/source/paged.h"

// Limits per device, and per page: the cost of a new slot grows with the slots that share its pages.
enum { MOST_SLOTS = 1 << 16, MOST_VIEWS = 64 };

// --- making -----------------------------------------------------------------------------------------------------------------------------

// Adds 64 entries at a time, so that only one shard changes a word of marks. If a later step fails, the entries are kept.
static enum vram_status add_entries(struct vr_paged_shard *own) {
    struct vr_paged_device *device = own->device;
    const size_t first = device->slot_count;
    VR_TRY(VR_GROW(device, slots, first + 64));
    VR_TRY(VR_GROW(device, marks, first / 64 + 1));
    VR_TRY(VR_GROW(device, covered, first + 64));
    VR_TRY(VR_GROW(own, spare_slots, own->entries + 64));
    memset(&device->slots[first], 0, 64 * sizeof *device->slots);
    memset(&device->covered[first], 0, 64 * sizeof *device->covered);
    device->marks[first / 64] = (struct vr_paged_marks){0};
    for (size_t i = 64; i-- > 0;)
        if (first + i != 0) own->spare_slots[own->spare_slot_count++] = (uint32_t)(first + i);
    own->entries += 64;
    device->slot_count += 64;
    return VRAM_OK;
}

static enum vram_status take_entry(struct vr_paged_shard *own, uint32_t *slot) {
    if (own->spare_slot_count == 0) VR_TRY(add_entries(own));
    *slot = own->spare_slots[own->spare_slot_count - 1];
    return VRAM_OK;
}

static void keep_entry(struct vr_paged_shard *own) {
    own->spare_slot_count--;
    own->device->live_slots++;
}

// Ways are sorted by word. Returns the first that is not below the word of `other`.
static uint32_t way_position(const struct vr_paged_slot *slot, uint32_t other) {
    uint32_t at;
    VR_LOWER_BOUND(at, i, 0, slot->way_count, slot->ways[i].word < other / 64);
    return at;
}

static bool has_conflict(const struct vr_paged_slot *slot, uint32_t other) {
    const uint32_t at = way_position(slot, other);
    return at < slot->way_count && slot->ways[at].word == other / 64 && (slot->ways[at].slots >> other % 64 & 1) != 0;
}

// Adds an overlap. There must be room for one more way. Returns whether the fast path's copy of the slot is outdated.
static bool add_conflict(struct vr_paged_slot *slot, uint32_t other) {
    const uint32_t at = way_position(slot, other);
    const bool is_new = at == slot->way_count || slot->ways[at].word != other / 64;
    if (is_new) {
        memmove(&slot->ways[at + 1], &slot->ways[at], (slot->way_count++ - at) * sizeof *slot->ways);
        slot->ways[at] = (struct vr_paged_way){.word = other / 64};
    }
    slot->ways[at].slots |= (uint64_t)1 << other % 64;
    return at < 2 || (is_new && slot->way_count == 3);
}

static bool drop_conflict(struct vr_paged_slot *slot, uint32_t other) {
    const uint32_t at = way_position(slot, other);
    assert(at < slot->way_count && slot->ways[at].word == other / 64);
    slot->ways[at].slots &= ~((uint64_t)1 << other % 64);
    const bool is_empty = slot->ways[at].slots == 0;
    if (is_empty) memmove(&slot->ways[at], &slot->ways[at + 1], (--slot->way_count - at) * sizeof *slot->ways);
    return at < 2 || (is_empty && slot->way_count == 2);
}

// Iterates over all slots that overlap a slot: begin with *way = 0 and *left = 0.
static uint32_t next_conflict(const struct vr_paged_slot *slot, uint32_t *way, uint64_t *left) {
    if (*left == 0) {
        if (*way == slot->way_count) return 0;
        *left = slot->ways[(*way)++].slots;
    }
    const uint32_t number = slot->ways[*way - 1].word * 64 + (uint32_t)__builtin_ctzll(*left);
    *left &= *left - 1;
    return number;
}

// Reserves room for the changes of a page when a slot is handed out, and for a view of it.
static enum vram_status prepare_page(struct vr_paged_page *page) {
    VR_TRY(VR_GROW(page, used, page->used_count + page->view_count + 2));
    return vr_paged_shown_room(page, page->view_count + 1);
}

static void commit_slot(struct vr_paged_shard *own, uint32_t number, uint32_t record) {
    struct vr_paged_device *device = own->device;
    device->slots[number] = (struct vr_paged_slot){.own = own, .block = record, .last_use = ++device->uses};
    vr_paged_slot_enter(own, number, vr_block_at(own->shard->device->allocator, record)->size);
    keep_entry(own);
}

// --- forgetting -------------------------------------------------------------------------------------------------------------------------

// Returns the page's view of the slot, which must exist. Searches backwards, because the slot is mostly a new one.
static struct vr_paged_view *view_of(const struct vr_paged_page *page, uint32_t slot) {
    size_t at = page->view_count - 1;
    while (page->views[at].slot != slot) at--;
    return &page->views[at];
}

static bool is_at_rest(const struct vr_paged_device *device, uint32_t slot) {
    return !vr_paged_is_live(device, slot) && !vr_paged_is_dirty(device, slot);
}

static void forget_views(const struct vr_paged_device *device, uint32_t number) {
    const struct vr_paged_slot *slot = &device->slots[number];
    struct vr_paged_walk walk = vr_paged_walk_block(slot->own, vr_paged_block_of(slot));
    while (vr_paged_walk_next(&walk)) {
        struct vr_paged_page *page = walk.page;
        struct vr_paged_view *view = view_of(page, number);
        *view = page->views[--page->view_count];
    }
}

void vr_paged_slot_forget(struct vr_paged_device *device, uint32_t number) {
    struct vr_paged_slot *slot = &device->slots[number];
    assert(is_at_rest(device, number));
    vr_paged_unhide(device, number);
    vr_paged_slot_remove(slot->own, number);
    if (slot->linked) forget_views(device, number);
    uint64_t left = 0;
    for (uint32_t way = 0, other; (other = next_conflict(slot, &way, &left)) != 0;) {
        if (drop_conflict(&device->slots[other], number)) vr_paged_slot_look(&device->slots[other]);
    }
    free(slot->ways);
    vr_shard_recycle(slot->own->shard, slot->block);
    slot->own->spare_slots[slot->own->spare_slot_count++] = number;
    *slot = (struct vr_paged_slot){0};
    device->covered[number] = 0;
    device->live_slots--;
}

// Forgets the idle slots that were not among the last MOST_SLOTS / 2 uses. Runs again when there are twice as many slots as remain.
void vr_paged_slots_prune(struct vr_paged_device *device) {
    if (device->live_slots < MOST_SLOTS || device->live_slots < device->prune_at) return;
    const uint64_t since = device->uses - MOST_SLOTS / 2;
    for (uint32_t i = 1; i < device->slot_count; i++) {
        const struct vr_paged_slot *slot = &device->slots[i];
        if (slot->own != NULL && is_at_rest(device, i) && slot->last_use < since) vr_paged_slot_forget(device, i);
    }
    device->prune_at = 2 * device->live_slots;
}

void vr_paged_slot_keep(struct vr_paged_device *device, uint32_t number) {
    if (device->fresh == NULL) device->fresh = calloc(VR_PAGED_MOST_FRESH, sizeof *device->fresh);
    if (device->fresh == NULL) return; // the slot stays until there are very many
    struct vr_paged_fresh *entry = &device->fresh[device->fresh_made++ % VR_PAGED_MOST_FRESH];
    const struct vr_paged_slot *oldest = &device->slots[entry->slot];
    const bool is_same = oldest->own != NULL && !oldest->linked && oldest->last_use == entry->last_use;
    if (is_same && is_at_rest(device, entry->slot)) vr_paged_slot_forget(device, entry->slot);
    *entry = (struct vr_paged_fresh){.slot = number, .last_use = device->slots[number].last_use};
}

static int by_number(const void *a, const void *b) { return VR_ORDER(*(const uint64_t *)a, *(const uint64_t *)b); }

// Makes room among the views of a page: forgets half of the idle slots, those used longest ago.
static void thin_views(struct vr_paged_device *device, uint32_t number) {
    const struct vr_paged_page *page = vr_paged_page_at(device, number);
    uint64_t uses[MOST_VIEWS];
    size_t count = 0;
    if (page->view_count < MOST_VIEWS) return;
    for (size_t i = 0; i < page->view_count && count < MOST_VIEWS; i++) {
        const struct vr_paged_slot *slot = &device->slots[page->views[i].slot];
        if (is_at_rest(device, page->views[i].slot)) uses[count++] = slot->last_use;
    }
    if (count < 2) return;
    qsort(uses, count, sizeof *uses, by_number);
    for (size_t i = page->view_count; i-- > 0;) {
        const struct vr_paged_slot *slot = &device->slots[page->views[i].slot];
        if (is_at_rest(device, page->views[i].slot) && slot->last_use < uses[count / 2]) vr_paged_slot_forget(device, page->views[i].slot);
    }
}

// --- linking ----------------------------------------------------------------------------------------------------------------------------

// Returns whether a view of the page belongs to a slot of the shard and shows a byte of the range.
static bool shows_a_byte(const struct vr_paged_shard *own, const struct vr_paged_view *view, const struct vr_paged_walk *walk) {
    return view->high > walk->low && walk->high > view->low && view->shard == own->number;
}

void vr_paged_cover(struct vr_paged_shard *own, uint32_t number, const struct vr_paged_walk *walk) {
    bool is_in_the_way = own->device->slots[number].is_in_the_way;
    for (size_t i = 0; i < walk->page->view_count; i++) {
        if (!shows_a_byte(own, &walk->page->views[i], walk)) continue;
        own->device->covered[walk->page->views[i].slot]++;
        is_in_the_way = true;
    }
    own->device->slots[number].is_in_the_way = is_in_the_way;
}

void vr_paged_uncover(struct vr_paged_shard *own, uint32_t number) {
    struct vr_paged_slot *slot = &own->device->slots[number];
    struct vr_paged_walk walk = vr_paged_walk_block(own, vr_paged_block_of(slot));
    while (slot->is_in_the_way && vr_paged_walk_next(&walk)) {
        for (size_t i = 0; i < walk.page->view_count; i++) {
            if (!shows_a_byte(own, &walk.page->views[i], &walk)) continue;
            const uint32_t other = walk.page->views[i].slot;
            assert((own->device->covered[other] & ~VR_PAGED_NOT_READY) != 0);
            if (--own->device->covered[other] != VR_PAGED_NOT_READY) continue;
            own->device->covered[other] = 0;
            vr_paged_ready_set_if_free(&own->device->slots[other]); // a search cleared its bit, so it is not live
        }
    }
    own->stale -= slot->is_in_the_way;
    slot->covers = slot->is_in_the_way = false;
}

// Finds the overlapping slots. Links only this slot to them, and reserves room in theirs.
static enum vram_status find_conflicts(struct vr_paged_shard *own, struct vr_paged_slot *slot) {
    struct vr_paged_walk walk = vr_paged_walk_block(own, vr_paged_block_of(slot));
    while (vr_paged_walk_next(&walk)) {
        VR_TRY(VR_GROW(walk.page, views, walk.page->view_count + 1));
        VR_TRY(prepare_page(walk.page));
        for (size_t i = 0; i < walk.page->view_count; i++) {
            const uint32_t number = walk.page->views[i].slot;
            struct vr_paged_slot *other = &own->device->slots[number];
            if (!shows_a_byte(own, &walk.page->views[i], &walk) || has_conflict(slot, number)) continue;
            VR_TRY(VR_GROW(slot, ways, slot->way_count + 1));
            VR_TRY(VR_GROW(other, ways, other->way_count + 1));
            (void)add_conflict(slot, number);
        }
    }
    return VRAM_OK;
}

static uint32_t first_live(const struct vr_paged_device *device, const struct vr_paged_view *views, size_t count,
                           const struct vr_paged_walk *walk) {
    for (size_t i = 0; i < count; i++)
        if (views[i].high > walk->low && walk->high > views[i].low && vr_paged_is_live(device, views[i].slot)) return views[i].slot;
    return 0;
}

uint32_t vr_paged_user(const struct vr_paged_shard *own, const struct vr_paged_slot *slot, uint32_t *foreign) {
    struct vr_paged_walk walk = vr_paged_walk_block(own, vr_paged_block_of(slot));
    *foreign = 0;
    while (vr_paged_walk_next(&walk)) {
        *foreign += walk.page->own != own;
        uint32_t user = first_live(own->device, walk.page->used, walk.page->used_count, &walk);
        if (user == 0) user = first_live(own->device, walk.page->views, walk.page->view_count, &walk);
        if (user != 0) return user;
    }
    return 0;
}

// The windows of a slot that is not linked may be gone. Their addresses then show nothing else.
bool vr_paged_is_mapped(const struct vr_paged_shard *own, const struct vr_paged_slot *slot) {
    const struct vr_block *item = vr_paged_block_of(slot);
    const struct vr_paged_region *region = vr_paged_region_of(own, item->address);
    uint64_t base = 0, at = item->address;
    while (at < item->address + item->size) {
        const uint32_t page = vr_paged_page_of(own->device, region, at, &base);
        if (page == 0) return false;
        at = base + vr_paged_page_at(own->device, page)->size;
    }
    return true;
}

// Links a slot whose bytes are all free.
static enum vram_status link_slot(struct vr_paged_shard *own, uint32_t number) {
    struct vr_paged_device *device = own->device;
    struct vr_paged_slot *slot = &device->slots[number];
    const struct vr_paged_walk start = vr_paged_walk_block(own, vr_paged_block_of(slot));
    struct vr_paged_walk walk = start;
    while (vr_paged_walk_next(&walk)) thin_views(device, walk.number);
    const enum vram_status status = find_conflicts(own, slot);
    if (status != VRAM_OK) {
        slot->way_count = slot->foreign = 0;
        return status;
    }
    uint64_t left = 0;
    for (uint32_t way = 0, other; (other = next_conflict(slot, &way, &left)) != 0;) {
        if (add_conflict(&device->slots[other], number)) vr_paged_slot_look(&device->slots[other]);
    }
    walk = start;
    while (vr_paged_walk_next(&walk))
        walk.page->views[walk.page->view_count++] =
            (struct vr_paged_view){.low = walk.low, .high = walk.high, .slot = number, .shard = own->number};
    slot->linked = true;
    vr_paged_slot_look(slot);
    vr_paged_fresh_clear(slot);
    vr_paged_ready_set_if_free(slot);
    return VRAM_OK;
}

// Links the slot, hides it behind a live slot that shares a byte with it, or forgets it if its windows are gone.
static enum vram_status try_fresh(struct vr_paged_shard *own, uint32_t number) {
    struct vr_paged_slot *slot = &own->device->slots[number];
    if (!vr_paged_is_mapped(own, slot)) {
        vr_paged_slot_forget(own->device, number);
        return VRAM_OK;
    }
    const uint32_t user = vr_paged_user(own, slot, &slot->foreign);
    if (user != 0) {
        slot->foreign = 0;
        vr_paged_hide(own, number, user);
        return VRAM_OK;
    }
    if (slot->covers) vr_paged_uncover(own, number); // it was freed since the last settling
    return link_slot(own, number);
}

enum vram_status vr_paged_link_free(struct vr_paged_shard *own, uint64_t bytes) {
    const uint64_t number = vr_map_get(&own->numbers, bytes);
    if (number == 0) return VRAM_OK;
    struct vr_paged_size *size = &own->sizes[number];
    for (size_t word = 0; size->fresh_count != 0; word++) {
        for (uint64_t fresh = vr_paged_word_at(size, word)->fresh; fresh != 0; fresh &= fresh - 1)
            VR_TRY(try_fresh(own, size->looks[word * 64 + (unsigned)__builtin_ctzll(fresh)].slot));
    }
    return VRAM_OK;
}

void vr_paged_search_fresh(struct vr_shard *shard, uint64_t bytes) {
    struct vr_paged_shard *own = vr_paged_of(shard);
    for (size_t i = 0; i < own->dirty_count && own->stale != 0; i++) {
        const uint32_t slot = own->dirty[i];
        if (own->device->slots[slot].covers && !vr_paged_is_live(own->device, slot)) vr_paged_uncover(own, slot);
    }
    (void)!vr_paged_link_free(own, bytes); // without host memory, the search finds none
}

// --- making slots ----------------------------------------------------------------------------------------------------------------------

enum vram_status vr_paged_slot_make(struct vr_paged_shard *own, uint64_t address, uint64_t size, uint32_t *block) {
    struct vr_paged_device *device = own->device;
    struct vr_shard *shard = own->shard;
    const struct vr_paged_region *region = vr_paged_region_of(own, address);
    uint32_t number = 0;
    assert(region != NULL && address + size <= region->end);
    struct vr_paged_walk walk = vr_paged_walk_range(own, region, address, address + size);
    size_t windows = 0;
    while (vr_paged_walk_next(&walk)) {
        VR_TRY(prepare_page(walk.page));
        windows += walk.page->window_count;
    }
    VR_TRY(vr_paged_hole_room(own, windows));
    VR_TRY(vr_shard_reserve_records(shard, 2));
    VR_TRY(VR_GROW(own, dirty, device->live_slots + 2));
    VR_TRY(vr_paged_size_room(own, size));
    VR_TRY(take_entry(own, &number));
    device->slots_made++;
    const uint32_t record = shard->spare[--shard->spare_count];
    struct vr_block *item = vr_block_at(shard->device->allocator, record);
    *item = (struct vr_block){.address = address, .size = size, .segment = region->segment, .expandable = VR_EXPANDABLE_SLOT};
    atomic_store_explicit(&item->shard, (uint16_t)shard->number, memory_order_release);
    item->previous = number; // slots have no neighbours
    item->state = VR_FREE;
    commit_slot(own, number, record);
    *block = record;
    return VRAM_OK;
}
