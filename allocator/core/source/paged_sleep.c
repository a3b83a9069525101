// Puts pages to sleep: a page loses its memory behind all its windows, and later gets new memory there. Slots, views and holes stay.
// vr_paged_find() hands out nothing from a sleeping shard.
#include "core/device.h"
#include "core/share/share.h"
#include "core/source/paged.h"
#include "core/source/source_ops.h"

// Returns the page that begins at this unit, if it belongs to the segment's pool. Windows of a former owner remain, so it may not.
static struct vr_paged_page *page_at(const struct vr_paged_shard *own, const struct vr_paged_region *region, uint64_t address) {
    const uint32_t unit = region->units[(address - region->address) / own->device->unit];
    if (unit == 0) return NULL;
    struct vr_paged_page *page = vr_paged_page_at(own->device, unit - 1);
    return page->own->shard->owner == own->shard->owner ? page : NULL;
}

bool vr_paged_is_own(const struct vr_device *device, const struct vr_segment *segment, uint64_t address, uint64_t *end) {
    struct vr_paged_shard *own = NULL;
    const struct vr_paged_region *region = vr_paged_region_of_segment(device, segment, &own);
    uint64_t base = 0;
    const uint32_t page = vr_paged_page_of(own->device, region, address, &base);
    *end = page != 0 ? base + vr_paged_page_at(own->device, page)->size : address + own->device->unit;
    return page != 0 && vr_paged_page_at(own->device, page)->own->shard->owner == own->shard->owner;
}

static void count_page(struct vr_paged_page *page, bool asleep) {
    struct vr_paged_shard *own = page->own;
    struct vr_device *device = own->device->device;
    const int64_t size = (int64_t)page->size;
    page->away = asleep;
    vr_reserved_add(own->shard, own->is_small, asleep ? -size : size);
    *(asleep ? &device->stats.num_device_free : &device->stats.num_device_alloc) += 1;
}

static void notify_window(struct vr_paged_page *page, const struct vr_paged_window *window, bool asleep) {
    struct vr_shard *shard = window->own->shard;
    if (!vr_has_listener(shard->device)) return;
    const struct vr_paged_region *region = vr_paged_region_of(window->own, window->address);
    vr_notify_vacant(shard, asleep, vr_segment_at(shard->device->allocator, region->segment), window->address, page->size);
}

// The window will have other memory, so its exports end.
static void forget_exports(const struct vr_paged_window *window) {
    const struct vr_paged_device *device = window->own->device;
    const struct vr_paged_region *region = vr_paged_region_of(window->own, window->address);
    vr_exported_forget(vr_segment_at(device->device->allocator, region->segment), (window->address - region->address) / device->unit);
}

static void vacate_page(struct vr_device *device, struct vr_paged_page *page, uint64_t *held) {
    size_t left = 0;
    if (page->away) return;
    for (size_t i = 0; i < page->window_count; i++) {
        struct vr_paged_window *window = &page->windows[i];
        if (!window->away && vr_cu(device->allocator->driver, mem_unmap, window->address, page->size) == VR_CU_SUCCESS) {
            window->away = true;
            forget_exports(window);
            notify_window(page, window, true);
        }
        left += !window->away;
    }
    page->uncertain = left != 0;
    if (left != 0) {
        *held += page->size;
        return;
    }
    vr_drop_handle(device, page->handle);
    page->handle = 0;
    count_page(page, true);
}

// Does nothing. A page may have windows in several segments, so vr_paged_vacate_pages() removes all of them at once.
void vr_paged_vacate(struct vr_device *device, struct vr_segment *segment, uint64_t *held) { (void)device, (void)segment, (void)held; }

static enum vram_status open_window(struct vr_device *device, const struct vr_paged_page *page, const struct vr_paged_window *window) {
    struct vr_cu_access_desc access[VRAM_MAX_DEVICES];
    uint64_t count = 0;
    vr_access_list(device, access, &count);
    return vr_driver_status(vr_cu(device->allocator->driver, mem_set_access, window->address, page->size, access, count));
}

