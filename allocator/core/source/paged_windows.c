// Maps and unmaps windows.
#include "core/capture/captures.h"
#include "core/device.h"
#include "core/share/share.h"
#include "core/source/paged.h"
#include "core/source/source_ops.h"

enum {
    MOST_WINDOWS = 400000, // a context can have about 520,000
    MANY = 8,              // windows per page at which those used longest ago are unmapped
    PART = 6,              // a sixth of all windows is removed at a time
    FEW = 2,               // per page while sizes do not come back: an old window then only makes each use of its page more expensive
    PERIOD = 4096,         // number of requests that make a slot or take a linked one, after which look_at_use() decides again
    MANY_SIZES = 512,      // number of different sizes of the new slots in a period, from which on sizes do not come back
    PATIENCE = 16,         // number of periods with few windows before many are tried again
};

// --- mapping ----------------------------------------------------------------------------------------------------------------------------

static uint64_t sum_of(const struct vr_paged_device *device, const uint32_t *pages, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += vr_paged_page_at(device, pages[i])->size;
    return sum;
}

static enum vram_status make_room_for_windows(struct vr_paged_shard *own, const uint32_t *pages, size_t count) {
    size_t holes = 1;
    for (size_t i = 0; i < count; i++) {
        struct vr_paged_page *page = vr_paged_page_at(own->device, pages[i]);
        VR_TRY(VR_GROW(page, windows, page->window_count + 1));
        VR_TRY(vr_paged_shown_room(page, page->view_count));
        holes += page->used_count + 1 + page->window_count;
    }
    return vr_paged_hole_room(own, holes);
}

static enum vram_status map_all(struct vr_paged_shard *own, const uint32_t *pages, size_t count, uint64_t address, size_t *mapped) {
    struct vr_device *device = own->device->device;
    struct vram_driver *driver = device->allocator->driver;
    uint64_t at = address;
    for (*mapped = 0; *mapped < count; ++*mapped) {
        const struct vr_paged_page *page = vr_paged_page_at(own->device, pages[*mapped]);
        VR_TRY(vr_driver_status(vr_cu(driver, mem_map, at, page->size, 0, page->handle, 0)));
        at += page->size;
    }
    struct vr_cu_access_desc access[VRAM_MAX_DEVICES];
    uint64_t parties = 0;
    vr_access_list(device, access, &parties);
    return vr_driver_status(vr_cu(driver, mem_set_access, address, at - address, access, parties));
}

static void undo_mappings(struct vr_paged_shard *own, const uint32_t *pages, size_t mapped, uint64_t address) {
    for (size_t i = 0; i < mapped; i++) {
        const uint64_t size = vr_paged_page_at(own->device, pages[i])->size;
        vr_drop_mapping(own->device->device, address, size);
        address += size;
    }
}

void vr_paged_window_add(struct vr_paged_shard *own, uint32_t number, uint64_t address) {
    struct vr_paged_page *page = vr_paged_page_at(own->device, number);
    const struct vr_paged_region *region = &own->regions[own->region_count - 1];
    page->windows[page->window_count++] = (struct vr_paged_window){.address = address, .own = own};
    region->units[(address - region->address) / own->device->unit] = number + 1;
    own->device->window_count++;
    if (page->shown_count == 0) vr_paged_show(page, 0, page->size, address);
    if (own->is_small || page->list == VR_PAGED_AHEAD) return;
    const bool has_others = page->used_bytes != 0 && page->window_count > 1;
    if (own->device->few_windows != 0 && has_others) return;
    if (own->device->few_windows != 0) vr_paged_close_holes(page);
    vr_paged_change_holes(page, &page->windows[page->window_count - 1], true);
}

enum vram_status vr_paged_map(struct vr_paged_shard *own, const uint32_t *pages, size_t count, uint64_t address) {
    VR_ASSERT_ALL_LOCKED(own->device->device);
    struct vr_device *device = own->device->device;
    struct vr_address_map *addresses = &device->allocator->addresses;
    struct vr_paged_region *region = vr_paged_region_of(own, address);
    const uint64_t size = sum_of(own->device, pages, count);
    vr_orphaned_mappings_retry(device); // a mapping that the driver kept may be in this range
    VR_TRY(make_room_for_windows(own, pages, count));
    VR_TRY(vr_address_map_prepare(addresses, address, size, own->is_small));
    size_t mapped = 0;
    const enum vram_status status = map_all(own, pages, count, address, &mapped);
    if (status != VRAM_OK) {
        undo_mappings(own, pages, mapped, address);
        vr_address_map_retire(addresses, address, size, own->is_small);
        // Skip the addresses, because the driver may keep a mapping there.
        if (mapped != 0) region->end = address + size;
        return status;
    }
    uint64_t at = address;
    for (size_t i = 0; i < count; i++) {
        vr_paged_window_add(own, pages[i], at);
        at += vr_paged_page_at(own->device, pages[i])->size;
    }
    region->end = at;
    if (own->is_small) return VRAM_OK; // the pool takes it over later
    struct vr_segment *segment = vr_segment_at(device->allocator, region->segment);
    segment->mapped += size;
    return VRAM_OK;
}

