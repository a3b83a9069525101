// The table of the source of paged:True: its data for shards, the return of memory, private pools, and closing.
//
// Private pools draw on the device's pages like other pools, except that memory known to a graph stays. When a pool is destroyed, its pages
// go to the default pools of the same stream. Its addresses are kept for the next pool, so that their windows need no driver call.
#include "core/capture/captures.h"
#include "core/device.h"
#include "core/hole_runs.h"
#include "core/share/share.h"
#include "core/sleep/sleepers.h"
#include "core/source/paged.h"
#include "core/source/source_ops.h"

// --- data of a shard --------------------------------------------------------------------------------------------------------------------

static enum vram_status make_device(struct vr_device *device) {
    if (vr_paged_device(device) != NULL) return VRAM_OK;
    struct vr_paged_device *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->device = device;
    made->unit = vr_round_up(VR_SMALL_SEGMENT, device->physical.granularity);
    made->kept.source = &vr_source_paged;
    made->period = 1;
    device->kept = &made->kept;
    return VRAM_OK;
}

static enum vram_status room_for_one(struct vr_paged_device *device) {
    const size_t before = device->unsettled_capacity;
    VR_TRY(VR_GROW(device, numbered, device->numbered_count + 1));
    VR_TRY(VR_GROW(device, unsettled, device->numbered_count / 64 + 1));
    for (size_t word = before; word < device->unsettled_capacity; word++) device->unsettled[word] = 0;
    return VRAM_OK;
}

static struct vr_paged_shard *make_shard(struct vr_shard *shard, bool is_small) {
    struct vr_paged_device *device = vr_paged_device(shard->device);
    if (room_for_one(device) != VRAM_OK) return NULL;
    struct vr_paged_shard *made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    made->device = device;
    made->number = (uint32_t)device->numbered_count;
    device->numbered[device->numbered_count++] = made;
    made->shard = shard;
    made->is_small = is_small;
    made->kept.source = is_small ? &vr_source_paged_small : &vr_source_paged;
    made->next = made->device->shards;
    made->device->shards = made;
    return made;
}

enum vram_status vr_paged_shard_of(struct vr_shard *shard, struct vr_paged_shard **own) {
    VR_TRY(make_device(shard->device));
    struct vr_paged_shard *found = vr_paged_of(shard);
    if (found == NULL) found = vr_paged_unpark(shard);
    if (found == NULL) found = make_shard(shard, false);
    if (found == NULL) return VRAM_NO_HOST_MEMORY;
    shard->kept = &found->kept;
    if (found->small == NULL) found->small = make_shard(shard, true);
    if (found->small == NULL) return VRAM_NO_HOST_MEMORY;
    *own = found;
    return VRAM_OK;
}

static enum vram_status grow_paged(struct vr_shard *shard, bool small, uint64_t rounded, uint32_t *block) {
    struct vr_paged_shard *own = NULL;
    uint32_t found = 0;
    VR_TRY(vr_paged_shard_of(shard, &own));
    VR_TRY(small ? vr_paged_grow_small(own, rounded, &found) : vr_paged_grow_large(own, rounded, &found));
    *block = found;
    return VRAM_OK;
}

// --- giving back ------------------------------------------------------------------------------------------------------------------------

enum vram_status vr_paged_release(struct vr_device *device, uint64_t enough) {
    VR_ASSERT_ALL_LOCKED(device);
    struct vr_paged_device *paged = vr_paged_device(device);
    if (paged == NULL || !vr_paged_may_wait(paged)) return VRAM_OK;
    paged->grown = NULL; // nothing is made ahead until the next growth
    VR_TRY(vr_paged_settle(paged));
    for (struct vr_paged_shard *own = paged->shards; own != NULL; own = own->next) {
        if (own->is_small || own->shard->vacant || vr_paged_is_kept(own)) continue;
        VR_TRY(vr_paged_small_return(own));
        VR_TRY(vr_paged_claim_all(own));
    }
    uint64_t free_bytes = 0, returned = 0;
    for (const struct vr_paged_shard *own = paged->shards; own != NULL; own = own->next) free_bytes += own->free_bytes;
    if (free_bytes == 0) return VRAM_OK;
    VR_TRY(vr_paged_wait(paged));
    enum vram_status first = VRAM_OK;
    for (struct vr_paged_shard *own = paged->shards; own != NULL; own = own->next) {
        for (uint32_t page = own->first[VR_PAGED_FREE], next; page != 0 && returned < enough; page = next) {
            next = vr_paged_page_at(paged, page)->next;
            const uint64_t size = vr_paged_page_at(paged, page)->size;
            if (own->shard->vacant || vr_paged_is_kept(own)) break;
            const enum vram_status status = vr_paged_page_release(paged, page);
            if (status == VRAM_OK) returned += size;
            if (first == VRAM_OK) first = status;
        }
    }
    return first;
}

