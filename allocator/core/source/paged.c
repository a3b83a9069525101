// The source of paged:True: gets memory for the large pool when no slot of its size is free. It first uses free bytes behind existing
// windows, then windows made of free pages, then new pages.
#include "core/source/paged.h"
#include "core/capture/captures.h"
#include "core/device.h"
#include "core/share/share.h"
#include "core/source/source_ops.h"

enum {
    SHORT = 4,         // memory is short if less than this part of the memory held is left: pages become small
    SCARCE = 16,       // and scarce below this part: ends of pages are used up
    MANY_PAGES = 64,   // for more than this many of the smallest pages, first ask whether the driver has the memory
    HUGE_PAGES = 4096, // the bytes of a larger request count as held when its pages are made
};

// --- free memory that has windows -------------------------------------------------------------------------------------------------------

// *block stays 0 if there is none.
static enum vram_status find_free(struct vr_paged_shard *own, uint64_t size, uint32_t *block) {
    VR_TRY(vr_paged_link_free(own, size));
    *block = vr_paged_ready(own->shard, size);
    if (*block != 0) return VRAM_OK;
    const struct vr_paged_range *hole = vr_paged_hole_fit(own, size);
    return hole == NULL ? VRAM_OK : vr_paged_slot_make(own, hole->low, size, block);
}

// --- new pages --------------------------------------------------------------------------------------------------------------------------

// The pages of a window under construction; the last `made` of them are new.
struct assembly {
    uint32_t *items;
    size_t count, items_capacity;
    size_t first_made, made;
};

static enum vram_status push_page(struct assembly *pages, uint32_t page) {
    VR_TRY(VR_GROW(pages, items, pages->count + 1));
    pages->items[pages->count++] = page;
    return VRAM_OK;
}

static enum vram_status is_allowed(const struct vr_device *device, uint64_t bytes) {
    const uint64_t held = (uint64_t)device->stats.reserved[VRAM_STAT_ALL].current;
    if (device->limit_bytes != VR_UNLIMITED && held + bytes > device->limit_bytes) return VRAM_OUT_OF_MEMORY;
    const uint64_t most = (uint64_t)(device->options.per_process_memory_fraction * (double)device->total_bytes);
    return device->options.throw_on_malloc_oom && held + bytes > most ? VRAM_REJECTED : VRAM_OK;
}

// Returns the bytes that may still be requested, or 0 if the driver cannot tell.
static uint64_t bytes_left(const struct vr_paged_device *device) {
    const struct vr_device *owner = device->device;
    uint64_t left = 0, total_bytes = 0;
    if (vr_driver_memory_info(owner->allocator->driver, &left, &total_bytes) != VR_CU_SUCCESS) return 0;
    const uint64_t held = (uint64_t)owner->stats.reserved[VRAM_STAT_ALL].current;
    if (owner->limit_bytes == VR_UNLIMITED || owner->limit_bytes >= held + left) return left;
    return owner->limit_bytes > held ? owner->limit_bytes - held : 0;
}

// Returns whether the driver has the memory. Without this check, a request for many pages could take all that is left and then fail, and
// other requests would find nothing until its pages were returned.
static bool is_there(const struct vr_paged_device *device, uint64_t bytes) {
    const uint64_t left = bytes > MANY_PAGES * device->unit ? bytes_left(device) : 0;
    return left == 0 || bytes <= left;
}

// Small pages waste less, large ones cost less, so only the smallest are made when memory is short. `missing` counts as held if it is
// thousands of the smallest pages, so that a request of a terabyte does not make half a million of them. The memory exists, because
// is_there() would otherwise have refused.
static uint64_t largest_page(const struct vr_paged_device *device, uint64_t missing) {
    const uint64_t counted = missing > HUGE_PAGES * device->unit ? missing : 0, held = device->held_bytes + counted;
    const uint64_t rung = held / VR_PAGED_LADDER;
    const uint64_t most = rung < VR_PAGED_LARGEST ? rung : VR_PAGED_LARGEST;
    return most < 2 * device->unit || bytes_left(device) < device->held_bytes / SHORT ? device->unit : most;
}

static uint64_t page_size_for(const struct vr_paged_device *device, uint64_t missing, uint64_t most) {
    uint64_t size = device->unit;
    while (size * 2 <= missing && size * 2 <= most) size *= 2;
    return size;
}