// --- unmapping --------------------------------------------------------------------------------------------------------------------------

static void forget_window(struct vr_paged_device *device, struct vr_paged_page *page, size_t number) {
    const struct vr_paged_window window = page->windows[number];
    vr_paged_show_elsewhere(page, number);
    struct vr_paged_region *region = vr_paged_region_of(window.own, window.address);
    struct vr_segment *segment = vr_segment_at(device->device->allocator, region->segment);
    vr_exported_forget(segment, (window.address - region->address) / device->unit);
    region->units[(window.address - region->address) / device->unit] = 0;
    page->window_count--;
    memmove(&page->windows[number], &page->windows[number + 1], (page->window_count - number) * sizeof window);
    device->window_count--;
    vr_address_map_retire(&device->device->allocator->addresses, window.address, page->size, window.own->is_small);
    if (!window.own->is_small) segment->mapped -= page->size;
}

// Forgets the linked slots that lie wholly or partly in the window. Other slots find their windows gone when they are requested.
static void forget_slots(struct vr_paged_device *device, const struct vr_paged_page *page, const struct vr_paged_window *window) {
    const struct vram_allocator *allocator = device->device->allocator;
    for (size_t i = page->view_count; i-- > 0;) {
        const uint32_t number = page->views[i].slot;
        const struct vr_block *item = vr_block_at(allocator, device->slots[number].block);
        if (item->address < window->address + page->size && window->address < item->address + item->size)
            vr_paged_slot_forget(device, number);
    }
}

enum vram_status vr_paged_unmap(struct vr_paged_device *device, uint32_t number, size_t which) {
    VR_ASSERT_ALL_LOCKED(device->device);
    struct vr_paged_page *page = vr_paged_page_at(device, number);
    const struct vr_paged_window window = page->windows[which];
    VR_TRY(vr_paged_hole_room(page->own, (page->used_count + 1) * page->window_count));
    VR_TRY(vr_paged_shown_room(page, page->view_count));
    if (!window.away) VR_TRY(vr_driver_status(vr_cu(device->device->allocator->driver, mem_unmap, window.address, page->size)));
    forget_slots(device, page, &window);
    vr_paged_change_holes(page, &page->windows[which], false);
    forget_window(device, page, which);
    if (page->open_count == 0) vr_paged_open_holes(page);
    return VRAM_OK;
}

// --- waiting ---------------------------------------------------------------------------------------------------------------------------

enum vram_status vr_paged_wait(const struct vr_paged_device *device) {
    struct vram_driver *driver = device->device->allocator->driver;
    for (const struct vr_paged_shard *own = device->shards; own != NULL; own = own->next) {
        if (own->region_count == 0) continue;
        vr_cu_result result = vr_cu(driver, stream_synchronize, own->shard->stream);
        if (vr_stream_is_gone(result)) result = vr_cu(driver, ctx_synchronize, 0);
        VR_TRY(vr_driver_status(result));
    }
    return VRAM_OK;
}

bool vr_paged_may_wait(const struct vr_paged_device *device) {
    for (const struct vr_paged_shard *own = device->shards; own != NULL; own = own->next)
        if (!vr_may_wait_for(device->device, own->shard->stream)) return false;
    return true;
}

// --- too many ---------------------------------------------------------------------------------------------------------------------------

// Returns when a slot in the window was last used, or UINT64_MAX if the window must stay.
static uint64_t last_use_of(const struct vr_paged_page *page, const struct vr_paged_window *window) {
    const bool stays = window->live != 0 || (window->own->is_small && window->own == page->own) || vr_paged_is_kept(window->own);
    return stays ? UINT64_MAX : window->last_use;
}

struct idle_window {
    uint64_t last_use, address;
    uint32_t page;
};

struct idle_windows {
    struct idle_window *items;
    size_t count, items_capacity;
};

