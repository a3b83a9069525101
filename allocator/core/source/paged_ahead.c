// Growth ahead: pages are created and mapped after the last region of the shard that grew last, before a request needs them. The thread
// that creates them holds only the device's mutex during driver calls, so that only threads that need the driver wait for it.
#include "core/device.h"
#include "core/source/paged.h"
#include "core/source/source_ops.h"
#include "os/once.h"

enum {
    PART = 32,       // the part of the bytes in use to keep ready
    MOST_PAGES = 16, // pages per batch, opened by one call
    SPARE = 4,       // nothing is made ahead if less than this part of the bytes in use would be left
};
#define MOST_AHEAD VR_GIB

struct vr_paged_ahead {
    struct vr_device *device;
    struct vr_mutex mutex;
    struct vr_signal work;
    struct vr_thread thread;
    bool wanted, ending; // guarded by `mutex`
    uint64_t generation; // value of the global `generation` when the thread started
};

struct batch {
    struct vr_paged_shard *own;
    uint64_t address, page_bytes;
    size_t count;
    uint64_t handles[MOST_PAGES];
};

// --- forks ------------------------------------------------------------------------------------------------------------------------------

// The child of a fork has no such thread: it must not wait for the thread, and the fork must not happen while the thread holds a lock.
static _Atomic uint64_t generation = 1;
static struct vr_mutex at_work; // held by a thread while it holds other locks
static struct vr_once watches;

static void before_fork_ahead(void) { vr_mutex_lock(&at_work); }
static void in_parent(void) { vr_mutex_unlock(&at_work); }
static void in_child(void) {
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
    vr_mutex_unlock(&at_work);
}

static void watch_forks(void) {
    vr_mutex_init(&at_work);
    vr_os_at_fork(before_fork_ahead, in_parent, in_child);
}

// --- how much ---------------------------------------------------------------------------------------------------------------------------

static uint64_t wanted_at_first(const struct vr_device *device) {
    const struct vr_reserve *warm = &device->options.warm;
    if (vr_paged_device(device)->is_warm) return 0;
    return warm->bytes != 0 ? warm->bytes : (uint64_t)(warm->fraction * (double)device->total_bytes);
}

static uint64_t target_bytes(const struct vr_paged_device *paged, uint64_t in_use) {
    uint64_t share = vr_round_up(in_use / PART + 1, paged->unit), first = wanted_at_first(paged->device);
    if (share > MOST_AHEAD) share = MOST_AHEAD;
    if (!paged->device->options.grow_ahead) share = 0;
    first = first > in_use ? first - in_use : 0;
    return first > share ? first : share;
}

static bool has_room(const struct vr_device *device, uint64_t bytes, uint64_t spare) {
    uint64_t left = 0, total_bytes = 0;
    const uint64_t held = (uint64_t)device->stats.reserved[VRAM_STAT_ALL].current;
    if (device->limit_bytes != VR_UNLIMITED && held + bytes + spare > device->limit_bytes) return false;
    const uint64_t most = (uint64_t)(device->options.per_process_memory_fraction * (double)device->total_bytes);
    if (device->options.throw_on_malloc_oom && held + bytes + spare > most) return false;
    return vr_driver_memory_info(device->allocator->driver, &left, &total_bytes) == VR_CU_SUCCESS && left >= bytes + spare;
}

// Plans a batch of pages after the used part of the last region, as large as growth makes them if the batch is held, too. Returns false if
// none is wanted, or if the region or the device lacks room.
static bool plan_batch(const struct vr_device *device, struct batch *batch) {
    struct vr_paged_device *paged = vr_paged_device(device);
    struct vr_paged_shard *own = paged == NULL ? NULL : paged->grown;
    if (own == NULL || own->region_count == 0 || own->shard->vacant || vr_any_captures(device)) return false;
    const uint64_t in_use = paged->held_bytes - paged->ahead_bytes, wanted = target_bytes(paged, in_use);
    if (paged->ahead_bytes * 2 > wanted && !paged->fills) return false;
    paged->fills = true;
    uint64_t page = paged->unit, largest = (in_use + wanted) / VR_PAGED_LADDER;
    while (page * 2 <= largest && page * 2 <= VR_PAGED_LARGEST) page *= 2;
    size_t count = wanted <= paged->ahead_bytes ? 0 : (size_t)((wanted - paged->ahead_bytes) / page);
    if (count > MOST_PAGES) count = MOST_PAGES;
    const struct vr_paged_region *region = &own->regions[own->region_count - 1];
    const uint64_t size = count * page, spare = wanted_at_first(device) != 0 ? 0 : in_use / SPARE;
    if (count == 0 || region->end + size + paged->unit > region->address + region->size || !has_room(device, size, spare)) {
        paged->fills = false;
        paged->is_warm = true;
        return false;
    }
    *batch = (struct batch){.own = own, .address = region->end, .page_bytes = page, .count = count};
    return true;
}