// --- private pools ----------------------------------------------------------------------------------------------------------------------

// Wakes a pool without live blocks, whose pages need no memory: first forgets the pages without memory. If a page remains, because the
// driver keeps it or its bytes are still in use, the pool stays asleep. It does not matter whether the pages could go to the stream's
// default pools, which may sleep too.
static void wake_empty(struct vr_device *device, const struct vram_pool *pool) {
    const struct vr_sleeper *sleeper = vr_sleeper_of(device, pool);
    if (sleeper == NULL || vr_sleeper_live(device, sleeper) != 0) return;
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, pool, number)) != 0;) {
        struct vr_segment *segment = vr_segment_at(device->allocator, number);
        if (segment->source != &vr_source_paged && segment->source != &vr_source_paged_small) return;
    }
    vr_paged_asleep_trim(device, pool);
    if (!vr_paged_all_there(device, pool)) return;
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, pool, number)) != 0;) {
        vr_blocks_wake(device, vr_segment_at(device->allocator, number));
    }
    vr_vacant_forget(device, pool);
}

static void hand_over(struct vr_shard *shard) {
    struct vr_paged_shard *own = vr_paged_of(shard);
    const struct vr_shard *home = vr_shard_find(shard->device, shard->stream);
    if (own == NULL || home == NULL || shard->vacant || home->vacant) return;
    struct vr_paged_shard *to = NULL;
    if (vr_paged_small_return(own) != VRAM_OK || vr_paged_claim_all(own) != VRAM_OK) return;
    if (vr_paged_shard_of(vr_shard_find(shard->device, shard->stream), &to) != VRAM_OK) return;
    for (uint32_t page = own->first[VR_PAGED_FREE], next; page != 0; page = next) {
        next = vr_paged_page_at(own->device, page)->next;
        if (vr_paged_page_move(own->device, page, to) != VRAM_OK) return;
    }
}

void vr_paged_hand_over(struct vram_pool *pool) {
    struct vr_paged_device *paged = vr_paged_device(pool->device);
    if (paged == NULL || pool->references != 0 || vr_paged_settle(paged) != VRAM_OK) return;
    wake_empty(pool->device, pool);
    for (size_t i = 0; i < pool->shard_count; i++) hand_over(pool->shards[i]);
}

enum vram_status vr_paged_release_pool(struct vram_pool *pool) {
    struct vr_paged_device *paged = vr_paged_device(pool->device);
    if (paged == NULL || !vr_paged_may_wait(paged)) return VRAM_OK;
    if (pool->references == 0) {
        // Graphs may have been launched on any stream. Waiting for all of them would invalidate a capture, so the memory stays until the
        // next time.
        if (pool->captured && vr_device_captures(pool->device)) return VRAM_OK;
        if (pool->captured) VR_TRY(vr_driver_status(vr_cu(pool->device->allocator->driver, ctx_synchronize, 0)));
        vr_paged_hand_over(pool);
        return VRAM_OK;
    }
    VR_TRY(vr_paged_settle(paged));
    enum vram_status first = VRAM_OK;
    bool waited = false;
    for (size_t i = 0; i < pool->shard_count; i++) {
        struct vr_paged_shard *own = vr_paged_of(pool->shards[i]);
        if (own == NULL || own->shard->vacant) continue;
        VR_TRY(vr_paged_small_return(own));
        VR_TRY(vr_paged_claim_all(own));
        if (own->free_bytes != 0 && !waited) VR_TRY(vr_paged_wait(paged));
        waited |= own->free_bytes != 0;
        for (uint32_t page = own->first[VR_PAGED_FREE], next; page != 0; page = next) {
            next = vr_paged_page_at(paged, page)->next;
            const enum vram_status status = vr_paged_page_release(paged, page);
            if (first == VRAM_OK) first = status;
        }
    }
    return first;
}

// --- parked data: records, and addresses whose windows need no driver call ---------------------------------------------------------------