static enum vram_status create_page(struct vr_paged_shard *own, uint64_t size, uint32_t *page) {
    struct vr_paged_device *device = own->device;
    const struct vr_cu_allocation_prop prop = vr_device_allocation_prop(device->device);
    VR_TRY(vr_paged_page_take(device, page));
    struct vr_paged_page *item = vr_paged_page_at(device, *page);
    const vr_cu_result result = vr_cu(device->device->allocator->driver, mem_create, &item->handle, size, &prop, 0);
    if (result != VR_CU_SUCCESS) {
        vr_paged_page_give(device, *page);
        return result == VR_CU_OUT_OF_MEMORY ? VRAM_OUT_OF_MEMORY : VRAM_DRIVER;
    }
    item->size = size;
    item->own = own;
    vr_paged_list_append(device, *page, VR_PAGED_FREE);
    device->held_bytes += size;
    device->live_pages++;
    vr_paged_count_page(own, 1);
    return VRAM_OK;
}

static void destroy_made(struct vr_paged_shard *own, struct assembly *pages) {
    for (size_t i = 0; i < pages->made; i++) vr_paged_page_destroy(own->device, pages->items[pages->first_made + i]);
    pages->made = 0;
}

// Uses pages made ahead first.
static enum vram_status create_missing(struct vr_paged_shard *own, uint64_t missing, struct assembly *pages) {
    while (missing != 0 && own->first[VR_PAGED_AHEAD] != 0) {
        uint32_t page = 0;
        VR_TRY(VR_GROW(pages, items, pages->count + 1));
        VR_TRY(vr_paged_claim(own, &page));
        const uint64_t size = vr_paged_page_at(own->device, page)->size;
        pages->items[pages->count++] = page;
        missing -= size < missing ? size : missing;
    }
    pages->first_made = pages->count;
    if (missing == 0) return VRAM_OK;
    VR_TRY(is_allowed(own->device->device, missing));
    if (!is_there(own->device, missing)) return VRAM_OUT_OF_MEMORY;
    const uint64_t most = largest_page(own->device, missing);
    while (missing != 0) {
        uint32_t page = 0;
        const uint64_t size = page_size_for(own->device, missing, most);
        VR_TRY(VR_GROW(pages, items, pages->count + 1));
        VR_TRY(create_page(own, size, &page));
        pages->items[pages->count++] = page;
        pages->made++;
        missing -= size;
    }
    return VRAM_OK;
}

// Counts new pages once they are mapped.
static enum vram_status map_and_book(struct vr_paged_shard *own, struct assembly *pages, uint64_t address) {
    VR_TRY(vr_paged_map(own, pages->items, pages->count, address));
    uint64_t bytes = 0;
    for (size_t i = 0; i < pages->made; i++) bytes += vr_paged_page_at(own->device, pages->items[pages->first_made + i])->size;
    vr_reserved_add(own->shard, false, (int64_t)bytes);
    own->device->device->stats.num_device_alloc += (int64_t)pages->made;
    pages->made = 0;
    return VRAM_OK;
}

// --- a new window -----------------------------------------------------------------------------------------------------------------------

// Drops pages that are not needed because another page has `spare` bytes too many. They stay free.
static void leave_out(const struct vr_paged_device *device, struct assembly *pages, uint64_t spare) {
    size_t kept = 0;
    for (size_t i = 0; i < pages->count; i++) {
        const uint64_t size = vr_paged_page_at(device, pages->items[i])->size;
        if (size <= spare) {
            spare -= size;
        } else {
            pages->items[kept++] = pages->items[i];
        }
    }
    pages->count = kept;
}

// Adds the oldest free pages that fit. If only larger ones are left, adds the smallest of these last. Creates what is missing then.
static enum vram_status add_whole_pages(struct vr_paged_shard *own, uint64_t bytes, struct assembly *pages) {
    const struct vr_paged_device *device = own->device;
    uint32_t larger = 0;
    for (uint32_t page = own->first[VR_PAGED_FREE]; page != 0 && bytes != 0; page = vr_paged_page_at(device, page)->next) {
        const uint64_t size = vr_paged_page_at(device, page)->size;
        if (size <= bytes) {
            VR_TRY(push_page(pages, page));
            bytes -= size;
        }
    }
    if (bytes == 0) return VRAM_OK;
    for (uint32_t page = own->first[VR_PAGED_FREE]; page != 0; page = vr_paged_page_at(device, page)->next) {
        const uint64_t size = vr_paged_page_at(device, page)->size;
        bool taken = size <= bytes;
        for (size_t i = 0; i < pages->count && !taken; i++) taken = pages->items[i] == page;
        if (!taken && (larger == 0 || size < vr_paged_page_at(device, larger)->size)) larger = page;
    }
    if (larger != 0) {
        leave_out(device, pages, vr_paged_page_at(device, larger)->size - bytes);
        return push_page(pages, larger);
    }
    return create_missing(own, bytes, pages);
}

