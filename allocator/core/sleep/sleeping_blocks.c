// Blocks of sleeping segments.
#include "core/sleep/sleepers.h"
#include "core/source/paged.h"

static bool is_chain(const struct vr_segment *segment) { return !segment->source->has_slots; }

// A free block of a whole segment counts as an inactive split only while it is awake.
static void book_split(struct vr_shard *shard, const struct vr_block *item, int64_t sign) {
    if (vr_is_unsplit(item)) return;
    const struct vr_delta delta = {{[VR_F_SPLITS] = sign, [VR_F_SPLIT_BYTES] = sign * (int64_t)item->size}};
    vr_totals_book(&shard->device->stats.totals, item->small, &delta);
}

void vr_blocks_fall_asleep(struct vr_device *device, struct vr_segment *segment) {
    const struct vram_allocator *allocator = device->allocator;
    struct vr_shard *shard = allocator->shards[segment->shard];
    segment->vacant = 1;
    for (uint32_t at = is_chain(segment) ? segment->first : 0; at != 0; at = vr_block_at(allocator, at)->next) {
        struct vr_block *item = vr_block_at(allocator, at);
        if (item->state == VR_FREE) {
            vr_pool_remove(shard, at);
            item->state = VR_VACANT;
            if (!segment->expandable) book_split(shard, item, -1);
        }
        item->expandable = VR_EXPANDABLE_VACANT;
    }
}

void vr_blocks_wake(struct vr_device *device, struct vr_segment *segment) {
    const struct vram_allocator *allocator = device->allocator;
    struct vr_shard *shard = allocator->shards[segment->shard];
    segment->vacant = segment->uncertain = 0;
    for (uint32_t at = is_chain(segment) ? segment->first : 0; at != 0; at = vr_block_at(allocator, at)->next) {
        struct vr_block *item = vr_block_at(allocator, at);
        item->expandable = segment->expandable;
        if (item->state != VR_VACANT) continue;
        if (!segment->expandable) book_split(shard, item, 1);
        vr_pool_insert(shard, at);
    }
}

// Turns the whole pages of a free block into a hole.
static void trim_block(struct vr_shard *shard, struct vr_segment *segment, uint32_t block) {
    const struct vram_allocator *allocator = shard->device->allocator;
    const uint64_t page = segment->page_size, address = vr_block_at(allocator, block)->address;
    const uint64_t size = vr_block_at(allocator, block)->size;
    const uint64_t low = segment->address + vr_round_up(address - segment->address, page);
    const uint64_t high = segment->address + vr_round_down(address + size - segment->address, page);
    if (low >= high || vr_shard_reserve_records(shard, 2) != VRAM_OK) return;
    for (uint64_t at = low; at < high; at += page)
        if (segment->pages[(at - segment->address) / page] != 0) return; // the driver kept the page's memory
    if (address < low) block = vr_block_split_numbered(shard, block, low - address);
    if (address + size > high) (void)vr_block_split_numbered(shard, block, high - low);
    (void)vr_hole_join(shard, block);
    vr_address_map_retire(&shard->device->allocator->addresses, low, high - low, segment->small);
    segment->mapped -= high - low;
    segment->away -= high - low;
}

static bool is_empty(const struct vram_allocator *allocator, const struct vr_segment *segment) {
    for (uint32_t at = segment->first; at != 0; at = vr_block_at(allocator, at)->next) {
        const struct vr_block *item = vr_block_at(allocator, at);
        if (item->state != VR_VACANT && item->state != VR_HOLE) return false;
    }
    return true;
}

void vr_asleep_trim(struct vr_device *device, uint32_t number) {
    const struct vram_allocator *allocator = device->allocator;
    struct vr_segment *segment = vr_segment_at(allocator, number);
    struct vr_shard *shard = allocator->shards[segment->shard];
    if (!is_chain(segment) || segment->source->abandon == NULL) return;
    if (!segment->expandable) {
        if (segment->away == segment->size && is_empty(allocator, segment)) segment->source->abandon(shard, number);
        return;
    }
    const bool is_counted = segment->mapped != 0; // a reservation without a page (after a failed growth) is not counted
    for (uint32_t at = segment->first, next; at != 0; at = next) {
        next = vr_block_at(allocator, at)->next;
        if (next != 0 && vr_block_at(allocator, next)->state == VR_HOLE) next = vr_block_at(allocator, next)->next; // it may be joined
        if (vr_block_at(allocator, at)->state == VR_VACANT) trim_block(shard, segment, at);
    }
    if (segment->mapped != 0) return;
    if (shard->owner != NULL && is_counted) shard->owner->segments--;
    segment->source->abandon(shard, number);
}

static enum vram_status add_range(struct vr_live_ranges *ranges, uint32_t segment, uint64_t address, uint64_t size) {
    struct vr_live_range *last = ranges->count == 0 ? NULL : &ranges->items[ranges->count - 1];
    ranges->bytes += size;
    if (last != NULL && last->segment == segment && last->address + last->size == address) {
        last->size += size;
        return VRAM_OK;
    }
    VR_TRY(VR_GROW(ranges, items, ranges->count + 1));
    ranges->items[ranges->count++] = (struct vr_live_range){address, size, segment};
    return VRAM_OK;
}

static bool block_lives(const struct vr_block *block, bool whole) {
    if (block->state == VR_ALLOCATED || block->state == VR_PENDING) return true;
    return whole && (block->state == VR_FREE || block->state == VR_VACANT);
}

// Adds the parts of a free block that are on the pool's own pages. Its windows may also show pages that belong to other pools by now.
static enum vram_status add_own(const struct vr_device *device, uint32_t number, const struct vr_block *item,
                                struct vr_live_ranges *ranges) {
    const uint64_t end = item->address + item->size;
    for (uint64_t at = item->address, next = 0; at < end; at = next) {
        const bool is_own = vr_paged_is_own(device, vr_segment_at(device->allocator, number), at, &next);
        if (next > end) next = end;
        if (is_own) VR_TRY(add_range(ranges, number, at, next - at));
    }
    return VRAM_OK;
}

// Takes the blocks by address from the source, because slots have no neighbours.
static enum vram_status add_slots(const struct vr_device *device, uint32_t number, bool whole, struct vr_live_ranges *ranges) {
    const struct vr_segment *segment = vr_segment_at(device->allocator, number);
    struct vr_block *blocks = NULL;
    size_t count = 0;
    VR_TRY(segment->source->blocks(device, segment, &blocks, &count));
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++)
        if (block_lives(&blocks[i], whole)) status = add_own(device, number, &blocks[i], ranges);
    free(blocks);
    return status;
}

enum vram_status vr_live_ranges_add(const struct vr_device *device, uint32_t number, bool whole, struct vr_live_ranges *ranges) {
    const struct vram_allocator *allocator = device->allocator;
    const struct vr_segment *segment = vr_segment_at(allocator, number);
    if (!is_chain(segment)) return add_slots(device, number, whole, ranges);
    for (uint32_t at = segment->first; at != 0; at = vr_block_at(allocator, at)->next) {
        const struct vr_block *item = vr_block_at(allocator, at);
        if (block_lives(item, whole)) VR_TRY(add_range(ranges, number, item->address, item->size));
    }
    return VRAM_OK;
}
