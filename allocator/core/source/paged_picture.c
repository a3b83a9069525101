// Paged memory for snapshots, counts and checks: blocks by address, and the invariants.
#include "base/invariant.h"
#include "base/hash.h"
#include "core/device.h"
#include "core/source/paged.h"
#include "core/source/source_ops.h"

struct block_list {
    struct vr_block *items;
    size_t count, items_capacity;
};

static int blocks_by_address(const void *a, const void *b) {
    const struct vr_block *x = a, *y = b;
    return VR_ORDER(x->address, y->address);
}

static enum vram_status push_block(struct block_list *list, const struct vr_block *block) {
    VR_TRY(VR_GROW(list, items, list->count + 1));
    list->items[list->count++] = *block;
    return VRAM_OK;
}

static enum vram_status collect_live(const struct vr_device *device, const struct vr_segment *segment, struct block_list *list) {
    const struct vr_paged_device *paged = vr_paged_device(device);
    for (uint32_t i = 1; i < paged->slot_count; i++) {
        const struct vr_paged_slot *slot = &paged->slots[i];
        if (slot->own == NULL || !vr_paged_is_live(paged, i)) continue;
        const struct vr_block *item = vr_block_at(device->allocator, slot->block);
        if (item->address - segment->address < segment->size) VR_TRY(push_block(list, item));
    }
    return VRAM_OK;
}

// Collects the blocks of a small segment's chain.
static enum vram_status collect_chain(const struct vr_device *device, const struct vr_segment *segment, struct block_list *list) {
    for (uint32_t at = segment->first; at != 0; at = vr_block_at(device->allocator, at)->next) {
        const struct vr_block *item = vr_block_at(device->allocator, at);
        if (item->state == VR_HOLE) continue;
        VR_TRY(push_block(list, item));
        if (item->state == VR_VACANT) list->items[list->count - 1].state = VR_FREE;
    }
    return VRAM_OK;
}

static struct vr_block piece_of(const struct vr_block *pattern, uint64_t low, uint64_t high, uint8_t state) {
    struct vr_block block = {.address = low, .size = high - low, .segment = pattern->segment, .small = pattern->small, .expandable = 1};
    block.state = state;
    atomic_store_explicit(&block.shard, atomic_load_explicit(&pattern->shard, memory_order_relaxed), memory_order_relaxed);
    return block;
}

// Collects the parts of a page that are shown at the window that begins at `base`.
static enum vram_status collect_page(const struct vr_paged_page *page, uint64_t base, const struct vr_block *pattern,
                                     struct block_list *list) {
    for (size_t i = 0; i < page->shown_count; i++) {
        if (page->shown[i].base != base) continue;
        const struct vr_block piece = piece_of(pattern, base + page->shown[i].low, base + page->shown[i].high, VR_FREE);
        VR_TRY(push_block(list, &piece));
    }
    return VRAM_OK;
}

static enum vram_status collect_shown(const struct vr_paged_device *device, const struct vr_paged_region *region,
                                      const struct vr_block *pattern, struct block_list *list) {
    for (uint64_t at = region->address; at < region->end; at += device->unit) {
        const uint32_t unit = region->units[(at - region->address) / device->unit];
        if (unit != 0) VR_TRY(collect_page(vr_paged_page_at(device, unit - 1), at, pattern, list));
    }
    return VRAM_OK;
}

// Merges blocks with FREE pieces between them where memory is shown, and holes elsewhere. `shown` is sorted by address.
static enum vram_status lay_out(const struct block_list *blocks, const struct block_list *shown, struct block_list *list) {
    size_t next = 0;
    uint64_t at = 0; // end of the list so far
    for (size_t i = 0; i < shown->count; i++) {
        uint64_t low = shown->items[i].address;
        const uint64_t high = low + shown->items[i].size;
        if (at != 0 && at < low) {
            const struct vr_block hole = piece_of(&shown->items[i], at, low, VR_HOLE);
            VR_TRY(push_block(list, &hole));
        }
        if (at > low) low = at;
        for (; next < blocks->count && blocks->items[next].address < high; next++) {
            const struct vr_block *block = &blocks->items[next];
            const struct vr_block before = piece_of(block, low, block->address, VR_FREE);
            if (before.size != 0) VR_TRY(push_block(list, &before));
            VR_TRY(push_block(list, block));
            low = block->address + block->size;
        }
        const struct vr_block rest = piece_of(&shown->items[i], low, high, VR_FREE);
        if (low < high) VR_TRY(push_block(list, &rest));
        at = low < high ? high : low;
    }
    return VRAM_OK;
}