static uint64_t sum_of(const struct vr_paged_device *device, const struct assembly *pages) {
    uint64_t sum = 0;
    for (size_t i = 0; i < pages->count; i++) sum += vr_paged_page_at(device, pages->items[i])->size;
    return sum;
}

// Adds head, whole pages and tail, without an end that is not needed after all. *offset: where the block begins.
static enum vram_status assemble_pages(struct vr_paged_shard *own, uint64_t size, const struct vr_paged_plan *plan, struct assembly *pages,
                                       uint64_t *offset) {
    const struct vr_paged_device *device = own->device;
    VR_TRY(add_whole_pages(own, plan->units * device->unit, pages));
    const uint64_t whole = sum_of(device, pages);
    const bool with_tail = plan->tail != 0 && whole + plan->head_bytes < size;
    const bool with_head = plan->head != 0 && whole + (with_tail ? plan->tail_bytes : 0) < size;
    VR_TRY(VR_GROW(pages, items, pages->count + 2));
    *offset = 0;
    if (with_head) {
        memmove(pages->items + 1, pages->items, pages->count * sizeof *pages->items);
        pages->items[0] = plan->head;
        pages->count++;
        pages->first_made++;
        *offset = vr_paged_page_at(device, plan->head)->size - plan->head_bytes;
    }
    if (with_tail) pages->items[pages->count++] = plan->tail;
    return VRAM_OK;
}

static bool is_shown(const struct vr_paged_shard *own, const struct assembly *pages) {
    for (size_t i = 0; i < pages->count; i++) {
        const struct vr_paged_page *page = vr_paged_page_at(own->device, pages->items[i]);
        for (size_t k = 0; k < page->window_count; k++) {
            if (page->windows[k].own == own) return true;
        }
    }
    return false;
}

static enum vram_status build_window(struct vr_paged_shard *own, uint64_t size, bool growing, uint32_t *block) {
    const bool scarce = growing || bytes_left(own->device) < own->device->held_bytes / SCARCE;
    struct vr_paged_plan plan;
    VR_TRY(vr_paged_plan(own, size, scarce, &plan));
    struct assembly pages = {0};
    uint64_t offset = 0, address = 0;
    enum vram_status status = assemble_pages(own, size, &plan, &pages, &offset);
    if (status == VRAM_OK) status = vr_paged_addresses(own, sum_of(own->device, &pages), is_shown(own, &pages), &address);
    if (status == VRAM_OK) status = map_and_book(own, &pages, address);
    destroy_made(own, &pages);
    free(pages.items);
    return status == VRAM_OK ? vr_paged_slot_make(own, address + offset, size, block) : status;
}

// --- growing in place -------------------------------------------------------------------------------------------------------------------

static uint64_t free_bytes_in(const struct vr_paged_shard *own, const struct vr_paged_region *region, const struct vr_paged_range *hole) {
    uint64_t sum = 0;
    struct vr_paged_walk walk = vr_paged_walk_range(own, region, hole->low, hole->high);
    while (vr_paged_walk_next(&walk)) sum += walk.page->used_bytes == 0 ? walk.page->size : 0;
    return sum;
}

// Returns where the pages that were made ahead begin, else the end of the last region.
static uint64_t end_of(const struct vr_paged_shard *own) {
    const uint32_t ahead = own->first[VR_PAGED_AHEAD];
    return ahead != 0 ? vr_paged_page_at(own->device, ahead)->windows[0].address : own->regions[own->region_count - 1].end;
}

// Returns whether the hole at the end of the last region has all the wholly free bytes, so that pages mapped after it make it long enough.
// Before pages made ahead, the hole may be empty.
static bool can_extend(const struct vr_paged_shard *own, uint64_t size, struct vr_paged_range *hole) {
    if (own->region_count == 0) return false;
    const struct vr_paged_region *region = &own->regions[own->region_count - 1];
    const uint64_t end = end_of(own);
    const struct vr_paged_range *last = vr_paged_hole_before(own, end), none = {end, end};
    if (last == NULL && own->first[VR_PAGED_AHEAD] != 0 && own->free_bytes == 0) last = &none;
    if (last == NULL || last->low < region->address || free_bytes_in(own, region, last) != own->free_bytes) return false;
    *hole = *last;
    const uint64_t missing = vr_round_up(size - (hole->high - hole->low), own->device->unit);
    return region->end + missing + own->device->unit <= region->address + region->size;
}