// --- pages ------------------------------------------------------------------------------------------------------------------------------

static void unmake_batch(struct vr_device *device, const struct batch *batch, size_t created, size_t mapped) {
    for (size_t i = 0; i < mapped; i++) vr_drop_mapping(device, batch->address + i * batch->page_bytes, batch->page_bytes);
    for (size_t i = 0; i < created; i++) vr_drop_handle(device, batch->handles[i]);
    if (mapped != 0) batch->own->regions[batch->own->region_count - 1].end += batch->count * batch->page_bytes; // as vr_paged_map()
    vr_paged_device(device)->fills = false;
}

// Makes the driver calls only. *created and *mapped: how far it came.
static bool make_batch(const struct vr_device *device, struct batch *batch, size_t *created, size_t *mapped) {
    struct vram_driver *driver = device->allocator->driver;
    const struct vr_cu_allocation_prop prop = vr_device_allocation_prop(device);
    for (*created = 0; *created < batch->count; ++*created)
        if (vr_cu(driver, mem_create, &batch->handles[*created], batch->page_bytes, &prop, 0) != VR_CU_SUCCESS) return false;
    for (*mapped = 0; *mapped < batch->count; ++*mapped) {
        const uint64_t at = batch->address + *mapped * batch->page_bytes;
        if (vr_cu(driver, mem_map, at, batch->page_bytes, 0, batch->handles[*mapped], 0) != VR_CU_SUCCESS) return false;
    }
    struct vr_cu_access_desc access[VRAM_MAX_DEVICES];
    uint64_t parties = 0;
    vr_access_list(device, access, &parties);
    return vr_cu(driver, mem_set_access, batch->address, batch->count * batch->page_bytes, access, parties) == VR_CU_SUCCESS;
}

static enum vram_status book_batch(struct vr_device *device, const struct batch *batch) {
    struct vr_paged_device *paged = vr_paged_device(device);
    struct vr_paged_shard *own = batch->own;
    uint32_t pages[MOST_PAGES];
    size_t taken = 0;
    enum vram_status status =
        vr_address_map_prepare(&device->allocator->addresses, batch->address, batch->count * batch->page_bytes, false);
    for (; taken < batch->count && status == VRAM_OK; taken++) {
        status = vr_paged_page_take(paged, &pages[taken]);
        if (status != VRAM_OK) break;
        struct vr_paged_page *page = vr_paged_page_at(paged, pages[taken]);
        status = VR_GROW(page, windows, 1);
        if (status == VRAM_OK) status = vr_paged_shown_room(page, 0);
    }
    if (status != VRAM_OK) {
        while (taken-- > 0) vr_paged_page_give(paged, pages[taken]);
        return status;
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct vr_paged_page *page = vr_paged_page_at(paged, pages[i]);
        page->handle = batch->handles[i];
        page->size = batch->page_bytes;
        page->own = own;
        vr_paged_list_append(paged, pages[i], VR_PAGED_AHEAD);
        vr_paged_count_page(own, 1);
        vr_paged_window_add(own, pages[i], batch->address + i * batch->page_bytes);
        paged->held_bytes += page->size;
        paged->ahead_bytes += page->size;
        paged->live_pages++;
    }
    struct vr_paged_region *region = &own->regions[own->region_count - 1];
    region->end += batch->count * batch->page_bytes;
    vr_segment_at(device->allocator, region->segment)->mapped += batch->count * batch->page_bytes;
    vr_reserved_add(own->shard, false, (int64_t)(batch->count * batch->page_bytes));
    device->stats.num_device_alloc += (int64_t)batch->count;
    return VRAM_OK;
}

// Under all locks.
static bool finish_batch(struct vr_device *device, const struct batch *batch, bool made, size_t created, size_t mapped) {
    VR_ASSERT_ALL_LOCKED(device);
    if (made && book_batch(device, batch) == VRAM_OK) return true;
    unmake_batch(device, batch, created, mapped);
    return false;
}

bool vr_paged_ahead_step(struct vr_device *device) {
    struct vr_context_guard guard;
    struct batch batch;
    if (vr_context_enter(device, &guard) != VRAM_OK) return false;
    vr_mutex_lock(&device->mutex);
    bool made = plan_batch(device, &batch);
    if (made) {
        size_t created = 0, mapped = 0;
        made = make_batch(device, &batch, &created, &mapped);
        vr_device_lock_rest(device);
        made = finish_batch(device, &batch, made, created, mapped);
        vr_device_unlock(device);
    } else {
        vr_mutex_unlock(&device->mutex);
    }
    vr_context_leave(&guard);
    return made;
}