// Joins adjacent free blocks.
static void join_free(struct block_list *list) {
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct vr_block *last = kept == 0 ? NULL : &list->items[kept - 1];
        if (last != NULL && last->state == VR_FREE && list->items[i].state == VR_FREE &&
            last->address + last->size == list->items[i].address) {
            last->size += list->items[i].size;
        } else {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
}

enum vram_status vr_paged_blocks(const struct vr_device *device, const struct vr_segment *segment, struct vr_block **blocks,
                                 size_t *count) {
    struct block_list live = {0}, shown = {0}, list = {0};
    struct vr_paged_shard *own = NULL;
    const struct vr_paged_region *region = vr_paged_region_of_segment(device, segment, &own);
    enum vram_status status = vr_paged_settle(own->device);
    if (status == VRAM_OK) status = own->is_small ? collect_chain(device, segment, &live) : collect_live(device, segment, &live);
    if (status == VRAM_OK) status = collect_shown(own->device, region, vr_block_at(device->allocator, segment->first), &shown);
    if (status == VRAM_OK) {
        if (live.count != 0) qsort(live.items, live.count, sizeof *live.items, blocks_by_address);
        if (shown.count != 0) qsort(shown.items, shown.count, sizeof *shown.items, blocks_by_address);
        status = lay_out(&live, &shown, &list);
    }
    free(live.items);
    free(shown.items);
    if (status != VRAM_OK) {
        free(list.items);
        return status;
    }
    join_free(&list);
    *blocks = list.items;
    *count = list.count;
    return VRAM_OK;
}

void vr_paged_count_held(const struct vr_device *device, const struct vram_pool *only, struct vr_held_bytes *held) {
    const struct vr_paged_device *paged = vr_paged_device(device);
    for (size_t i = 1; i < paged->page_count; i++) {
        const struct vr_paged_page *page = &paged->pages[i];
        if (page->size == 0 || (only != NULL && page->own->shard->owner != only)) continue;
        (page->away ? held->away : held->there)[page->own->is_small ? VR_SMALL : VR_LARGE] += page->size;
    }
}

enum vram_status vr_paged_each_slot(const struct vr_device *device, const struct vram_pool *only, vr_slot_visitor visit, void *user) {
    const struct vr_paged_device *paged = vr_paged_device(device);
    for (uint32_t i = 1; i < paged->slot_count; i++) {
        const struct vr_paged_slot *slot = &paged->slots[i];
        if (slot->own == NULL || !vr_paged_is_live(paged, i) || (only != NULL && slot->own->shard->owner != only)) continue;
        VR_TRY(visit(slot->block, user));
    }
    return VRAM_OK;
}

void vr_paged_cached(struct vr_device *device, uint64_t *bytes, uint64_t *largest) {
    if (vr_paged_device(device) == NULL || vr_paged_settle(vr_paged_device(device)) != VRAM_OK) return;
    for (size_t i = 1; i < vr_paged_device(device)->page_count; i++)
        if (vr_paged_device(device)->pages[i].size != 0 && !vr_paged_device(device)->pages[i].own->is_small)
            *bytes += vr_paged_device(device)->pages[i].size - vr_paged_device(device)->pages[i].used_bytes;
    for (const struct vr_paged_shard *own = vr_paged_device(device)->shards; own != NULL; own = own->next) {
        for (const struct vr_paged_range *hole = NULL; (hole = vr_paged_hole_above(own, hole == NULL ? 0 : hole->low)) != NULL;) {
            if (hole->high - hole->low > *largest) *largest = hole->high - hole->low;
        }
    }
}

// --- invariants -------------------------------------------------------------------------------------------------------------------------

struct in_the_way {
    uint32_t foreign, slots, live, covered;
};

// Recounts from the pages, for a linked slot: the pages of other shards, the linked slots that overlap it, how many of these (with itself)
// are live, and the ranges of live slots that are not linked.
static struct in_the_way blocked_by(const struct vr_paged_device *device, uint32_t number) {
    const struct vr_paged_slot *slot = &device->slots[number];
    struct vr_paged_walk walk = vr_paged_walk_block(slot->own, vr_paged_block_of(slot));
    struct in_the_way found = {0};
    struct vr_map counted = {0};
    while (vr_paged_walk_next(&walk)) {
        found.foreign += walk.page->own != slot->own;
        for (size_t i = 0; i < walk.page->used_count; i++) {
            const struct vr_paged_view *used = &walk.page->used[i];
            const struct vr_paged_slot *other = &device->slots[used->slot];
            found.covered += other->own == slot->own && !other->linked && used->high > walk.low && walk.high > used->low;
        }
        for (size_t i = 0; i < walk.page->view_count; i++) {
            const struct vr_paged_view *view = &walk.page->views[i];
            if (device->slots[view->slot].own != slot->own || view->high <= walk.low || walk.high <= view->low) continue;
            if (vr_map_get(&counted, view->slot + 1) != 0) continue;
            found.slots++;
            found.live += vr_paged_is_live(device, view->slot);
            (void)vr_map_set(&counted, view->slot + 1, 1);
        }
    }
    vr_map_release(&counted);
    return found;
}

static uint32_t count_bits(uint64_t word) {
    uint32_t count = 0;
    for (; word != 0; word &= word - 1) count++;
    return count;
}

static enum vram_status check_slot(const struct vr_paged_device *device, uint32_t number, struct vram_error *error) {
    const struct vr_paged_slot *slot = &device->slots[number];
    const struct vr_block *item = vr_block_at(device->device->allocator, slot->block);
    const struct in_the_way found = slot->linked ? blocked_by(device, number) : (struct in_the_way){.slots = 1};
    const bool is_live = vr_paged_is_live(device, number);
    uint32_t slots = 1, live = is_live;
    for (uint32_t i = 0; i < slot->way_count; i++) {
        slots += count_bits(slot->ways[i].slots);
        live += count_bits(slot->ways[i].slots & device->marks[slot->ways[i].word].live);
    }
    VR_INVARIANT(slot->foreign == found.foreign && slots == found.slots && (!slot->linked || live == found.live),
                 "a slot is not marked as overlapped by the slots that share its bytes", item->address);
    VR_INVARIANT((device->covered[number] & ~VR_PAGED_NOT_READY) == found.covered && slot->covers == (is_live && !slot->linked),
                 "an unlinked slot does not mark the slots that share its bytes", item->address);
    const bool hidden = slot->blocker != 0;
    struct vr_paged_size *size = &slot->own->sizes[slot->size];
    const struct vr_paged_word *word = vr_paged_word_at(size, slot->place / 64);
    const struct vr_paged_look *look = &size->looks[slot->place];
    const uint64_t bit = (uint64_t)1 << slot->place % 64;
    const bool ready = (word->ready & bit) != 0;
    VR_INVARIANT(look->slot == number && look->block == slot->block && (word->used & bit) != 0, "a slot is in the list of another size",
                 item->address);
    VR_INVARIANT(((word->fresh & bit) != 0) == (!is_live && !slot->linked && !hidden), "a slot is both fresh and linked, or neither",
                 item->address);
    VR_INVARIANT(ready ==
                     (!is_live && !hidden && slot->linked && (device->covered[number] & VR_PAGED_NOT_READY) == 0 && slot->foreign == 0),
                 "a slot is both ready and live, or neither", item->address);
    VR_INVARIANT(!ready || slot->place < 64 || (size->some[slot->place / 4096] >> slot->place / 64 % 64 & 1) != 0,
                 "a ready slot cannot be found", item->address);
    VR_INVARIANT(!hidden || (vr_paged_is_live(device, slot->blocker) && (!slot->linked || vr_paged_blocker(device, slot) != 0)),
                 "a free slot cannot be reached", item->address);
    VR_INVARIANT(is_live == (item->state == VR_ALLOCATED || item->state == VR_PENDING), "a slot and its block differ in whether it is live",
                 item->address);
    VR_INVARIANT(!is_live || found.foreign == 0, "a live block lies on another shard's page", item->address);
    return VRAM_OK;
}

static enum vram_status check_shown(const struct vr_paged_page *page, uint32_t number, struct vram_error *error) {
    uint64_t at = 0;
    for (size_t i = 0; i < page->shown_count; i++) {
        VR_INVARIANT(page->shown[i].low == at && page->shown[i].high > at, "a byte of a page is mapped twice, or not at all", number);
        at = page->shown[i].high;
    }
    VR_INVARIANT(at == page->size, "bytes of a page are not mapped", number);
    return VRAM_OK;
}

static enum vram_status check_page(const struct vr_paged_device *device, uint32_t number, struct vram_error *error) {
    const struct vr_paged_page *page = vr_paged_page_at(device, number);
    VR_TRY(check_shown(page, number, error));
    VR_INVARIANT(!page->away || page->own->shard->vacant, "a page is suspended in a pool that is awake", number);
    uint64_t used = 0, low = 0, live = 0;
    VR_INVARIANT(!page->own->is_small || vr_paged_small_window(page->own, number) != 0, "the small pool cannot access one of its pages",
                 number);
    if (page->own->is_small) return VRAM_OK;
    for (size_t i = 0; i < page->used_count; i++) {
        const struct vr_paged_view *range = &page->used[i];
        VR_INVARIANT(range->low >= low && range->high > range->low && range->high <= page->size, "two live blocks share a byte", number);
        VR_INVARIANT(vr_paged_is_live(device, range->slot) && device->slots[range->slot].own == page->own,
                     "a live block lies on another shard's page", number);
        low = range->high;
        used += range->high - range->low;
    }
    for (size_t i = 0; i < page->window_count; i++) live += page->windows[i].live;
    VR_INVARIANT(used == page->used_bytes && live == page->used_count, "the used bytes of a page are miscounted", number);
    VR_INVARIANT((page->list == VR_PAGED_FREE || page->list == VR_PAGED_AHEAD) == (used == 0) &&
                     (page->list == VR_PAGED_FULL) == (used == page->size),
                 "a page is in the wrong list", number);
    return VRAM_OK;
}

// Checks that every free byte of the shard's own pages is in a hole, once per window that has holes, and that the holes contain nothing
// else.
static enum vram_status check_holes(const struct vr_paged_shard *own, struct vram_error *error) {
    uint64_t expected = 0, found = 0, free_bytes = 0, low = 0;
    for (size_t i = 1; i < own->device->page_count; i++) {
        const struct vr_paged_page *page = &own->device->pages[i];
        if (page->size == 0 || page->own != own || page->list == VR_PAGED_AHEAD) continue;
        size_t windows = 0, open = 0;
        for (size_t k = 0; k < page->window_count; k++) {
            windows += page->windows[k].own == own;
            open += page->windows[k].has_holes;
        }
        VR_INVARIANT(open == page->open_count && open <= windows && (open != 0) == (windows != 0 && !own->is_small),
                     "a page has no holes, or holes of another page", i);
        expected += open * (page->size - page->used_bytes);
        if (page->used_bytes == 0) free_bytes += page->size;
    }
    size_t count = 0;
    for (const struct vr_paged_range *hole = NULL; (hole = vr_paged_hole_above(own, hole == NULL ? 0 : hole->low)) != NULL;) {
        VR_INVARIANT(hole->high > hole->low && hole->low > low, "two adjacent holes are not merged", hole->low);
        const struct vr_paged_range *fit = vr_paged_hole_fit(own, hole->high - hole->low);
        VR_INVARIANT(fit != NULL && fit->high - fit->low == hole->high - hole->low && fit->low <= hole->low,
                     "a hole cannot be found by its length", hole->low);
        low = hole->high;
        found += hole->high - hole->low;
        count++;
    }
    VR_INVARIANT(count == own->hole_count, "the holes are miscounted", own->shard->stream);
    VR_INVARIANT(expected == found, "the free bytes in windows differ from the holes", own->shard->stream);
    VR_INVARIANT(free_bytes == own->free_bytes, "the free pages of a shard are miscounted", own->shard->stream);
    return VRAM_OK;
}

// Checks that a pool counts at least its pages, and that a parked shard has no pages.
static enum vram_status check_owners(const struct vr_paged_device *paged, struct vram_error *error) {
    for (const struct vram_pool *pool = paged->device->pools; pool != NULL; pool = pool->next) {
        uint64_t pages = 0, bytes = 0;
        for (size_t i = 1; i < paged->page_count; i++) {
            const struct vr_paged_page *page = &paged->pages[i];
            if (page->size == 0 || page->own->shard->owner != pool) continue;
            pages++;
            bytes += page->away ? 0 : page->size;
        }
        VR_INVARIANT(pool->segments >= pages && (uint64_t)pool->reserved[VRAM_STAT_ALL].current >= bytes,
                     "the pages of a pool are miscounted", pool->id.first);
    }
    for (const struct vr_paged_shard *own = paged->shards; own != NULL; own = own->next) {
        for (int list = 0; list < VR_PAGED_LISTS; list++)
            VR_INVARIANT(!own->parked || own->first[list] == 0, "a destroyed pool still has pages", own->shard->stream);
    }
    return VRAM_OK;
}

enum vram_status vr_paged_check(struct vr_device *device, struct vram_error *error) {
    VR_ASSERT_ALL_LOCKED(device);
    struct vr_paged_device *paged = vr_paged_device(device);
    if (paged == NULL) return VRAM_OK;
    VR_TRY(vr_paged_settle(paged));
    uint64_t held = 0, ahead = 0;
    for (uint32_t i = 1; i < paged->slot_count; i++)
        if (paged->slots[i].own != NULL) VR_TRY(check_slot(paged, i, error));
    for (uint32_t i = 1; i < paged->page_count; i++) {
        if (paged->pages[i].size == 0) continue;
        VR_TRY(check_page(paged, i, error));
        held += paged->pages[i].size;
        if (paged->pages[i].list == VR_PAGED_AHEAD) ahead += paged->pages[i].size;
    }
    for (const struct vr_paged_shard *own = paged->shards; own != NULL; own = own->next)
        if (!own->is_small) VR_TRY(check_holes(own, error));
    VR_TRY(check_owners(paged, error));
    VR_INVARIANT(ahead == paged->ahead_bytes, "bytes allocated ahead are miscounted", ahead);
    VR_INVARIANT(held == paged->held_bytes, "the bytes of pages are miscounted", held);
    return VRAM_OK;
}