static enum vram_status extend_hole(struct vr_paged_shard *own, uint64_t size, struct vr_paged_range hole, uint32_t *block) {
    struct assembly pages = {0};
    while (hole.high - hole.low < size && own->first[VR_PAGED_AHEAD] != 0 && end_of(own) == hole.high) {
        uint32_t page = 0;
        VR_TRY(vr_paged_claim(own, &page));
        hole.high += vr_paged_page_at(own->device, page)->size;
    }
    if (hole.high - hole.low >= size) return vr_paged_slot_make(own, hole.low, size, block);
    if (hole.high != own->regions[own->region_count - 1].end)
        return build_window(own, size, own->free_bytes < vr_round_up(size, own->device->unit), block);
    const uint64_t missing = vr_round_up(size - (hole.high - hole.low), own->device->unit);
    enum vram_status status = create_missing(own, missing, &pages);
    if (status == VRAM_OK) status = map_and_book(own, &pages, hole.high);
    destroy_made(own, &pages);
    free(pages.items);
    return status == VRAM_OK ? vr_paged_slot_make(own, hole.low, size, block) : status;
}

static enum vram_status build_slot(struct vr_paged_shard *own, uint64_t size, uint32_t *block) {
    struct vr_paged_range hole;
    const bool growing = own->free_bytes < vr_round_up(size, own->device->unit);
    return growing && can_extend(own, size, &hole) ? extend_hole(own, size, hole, block) : build_window(own, size, growing, block);
}

// --- the ladder -------------------------------------------------------------------------------------------------------------------------

static enum vram_status grow_from_others(struct vr_paged_shard *own, uint64_t size, bool wait, uint32_t *block) {
    const uint64_t before = own->free_bytes;
    VR_TRY(vr_paged_take_from_others(own, vr_round_up(size, own->device->unit), wait));
    return own->free_bytes == before ? VRAM_OK : find_free(own, size, block);
}

// Takes the pages that the small pool of the same stream does not need.
static enum vram_status grow_from_small(struct vr_paged_shard *own, uint64_t size, uint32_t *block) {
    const uint64_t before = own->free_bytes;
    if (before >= vr_round_up(size, own->device->unit)) return VRAM_OK;
    VR_TRY(vr_paged_small_return(own));
    return own->free_bytes == before ? VRAM_OK : find_free(own, size, block);
}

bool vr_paged_must_grow(struct vr_shard *shard, uint64_t size) {
    VR_ASSERT_ALL_LOCKED(shard->device);
    const struct vr_paged_shard *own = vr_paged_of(shard); // NULL: the stream has no pages yet
    struct vr_paged_device *device = vr_paged_device(shard->device);
    if (device == NULL || vr_paged_settle(device) != VRAM_OK) return true;
    const uint64_t needed = vr_round_up(size, device->unit);
    uint64_t free_bytes = 0;
    for (const struct vr_paged_shard *other = device->shards; other != NULL && free_bytes < needed; other = other->next)
        free_bytes += other->is_small || (other != own && vr_paged_is_kept(other)) ? 0 : other->free_bytes;
    return free_bytes < needed && (own == NULL || vr_paged_hole_fit(own, size) == NULL);
}