static uint32_t chain_of(const struct vr_paged_shard *own, size_t region) {
    const struct vr_segment *segment = vr_segment_at(own->shard->device->allocator, own->regions[region].segment);
    return own->is_small ? segment->first : 0;
}

// Moves records and segments to another shard. No slot is live, and nothing of the small pool is mapped.
static void rehome_records(struct vr_paged_shard *own, struct vr_shard *to) {
    struct vr_paged_device *device = own->device;
    const struct vram_allocator *allocator = device->device->allocator;
    for (size_t i = 0; i < own->region_count; i++) {
        const uint32_t hole = chain_of(own, i);
        if (hole != 0) vr_hole_remove(own->shard, hole);
        vr_segment_move(to->device, own->regions[i].segment, to);
        const uint32_t first = vr_segment_at(allocator, own->regions[i].segment)->first;
        atomic_store_explicit(&vr_block_at(allocator, first)->shard, to->number, memory_order_release);
        if (hole != 0) vr_hole_insert(to, hole);
    }
    for (size_t i = 1; i < device->slot_count; i++) {
        if (device->slots[i].own != own) continue;
        atomic_store_explicit(&vr_block_at(allocator, device->slots[i].block)->shard, to->number, memory_order_release);
    }
    own->shard = to;
}

// Wakes segments that fell asleep with the default pools while parked, because the default pools will not wake them any more.
static void wake_shard(struct vr_paged_shard *own) {
    for (size_t i = 0; own != NULL && i < own->region_count; i++) {
        struct vr_segment *segment = vr_segment_at(own->shard->device->allocator, own->regions[i].segment);
        if (segment->vacant) vr_blocks_wake(own->shard->device, segment);
    }
}

struct vr_paged_shard *vr_paged_unpark(struct vr_shard *shard) {
    struct vr_paged_shard *best = NULL;
    if (shard->owner == NULL) return NULL;
    for (struct vr_paged_shard *own = vr_paged_device(shard->device)->shards; own != NULL; own = own->next) {
        if (!own->parked || own->is_small) continue;
        if (best == NULL || own->shard->stream == shard->stream) best = own;
    }
    if (best == NULL) return NULL;
    wake_shard(best);
    wake_shard(best->small);
    rehome_records(best, shard);
    if (best->small != NULL) rehome_records(best->small, shard);
    best->parked = false;
    if (best->small != NULL) best->small->parked = false;
    return best;
}

void vr_paged_park(struct vr_shard *shard) {
    struct vr_paged_shard *own = vr_paged_of(shard);
    if (own == NULL) return;
    struct vr_shard *home = vr_shard_find(shard->device, shard->stream);
    rehome_records(own, home);
    own->parked = true;
    if (own->small != NULL) {
        rehome_records(own->small, home);
        own->small->parked = true;
    }
    if (own->device->grown == own) own->device->grown = NULL;
    shard->kept = NULL;
}

// --- the table --------------------------------------------------------------------------------------------------------------------------

static const struct vr_paged_window *window_at(const struct vr_paged_page *page, uint64_t address) {
    const struct vr_paged_window *window = page->windows;
    while (window->address != address) window++;
    return window;
}

static void drop_paged(struct vr_device *device, struct vr_segment *segment) {
    struct vr_paged_shard *own = NULL;
    const struct vr_paged_region *region = vr_paged_region_of_segment(device, segment, &own);
    for (uint64_t at = region->address; at < region->end; at += own->device->unit) {
        const uint32_t unit = region->units[(at - region->address) / own->device->unit];
        if (unit == 0) continue;
        struct vr_paged_page *page = vr_paged_page_at(own->device, unit - 1);
        vr_exported_forget(segment, (at - region->address) / own->device->unit);
        if (!window_at(page, at)->away) vr_drop_mapping(device, at, page->size);
        if (++page->dropped == page->window_count && page->handle != 0) vr_drop_handle(device, page->handle);
    }
    vr_exported_release(segment);
    const size_t touched = (size_t)((region->end - region->address) / own->device->unit) * sizeof *region->units;
    vr_os_unreserve_touched(region->units, vr_paged_table_bytes(own->device, region->size), touched);
    vr_drop_range(device, segment->address, segment->size);
}