void vr_paged_warm(struct vr_paged_shard *own) {
    struct vr_device *device = own->device->device;
    if (own->device->is_warm || own->shard->owner != NULL || device->options.grow_ahead || wanted_at_first(device) == 0) return;
    own->device->grown = own;
    for (bool made = true; made;) {
        struct batch batch;
        size_t created = 0, mapped = 0;
        made = plan_batch(device, &batch);
        if (!made) break;
        made = make_batch(device, &batch, &created, &mapped);
        made = finish_batch(device, &batch, made, created, mapped);
    }
    own->device->is_warm = true;
}

enum vram_status vr_paged_claim(struct vr_paged_shard *own, uint32_t *claimed) {
    struct vr_paged_device *paged = own->device;
    const uint32_t page = own->first[VR_PAGED_AHEAD];
    *claimed = 0;
    if (page == 0 || own->shard->vacant) return VRAM_OK;
    VR_TRY(vr_paged_hole_room(own, 1));
    struct vr_paged_page *item = vr_paged_page_at(paged, page);
    vr_paged_list_remove(paged, page);
    vr_paged_list_append(paged, page, VR_PAGED_FREE);
    vr_paged_open_holes(item);
    paged->ahead_bytes -= item->size;
    *claimed = page;
    return VRAM_OK;
}

enum vram_status vr_paged_claim_all(struct vr_paged_shard *own) {
    for (uint32_t page = 1; page != 0;) VR_TRY(vr_paged_claim(own, &page));
    return VRAM_OK;
}

// --- the thread -------------------------------------------------------------------------------------------------------------------------

static void serve_ahead(void *argument) {
    struct vr_paged_ahead *ahead = argument;
    int mode = VR_CU_STREAM_CAPTURE_MODE_RELAXED; // calls of this thread are not part of any capture
    vr_mutex_lock(&at_work);
    (void)vr_cu(ahead->device->allocator->driver, thread_exchange_capture_mode, &mode);
    vr_mutex_unlock(&at_work);
    vr_mutex_lock(&ahead->mutex);
    while (!ahead->ending) {
        if (!ahead->wanted) {
            vr_signal_wait(&ahead->work, &ahead->mutex, UINT64_MAX);
            continue;
        }
        ahead->wanted = false;
        for (bool made = true; made && !ahead->ending;) {
            vr_mutex_unlock(&ahead->mutex);
            vr_mutex_lock(&at_work);
            made = vr_paged_ahead_step(ahead->device);
            vr_mutex_unlock(&at_work);
            vr_mutex_lock(&ahead->mutex);
        }
    }
    vr_mutex_unlock(&ahead->mutex);
}

static struct vr_paged_ahead *start_thread(struct vr_device *device) {
    struct vr_paged_ahead *made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    vr_once(&watches, watch_forks); // only the first call initializes the lock
    made->device = device;
    made->generation = atomic_load_explicit(&generation, memory_order_relaxed);
    vr_mutex_init(&made->mutex);
    vr_signal_init(&made->work);
    if (vr_thread_start(&made->thread, serve_ahead, made) == VRAM_OK) return made;
    vr_signal_destroy(&made->work);
    vr_mutex_destroy(&made->mutex);
    free(made);
    return NULL;
}

void vr_paged_ahead_wake(struct vr_paged_shard *own) {
    struct vr_paged_device *paged = own->device;
    struct vr_device *device = paged->device;
    if (own->shard->owner != NULL) return; // because a pool may be destroyed at any time
    paged->grown = own;
    if (!device->options.grow_ahead || device->allocator->without_threads) return;
    if (paged->ahead == NULL) paged->ahead = start_thread(device);
    struct vr_paged_ahead *ahead = paged->ahead;
    if (ahead == NULL || ahead->generation != atomic_load_explicit(&generation, memory_order_relaxed)) return;
    vr_mutex_lock(&ahead->mutex);
    ahead->wanted = true;
    vr_signal_raise(&ahead->work);
    vr_mutex_unlock(&ahead->mutex);
}

void vr_paged_ahead_end(struct vr_device *device) {
    struct vr_paged_ahead *ahead = vr_paged_device(device) == NULL ? NULL : vr_paged_device(device)->ahead;
    if (ahead == NULL) return;
    if (ahead->generation == atomic_load_explicit(&generation, memory_order_relaxed)) {
        vr_mutex_lock(&ahead->mutex);
        ahead->ending = true;
        vr_signal_raise(&ahead->work);
        vr_mutex_unlock(&ahead->mutex);
        vr_thread_join(&ahead->thread);
        vr_signal_destroy(&ahead->work);
        vr_mutex_destroy(&ahead->mutex);
    } // after a fork the thread does not exist here, and may have held the lock
    free(ahead);
    vr_paged_device(device)->ahead = NULL;
}