enum vram_status vr_paged_grow_large(struct vr_paged_shard *own, uint64_t size, uint32_t *block) {
    struct vr_device *device = own->device->device;
    VR_TRY(vr_paged_settle(own->device));
    vr_paged_slots_prune(own->device);
    VR_TRY(vr_paged_evict(own->device));
    *block = 0;
    VR_TRY(find_free(own, size, block));
    if (*block != 0) return VRAM_OK;
    VR_TRY(vr_paged_take_for_slot(own, size));
    VR_TRY(find_free(own, size, block));
    if (*block != 0) return VRAM_OK;
    // With reclaim_streams, unused memory of other streams is preferred to new memory, and the stream waits for them.
    const bool reclaims = device->options.reclaim_streams && !vr_any_captures(device);
    VR_TRY(grow_from_others(own, size, false, block));
    if (*block == 0 && reclaims) VR_TRY(grow_from_others(own, size, true, block));
    if (*block != 0) return VRAM_OK;
    enum vram_status status = build_slot(own, size, block);
    if (status == VRAM_OK) {
        vr_paged_warm(own);
        vr_paged_ahead_wake(own);
    }
    if (status == VRAM_OUT_OF_MEMORY || status == VRAM_REJECTED) {
        VR_TRY(grow_from_small(own, size, block));
        if (*block != 0) return VRAM_OK;
        status = build_slot(own, size, block);
    }
    if ((status != VRAM_OUT_OF_MEMORY && status != VRAM_REJECTED) || vr_any_captures(device)) return status;
    VR_TRY(grow_from_others(own, size, true, block));
    return *block != 0 ? VRAM_OK : build_slot(own, size, block);
}

// --- the small pool ---------------------------------------------------------------------------------------------------------------------

// Returns a free page of which the small pool has a window. If there is none and `any` is set, returns the free page with the fewest slots,
// and of these the smallest; otherwise 0.
static uint32_t page_for_small(const struct vr_paged_shard *own, bool any) {
    const struct vr_paged_device *device = own->device;
    uint32_t best = 0;
    for (uint32_t page = own->first[VR_PAGED_FREE]; page != 0; page = vr_paged_page_at(device, page)->next) {
        const struct vr_paged_page *item = vr_paged_page_at(device, page), *other = vr_paged_page_at(device, best);
        if (vr_paged_small_window(own->small, page) != 0) return page;
        if (best == 0 || item->slots_made < other->slots_made || (item->slots_made == other->slots_made && item->size < other->size))
            best = page;
    }
    return any ? best : 0;
}

static enum vram_status show_to_small(struct vr_paged_shard *own, uint32_t page) {
    if (vr_paged_small_window(own->small, page) != 0) return VRAM_OK;
    uint64_t address = 0;
    VR_TRY(vr_paged_addresses(own->small, vr_paged_page_at(own->device, page)->size, false, &address));
    return vr_paged_map(own->small, &page, 1, address);
}

static enum vram_status create_for_small(struct vr_paged_shard *own, uint32_t *page) {
    struct assembly pages = {0};
    const uint32_t ahead = own->first[VR_PAGED_AHEAD];
    if (ahead != 0 && vr_paged_page_at(own->device, ahead)->size == own->device->unit) {
        VR_TRY(vr_paged_claim(own, page));
        return show_to_small(own, *page);
    }
    enum vram_status status = create_missing(own, own->device->unit, &pages);
    if (status == VRAM_OK) status = show_to_small(own, pages.items[0]);
    if (status == VRAM_OK) {
        *page = pages.items[0];
        // A page made ahead is counted already.
        if (pages.made != 0) {
            vr_reserved_add(own->shard, false, (int64_t)vr_paged_page_at(own->device, *page)->size);
            own->device->device->stats.num_device_alloc++;
        }
        pages.made = 0;
    }
    destroy_made(own, &pages);
    free(pages.items);
    return status;
}

// `size` is at most one unit, so one page is enough.
enum vram_status vr_paged_grow_small(struct vr_paged_shard *own, uint64_t size, uint32_t *block) {
    struct vr_shard *shard = own->shard;
    VR_TRY(vr_paged_settle(own->device));
    uint32_t page = page_for_small(own, false);
    if (page == 0 && shard->owner != NULL) {
        VR_TRY(vr_paged_take_for_small(own));
        page = page_for_small(own, true);
    }
    enum vram_status status = page != 0 ? show_to_small(own, page) : create_for_small(own, &page);
    if (status == VRAM_OUT_OF_MEMORY || status == VRAM_REJECTED) {
        const enum vram_status refused = status;
        status = vr_paged_take_from_others(own, own->device->unit, false);
        if (status == VRAM_OK && own->free_bytes == 0 && !vr_any_captures(own->device->device))
            status = vr_paged_take_from_others(own, own->device->unit, true);
        page = page_for_small(own, true);
        if (status == VRAM_OK) status = page != 0 ? show_to_small(own, page) : refused;
    }
    VR_TRY(status);
    VR_TRY(vr_paged_small_take(own->small, page));
    *block = vr_pool_search(shard, VR_SMALL, size, true);
    assert(*block != 0);
    vr_pool_remove(shard, *block);
    return VRAM_OK;
}