static int by_last_use(const void *a, const void *b) {
    const struct idle_window *x = a, *y = b;
    return x->last_use != y->last_use ? VR_ORDER(x->last_use, y->last_use) : VR_ORDER(x->address, y->address);
}

static enum vram_status list_idle(const struct vr_paged_device *device, struct idle_windows *idle) {
    for (uint32_t number = 1; number < device->page_count; number++) {
        const struct vr_paged_page *page = vr_paged_page_at(device, number);
        for (size_t i = 0; i < page->window_count && page->window_count > 1; i++) {
            const uint64_t last_use = last_use_of(page, &page->windows[i]);
            if (last_use == UINT64_MAX) continue;
            VR_TRY(VR_GROW(idle, items, idle->count + 1));
            idle->items[idle->count++] = (struct idle_window){last_use, page->windows[i].address, number};
        }
    }
    qsort(idle->items, idle->count, idle->count == 0 ? 1 : sizeof *idle->items, by_last_use);
    return VRAM_OK;
}

// Unmaps the windows used longest ago, until `until` are left. One window of each page stays.
static enum vram_status evict_idle(struct vr_paged_device *device, uint64_t until) {
    struct idle_windows idle = {0};
    enum vram_status status = list_idle(device, &idle);
    for (size_t i = 0; i < idle.count && status == VRAM_OK && device->window_count > until; i++) {
        const struct vr_paged_page *page = vr_paged_page_at(device, idle.items[i].page);
        size_t at = 0;
        while (at < page->window_count && page->windows[at].address != idle.items[i].address) at++;
        if (page->window_count > 1 && at < page->window_count) status = vr_paged_unmap(device, idle.items[i].page, at);
    }
    free(idle.items);
    return status;
}

static uint64_t most_windows(const struct vr_paged_device *device) {
    const uint64_t of_pages = (device->few_windows != 0 ? FEW : MANY) * device->live_pages + 64;
    return of_pages < MOST_WINDOWS ? of_pages : MOST_WINDOWS;
}

// Closes the holes behind all windows but the newest. Without host memory, does nothing.
static void close_all_but_newest(struct vr_paged_page *page) {
    bool is_newest = true;
    if (page->open_count < 2 || vr_paged_hole_room(page->own, (page->used_count + 1) * page->window_count) != VRAM_OK) return;
    for (size_t i = page->window_count; i-- > 0;) {
        if (page->windows[i].has_holes && !is_newest) vr_paged_change_holes(page, &page->windows[i], false);
        is_newest &= !page->windows[i].has_holes;
    }
}

// Decides at the end of a period whether sizes come back. They do not if most slots were new and had many sizes; new slots of few sizes
// come back with a program's next step.
static void look_at_use(struct vr_paged_device *device) {
    if (device->slots_made + device->slots_reused < PERIOD) return;
    const bool comes_back = device->slots_reused >= device->slots_made || device->sizes_met < MANY_SIZES;
    device->few_windows = comes_back ? 0 : device->few_windows != 0 ? device->few_windows - 1 : PATIENCE;
    device->slots_reused = device->slots_made = device->sizes_met = 0;
    device->period++;
    for (uint32_t page = 1; page < device->page_count && device->few_windows != 0; page++) close_all_but_newest(&device->pages[page]);
}

enum vram_status vr_paged_evict(struct vr_paged_device *device) {
    look_at_use(device);
    const uint64_t most = most_windows(device);
    if (device->window_count <= most || !vr_paged_may_wait(device)) return VRAM_OK;
    VR_TRY(vr_paged_wait(device));
    return evict_idle(device, device->few_windows != 0 ? device->live_pages : most - most / PART);
}

// --- the end of a page -------------------------------------------------------------------------------------------------------------------

void vr_paged_page_destroy(struct vr_paged_device *device, uint32_t page) {
    const struct vr_paged_page *item = vr_paged_page_at(device, page);
    vr_paged_list_remove(device, page);
    device->held_bytes -= item->size;
    device->live_pages--;
    vr_paged_count_page(item->own, -1);
    if (!item->away) vr_drop_handle(device->device, item->handle);
    vr_paged_page_give(device, page);
}

enum vram_status vr_paged_page_release(struct vr_paged_device *device, uint32_t page) {
    const struct vr_paged_page *item = vr_paged_page_at(device, page);
    while (item->window_count != 0) VR_TRY(vr_paged_unmap(device, page, item->window_count - 1));
    if (!item->away) {
        vr_reserved_add(item->own->shard, false, -(int64_t)item->size);
        device->device->stats.num_device_free++;
    }
    vr_paged_page_destroy(device, page);
    return VRAM_OK;
}