static enum vram_status populate_page(struct vr_device *device, struct vr_paged_page *page) {
    struct vram_driver *driver = device->allocator->driver;
    if (!page->away && !page->uncertain) return VRAM_OK;
    if (page->away) {
        const struct vr_cu_allocation_prop prop = vr_device_allocation_prop(device);
        const vr_cu_result result = vr_cu(driver, mem_create, &page->handle, page->size, &prop, 0);
        if (result == VR_CU_OUT_OF_MEMORY) return VRAM_OUT_OF_MEMORY;
        VR_TRY(vr_driver_status(result));
        count_page(page, false);
        page->uncertain = true;
    }
    for (size_t i = 0; i < page->window_count; i++) {
        struct vr_paged_window *window = &page->windows[i];
        if (window->away) {
            VR_TRY(vr_driver_status(vr_cu(driver, mem_map, window->address, page->size, 0, page->handle, 0)));
            window->away = false;
            notify_window(page, window, false);
        }
        VR_TRY(open_window(device, page, window));
    }
    page->uncertain = false;
    return VRAM_OK;
}

enum vram_status vr_paged_populate(struct vr_device *device, struct vr_segment *segment, uint64_t address, uint64_t size) {
    struct vr_paged_shard *own = NULL;
    const struct vr_paged_region *region = vr_paged_region_of_segment(device, segment, &own);
    const uint64_t end = address + size < region->end ? address + size : region->end;
    uint64_t at = address;
    (void)vr_paged_page_of(own->device, region, address, &at); // a page may begin before
    for (; at < end; at += own->device->unit) {
        struct vr_paged_page *page = page_at(own, region, at);
        if (page != NULL) VR_TRY(populate_page(device, page));
    }
    return VRAM_OK;
}

// --- pages of any segment ---------------------------------------------------------------------------------------------------------------

static bool is_of(const struct vr_paged_page *page, const struct vram_pool *pool) {
    return page->size != 0 && page->own->shard->owner == pool;
}

void vr_paged_vacate_pages(struct vr_device *device, const struct vram_pool *pool, uint64_t *held) {
    struct vr_paged_device *paged = vr_paged_device(device);
    for (uint32_t i = 1; paged != NULL && i < paged->page_count; i++) {
        struct vr_paged_page *page = vr_paged_page_at(paged, i);
        if (is_of(page, pool)) vacate_page(device, page, held);
    }
}

enum vram_status vr_paged_populate_rest(struct vr_device *device, const struct vram_pool *pool) {
    struct vr_paged_device *paged = vr_paged_device(device);
    for (uint32_t i = 1; paged != NULL && i < paged->page_count; i++) {
        struct vr_paged_page *page = vr_paged_page_at(paged, i);
        if (is_of(page, pool)) VR_TRY(populate_page(device, page));
    }
    return VRAM_OK;
}

bool vr_paged_all_there(const struct vr_device *device, const struct vram_pool *pool) {
    const struct vr_paged_device *paged = vr_paged_device(device);
    for (uint32_t i = 1; paged != NULL && i < paged->page_count; i++) {
        const struct vr_paged_page *page = vr_paged_page_at(paged, i);
        if (is_of(page, pool) && (page->away || page->uncertain)) return false;
    }
    return true;
}

// --- memory freed while asleep ----------------------------------------------------------------------------------------------------------

static void forget_away(struct vr_paged_shard *own) {
    for (uint32_t number = own->first[VR_PAGED_FREE], next; number != 0; number = next) {
        const struct vr_paged_page *page = vr_paged_page_at(own->device, number);
        next = page->next;
        if (page->away || page->uncertain) (void)!vr_paged_page_release(own->device, number);
    }
}

void vr_paged_asleep_trim(struct vr_device *device, const struct vram_pool *pool) {
    if (vr_paged_device(device) == NULL || vr_paged_settle(vr_paged_device(device)) != VRAM_OK) return;
    for (struct vr_paged_shard *own = vr_paged_device(device)->shards; own != NULL; own = own->next) {
        if (own->is_small || own->parked || own->shard->owner != pool || !own->shard->vacant) continue;
        if (vr_paged_small_return_asleep(own) == VRAM_OK) forget_away(own);
    }
}