static enum vram_status allow_paged(struct vr_device *device, const struct vr_segment *segment, uint32_t peer) {
    const struct vr_cu_access_desc access = vr_access_of(peer);
    struct vr_paged_shard *own = NULL;
    const struct vr_paged_region *region = vr_paged_region_of_segment(device, segment, &own);
    for (uint64_t at = region->address; at < region->end; at += own->device->unit) {
        const uint32_t unit = region->units[(at - region->address) / own->device->unit];
        if (unit == 0 || window_at(vr_paged_page_at(own->device, unit - 1), at)->away) continue;
        const uint64_t size = vr_paged_page_at(own->device, unit - 1)->size;
        VR_TRY(vr_driver_status(vr_cu(device->allocator->driver, mem_set_access, at, size, &access, 1)));
    }
    return VRAM_OK;
}

static uint64_t page_at(const struct vr_device *device, const struct vr_segment *segment, uint64_t address, uint64_t *base,
                        uint64_t *size) {
    struct vr_paged_shard *own = NULL;
    const struct vr_paged_region *region = vr_paged_region_of_segment(device, segment, &own);
    const uint32_t page = vr_paged_page_of(own->device, region, address, base);
    if (page == 0) return 0;
    *size = vr_paged_page_at(own->device, page)->size;
    return vr_paged_page_at(own->device, page)->handle;
}

// Slots are returned with their pages: vr_paged_release().
static enum vram_status give_back_pages(struct vr_shard *shard, uint32_t block) {
    (void)shard;
    (void)block;
    return VRAM_OK;
}

static enum vram_status settle_device(struct vr_device *device) { return vr_paged_settle(vr_paged_device(device)); }

const struct vr_source_ops vr_source_paged = {
    .name = "paged",
    .expandable = true,
    .has_slots = true,
    .sharing = VR_SHARING_PAGES,
    .page_at = page_at,
    .grow = grow_paged,
    .give_back = give_back_pages,
    .take_slot = vr_paged_take,
    .give_slot = vr_paged_give,
    .ready_slot = vr_paged_ready,
    .recall_slots = vr_paged_search_fresh,
    .must_grow = vr_paged_must_grow,
    .settle = settle_device,
    .give_back_free = vr_paged_release,
    .give_back_of_pool = vr_paged_release_pool,
    .hand_over = vr_paged_hand_over,
    .park = vr_paged_park,
    .count_free = vr_paged_cached,
    .count_held = vr_paged_count_held,
    .each_slot = vr_paged_each_slot,
    .check_device = vr_paged_check,
    .end_threads = vr_paged_ahead_end,
    .close = vr_paged_close,
    .drop = drop_paged,
    .allow = allow_paged,
    .blocks = vr_paged_blocks,
    .vacate = vr_paged_vacate,
    .populate = vr_paged_populate,
};

// The small pool has chains of blocks, like expandable segments.
const struct vr_source_ops vr_source_paged_small = {
    .name = "paged, small",
    .blocks = vr_paged_blocks,
    .expandable = true,
    .sharing = VR_SHARING_PAGES,
    .page_at = page_at,
    .grow = grow_paged,
    .give_back = give_back_pages,
    .drop = drop_paged,
    .allow = allow_paged,
    .vacate = vr_paged_vacate,
    .populate = vr_paged_populate,
};

static void free_shard(struct vr_paged_shard *own) {
    own->shard->kept = NULL;
    free(own->regions);
    vr_paged_holes_free(own);
    free(own->dirty);
    free(own->spare_slots);
    vr_paged_sizes_free(own);
    free(own);
}

void vr_paged_close(struct vr_device *device) {
    struct vr_paged_device *paged = vr_paged_device(device);
    if (paged == NULL) return;
    for (size_t i = 1; i < paged->page_count; i++) {
        free(paged->pages[i].used);
        free(paged->pages[i].windows);
        free(paged->pages[i].views);
        free(paged->pages[i].shown);
    }
    for (size_t i = 1; i < paged->slot_count; i++) free(paged->slots[i].ways);
    while (paged->shards != NULL) {
        struct vr_paged_shard *own = paged->shards;
        paged->shards = own->next;
        if (own->fence != 0) vr_event_return(device, own->fence);
        free_shard(own);
    }
    free(paged->numbered);
    free(paged->unsettled);
    free(paged->pages);
    free(paged->spare_pages);
    free(paged->slots);
    free(paged->fresh);
    free(paged->marks);
    free(paged->covered);
    free(paged);
    device->kept = NULL;
}
