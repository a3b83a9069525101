// Pages of the small pool: a chain of blocks like an expandable segment's, whose holes may still be mapped. Meanwhile, pages that the pool
// does not need serve requests of the large pool through other windows.
#include "core/device.h"
#include "core/hole_runs.h"
#include "core/source/paged.h"
#include "core/source/source_ops.h"

uint64_t vr_paged_small_window(const struct vr_paged_shard *own, uint32_t page) {
    const struct vr_paged_page *item = vr_paged_page_at(own->device, page);
    for (size_t i = 0; i < item->window_count; i++) {
        if (item->windows[i].own == own) return item->windows[i].address;
    }
    return 0;
}

static void fill_hole(struct vr_shard *shard, uint32_t hole, uint64_t address, uint64_t size) {
    const struct vram_allocator *allocator = shard->device->allocator;
    vr_hole_remove(shard, hole);
    if (vr_block_at(allocator, hole)->address < address) {
        const uint32_t rest = vr_block_split(shard, hole, address - vr_block_at(allocator, hole)->address);
        vr_hole_insert(shard, hole);
        hole = rest;
    }
    if (vr_block_at(allocator, hole)->size > size) vr_hole_insert(shard, vr_block_split(shard, hole, size));
    (void)vr_pool_merge(shard, hole);
}

enum vram_status vr_paged_small_take(struct vr_paged_shard *own, uint32_t page) {
    struct vr_shard *shard = own->shard;
    struct vr_device *device = shard->device;
    const uint64_t address = vr_paged_small_window(own, page), size = vr_paged_page_at(own->device, page)->size;
    struct vr_segment *segment = vr_segment_at(device->allocator, vr_paged_region_of(own, address)->segment);
    VR_TRY(vr_shard_reserve_records(shard, 2));
    VR_TRY(vr_paged_shown_room(vr_paged_page_at(own->device, page), 0));
    VR_TRY(vr_paged_page_move(own->device, page, own));
    fill_hole(shard, vr_block_containing(device, address), address, size);
    segment->mapped += size;
    vr_reserved_add(shard, false, -(int64_t)size);
    vr_reserved_add(shard, true, (int64_t)size);
    vr_paged_show(vr_paged_page_at(own->device, page), 0, size, address);
    return VRAM_OK;
}

// Narrows [low, high) of a region to the whole pages in it. Returns false if there are none.
static bool whole_pages(const struct vr_paged_shard *own, const struct vr_paged_region *region, uint64_t *low, uint64_t *high) {
    uint64_t first = 0, end = 0;
    struct vr_paged_walk walk = vr_paged_walk_range(own, region, *low, *high);
    while (vr_paged_walk_next(&walk)) {
        if (walk.high - walk.low != walk.page->size) continue;
        if (first == 0) first = walk.base;
        end = walk.base + walk.page->size;
    }
    *low = first;
    *high = end;
    return first != 0;
}

// A free block that sleeps is in no index, and neither are its parts.
static void cut_hole(struct vr_shard *shard, uint32_t block, uint64_t low, uint64_t high) {
    const struct vr_block *item = vr_block_at(shard->device->allocator, block);
    const uint64_t end = item->address + item->size;
    if (item->state != VR_VACANT) {
        vr_pool_remove(shard, block);
        (void)vr_hole_join(shard, vr_cut_out(shard, block, low, high));
        return;
    }
    if (item->address < low) block = vr_block_split_numbered(shard, block, low - item->address);
    if (end > high) (void)vr_block_split_numbered(shard, block, high - low);
    (void)vr_hole_join(shard, block);
}

static enum vram_status return_block(struct vr_paged_shard *own, uint32_t block) {
    struct vr_shard *shard = own->shard;
    struct vr_device *device = shard->device;
    const struct vr_block *item = vr_block_at(device->allocator, block);
    struct vr_segment *segment = vr_segment_at(device->allocator, item->segment);
    const struct vr_paged_region *region = vr_paged_region_of(own->small, item->address);
    uint64_t low = item->address, high = item->address + item->size;
    if (!whole_pages(own->small, region, &low, &high)) return VRAM_OK;
    VR_TRY(vr_shard_reserve_records(shard, 2));
    size_t windows = 0;
    const struct vr_paged_walk start = vr_paged_walk_range(own, region, low, high);
    struct vr_paged_walk walk = start;
    while (vr_paged_walk_next(&walk)) windows += walk.page->window_count;
    VR_TRY(vr_paged_hole_room(own, windows)); // so that no move can fail
    int64_t bytes = 0;                        // bytes of the pages, without those asleep
    walk = start;
    while (vr_paged_walk_next(&walk)) {
        bytes += walk.page->away ? 0 : (int64_t)walk.page->size;
        VR_TRY(vr_paged_page_move(own->device, walk.number, own));
    }
    cut_hole(shard, block, low, high);
    segment->mapped -= high - low;
    vr_reserved_add(shard, true, -bytes);
    vr_reserved_add(shard, false, bytes);
    return VRAM_OK;
}

// Lists the blocks first, because returning them changes the index and the chain.
struct listed_blocks {
    uint32_t *items;
    size_t count, items_capacity;
};

static enum vram_status list_block(struct listed_blocks *listed, uint32_t block) {
    VR_TRY(VR_GROW(listed, items, listed->count + 1));
    listed->items[listed->count++] = block;
    return VRAM_OK;
}

static enum vram_status return_listed(struct vr_paged_shard *own, struct listed_blocks *listed, enum vram_status status) {
    for (size_t i = 0; i < listed->count && status == VRAM_OK; i++) status = return_block(own, listed->items[i]);
    free(listed->items);
    return status;
}

enum vram_status vr_paged_small_return(struct vr_paged_shard *own) {
    const struct vram_allocator *allocator = own->shard->device->allocator;
    const struct vr_index *index = &own->shard->pool[VR_SMALL].index;
    struct listed_blocks listed = {0};
    enum vram_status status = VRAM_OK;
    if (own->small == NULL || own->parked) return VRAM_OK;
    for (uint32_t at = vr_index_first_at_least(index, &allocator->arena, own->device->unit); at != 0 && status == VRAM_OK;
         at = vr_index_next(index, &allocator->arena, at)) {
        const struct vr_block *item = vr_block_at(allocator, at);
        if (vr_segment_at(allocator, item->segment)->source != own->small->kept.source) continue;
        status = list_block(&listed, at);
    }
    return return_listed(own, &listed, status);
}

enum vram_status vr_paged_small_return_asleep(struct vr_paged_shard *own) {
    const struct vram_allocator *allocator = own->shard->device->allocator;
    struct listed_blocks listed = {0};
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; own->small != NULL && i < own->small->region_count; i++) {
        const struct vr_segment *segment = vr_segment_at(allocator, own->small->regions[i].segment);
        for (uint32_t at = segment->first; at != 0 && status == VRAM_OK; at = vr_block_at(allocator, at)->next) {
            const struct vr_block *item = vr_block_at(allocator, at);
            if (item->state == VR_VACANT && item->size >= own->device->unit) status = list_block(&listed, at);
        }
    }
    return return_listed(own, &listed, status);
}
