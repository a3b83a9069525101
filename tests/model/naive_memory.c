// The naive model: the driver's memory, and the creation and release of segments: cudaMalloc segments, expandable segments, garbage
// collection.
#include "model/naive_inside.h"
#include "vram/sim.h"

#include <stdlib.h>

// --- the driver's memory ------------------------------------------------------------------------------------------------

// Returns the end of driver memory within `span` bytes from `address`; 0 if there is none.
static uint64_t taken_until(const struct naive *naive, uint64_t address, uint64_t span) {
    for (uint32_t d = 0; d < naive->device_count; d++) {
        for (size_t i = 0; i < naive->device[d].segment_count; i++) {
            const struct naive_segment *segment = naive->device[d].segments[i];
            if (segment->page_bytes || (segment->pool && segment->pool->info.own_base)) continue;
            const uint64_t end = segment->address + vr_round_up(segment->size_bytes, 2 * VR_MIB);
            if (segment->address < address + span && address < end) return end;
        }
    }
    for (size_t i = 0; i < naive->direct_count; i++) {
        const uint64_t begin = naive->direct[i].address, size = naive->direct[i].size_bytes;
        const uint64_t end = begin + vr_round_up(size, size >= VR_MIB ? 2 * VR_MIB : 512);
        if (begin < address + span && address < end) return end;
    }
    return 0;
}

static uint64_t lowest_gap(const struct naive *naive, uint64_t span, uint64_t unit) {
    uint64_t address = naive->next_alloc;
    for (uint64_t end = taken_until(naive, address, span); end; end = taken_until(naive, address, span)) address = vr_round_up(end, unit);
    return address;
}

bool naive_driver_alloc(struct naive *naive, struct naive_device *device, uint64_t size_bytes, uint64_t *address) {
    if (size_bytes > device->memory_bytes - device->used_bytes) return false;
    const uint64_t unit = size_bytes >= VR_MIB ? 2 * VR_MIB : 512, span = vr_round_up(size_bytes, unit);
    if (naive->addresses == VRAM_SIM_REUSE) {
        *address = lowest_gap(naive, span, unit);
    } else if (naive->addresses == VRAM_SIM_FALLING) {
        *address = naive->next_alloc = (naive->next_alloc - span) / unit * unit;
    } else {
        *address = vr_round_up(naive->next_alloc, unit);
        naive->next_alloc = *address + span;
    }
    device->used_bytes += size_bytes;
    return true;
}

// Returns the end of a reservation within `span` bytes from `address`; 0 if there is none.
static uint64_t reserved_until(const struct naive *naive, uint64_t address, uint64_t span) {
    for (uint32_t d = 0; d < naive->device_count; d++) {
        for (size_t i = 0; i < naive->device[d].segment_count; i++) {
            const struct naive_segment *segment = naive->device[d].segments[i];
            const uint64_t end = segment->address + segment->size_bytes;
            if (segment->page_bytes && segment->address < address + span && address < end) return end;
        }
    }
    return 0;
}

static uint64_t driver_reserve(struct naive *naive, uint64_t size_bytes) {
    uint64_t address = vr_round_up(naive->next_reserve, VR_GIB);
    if (naive->addresses == VRAM_SIM_REUSE) {
        for (uint64_t end; (end = reserved_until(naive, address, size_bytes)) != 0;) address = vr_round_up(end, VR_GIB);
        return address;
    }
    naive->next_reserve = address + size_bytes;
    return address;
}

// --- blocks of a segment -----------------------------------------------------------------------------------------------------

int naive_compare(const struct naive *naive, const struct naive_block *a, const struct naive_block *b) {
    if (a->size_bytes != b->size_bytes) return a->size_bytes < b->size_bytes ? -1 : 1;
    if (naive->oldest_first && a->segment->order != b->segment->order) return a->segment->order < b->segment->order ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

struct naive_block *naive_cut(struct naive_block *block, uint64_t size_bytes) {
    struct naive_block *rest = calloc(1, sizeof *rest);
    if (!rest) abort();
    rest->segment = block->segment;
    rest->address = block->address + size_bytes;
    rest->size_bytes = block->size_bytes - size_bytes;
    rest->state = block->state;
    rest->counter = block->counter;
    rest->prev = block;
    rest->next = block->next;
    if (rest->next) rest->next->prev = rest;
    block->next = rest;
    block->size_bytes = size_bytes;
    return rest;
}

uint64_t naive_merge(struct naive_block *dst, struct naive_block *src) {
    if (!src || src->state != dst->state || (dst->state != NAIVE_FREE && dst->state != NAIVE_UNMAPPED)) return 0;
    const uint64_t gained = src->size_bytes;
    if (src == dst->prev) {
        dst->address = src->address;
        dst->prev = src->prev;
        if (dst->prev)
            dst->prev->next = dst;
        else
            dst->segment->first = dst;
    } else {
        dst->next = src->next;
        if (dst->next) dst->next->prev = dst;
    }
    dst->size_bytes += gained;
    free(src);
    return gained;
}

static struct naive_segment *add_segment(struct naive *naive, struct naive_device *device, const struct naive_request *request,
                                         uint64_t address, uint64_t size_bytes, uint64_t page_bytes) {
    struct naive_segment *segment = calloc(1, sizeof *segment);
    struct naive_block *block = calloc(1, sizeof *block);
    if (!segment || !block) abort();
    *segment = (struct naive_segment){.address = address,
                                      .size_bytes = size_bytes,
                                      .stream = request->stream,
                                      .order = naive->next_order++,
                                      .page_bytes = page_bytes,
                                      .small = request->small,
                                      .pool = request->pool,
                                      .first = block};
    *block = (struct naive_block){
        .segment = segment, .address = address, .size_bytes = size_bytes, .state = page_bytes ? NAIVE_UNMAPPED : NAIVE_FREE};
    naive_make_room((void **)&device->segments, &device->segment_capacity, device->segment_count + 1, sizeof segment);
    device->segments[device->segment_count++] = segment;
    return segment;
}

// Removes the segment and its only block.
static void remove_segment(struct naive_device *device, struct naive_segment *segment) {
    size_t i = 0;
    while (device->segments[i] != segment) i++;
    for (; i + 1 < device->segment_count; i++) device->segments[i] = device->segments[i + 1];
    device->segment_count--;
    free(segment->first);
    free(segment);
}

bool naive_expandable(const struct naive *naive, const struct naive_pool *pool) {
    return naive->options.expandable && !(pool && pool->info.own_base);
}

static void change_reserved(struct naive_device *device, const struct naive_segment *segment, int64_t by) {
    struct vram_stat *own = segment->pool ? segment->pool->reserved : NULL;
    if (by > 0) {
        naive_rise(device->stats.reserved_bytes, segment->small, by);
        if (own) naive_rise(own, segment->small, by);
    } else {
        naive_fall(device->stats.reserved_bytes, segment->small, -by);
        if (own) naive_fall(own, segment->small, -by);
    }
}

// --- expandable segments ---------------------------------------------------------------------------------------------------------

static bool allocatable(const struct naive_block *block) { return block && (block->state == NAIVE_FREE || block->state == NAIVE_UNMAPPED); }

// Finds the first run of free blocks and holes, by the address of its hole, with room for the request.
static struct naive_block *find_run(const struct naive_device *device, const struct naive_request *request) {
    struct naive_block *best = NULL, *best_hole = NULL;
    for (size_t i = 0; i < device->segment_count; i++) {
        const struct naive_segment *segment = device->segments[i];
        if (!segment->page_bytes || segment->pool != request->pool) continue;
        if (segment->stream != request->stream || segment->small != request->small) continue;
        for (struct naive_block *hole = segment->first; hole; hole = hole->next) {
            if (hole->state != NAIVE_UNMAPPED || (best_hole && hole->address > best_hole->address)) continue;
            struct naive_block *start = allocatable(hole->prev) ? hole->prev : hole;
            uint64_t room = 0;
            for (const struct naive_block *block = start; room < request->rounded_bytes && allocatable(block); block = block->next)
                room += block->size_bytes;
            if (room < request->rounded_bytes) continue;
            best = start;
            best_hole = hole;
        }
    }
    return best;
}

// Maps whole pages for the first size_bytes of the hole. Returns the free block that contains them, or NULL if the device is full.
static struct naive_block *map_hole(struct naive *naive, struct naive_device *device, struct naive_block *hole, uint64_t size_bytes) {
    struct naive_segment *segment = hole->segment;
    const uint64_t bytes = vr_round_up(size_bytes, segment->page_bytes), address = hole->address;
    if (bytes > device->memory_bytes - device->used_bytes) return NULL;
    device->used_bytes += bytes;
    device->held_bytes += bytes;
    if (bytes < hole->size_bytes) (void)naive_cut(hole, bytes);
    hole->state = NAIVE_FREE;
    (void)naive_merge(hole, hole->prev);
    (void)naive_merge(hole, hole->next);
    hole->counter = device->search_counter[segment->small];
    change_reserved(device, segment, (int64_t)bytes);
    device->stats.num_device_alloc++;
    naive_note(naive, device, VR_RECORD_SEGMENT_MAP, address, bytes, segment->stream);
    return hole;
}

static struct naive_block *new_reservation(struct naive *naive, struct naive_device *device, const struct naive_request *request) {
    const uint64_t full = device->memory_bytes + device->memory_bytes / 8;
    uint64_t bytes = full;
    if (naive->options.reserve_fraction > 0) {
        bytes = (uint64_t)(naive->options.reserve_fraction * (double)device->memory_bytes);
        if (bytes > full) bytes = full;
    }
    // Pages are a multiple of the driver's 2 MiB.
    const uint64_t page = request->small ? NAIVE_SMALL_SEGMENT : vr_round_up(naive->options.large_segment_bytes, 2 * VR_MIB);
    bytes = vr_round_up(bytes, page);
    if (bytes < request->rounded_bytes) return NULL;
    return add_segment(naive, device, request, driver_reserve(naive, bytes), bytes, page)->first;
}

static struct naive_block *expandable_memory(struct naive *naive, struct naive_device *device, const struct naive_request *request) {
    struct naive_block *block = find_run(device, request);
    if (!block) block = new_reservation(naive, device, request);
    if (!block) return NULL;
    const uint64_t wanted = request->rounded_bytes;
    if (block->state == NAIVE_UNMAPPED) {
        block = map_hole(naive, device, block, block->size_bytes < wanted ? block->size_bytes : wanted);
        if (!block) return NULL;
    }
    while (block->size_bytes < wanted) {
        const uint64_t missing = wanted - block->size_bytes;
        struct naive_block *hole = block->next;
        block = map_hole(naive, device, hole, hole->size_bytes < missing ? hole->size_bytes : missing);
        if (!block) return NULL;
    }
    return block;
}

// Unmaps the whole pages inside a free block. Its head and tail stay free.
static void unmap_free(struct naive *naive, struct naive_device *device, struct naive_block *block) {
    struct naive_segment *segment = block->segment;
    const uint64_t begin = vr_round_up(block->address - segment->address, segment->page_bytes) + segment->address;
    const uint64_t end = vr_round_down(block->address + block->size_bytes - segment->address, segment->page_bytes) + segment->address;
    if (begin >= end) return;
    naive_complete(naive, device->ordinal, segment->stream); // unmapping waits for the stream
    if (begin > block->address) {
        struct naive_block *head = block;
        block = naive_cut(head, begin - head->address);
        head->counter = device->search_counter[segment->small];
    }
    if (end < block->address + block->size_bytes) naive_cut(block, end - block->address)->counter = device->search_counter[segment->small];
    block->state = NAIVE_UNMAPPED;
    (void)naive_merge(block, block->prev);
    (void)naive_merge(block, block->next);
    device->used_bytes -= end - begin;
    device->held_bytes -= end - begin;
    change_reserved(device, segment, -(int64_t)(end - begin));
    device->stats.num_device_free++;
    naive_note(naive, device, VR_RECORD_SEGMENT_UNMAP, begin, end - begin, segment->stream);
    if (!block->prev && !block->next) remove_segment(device, segment);
}

// --- getting memory -----------------------------------------------------------------------------------------------------------------

static bool own_alloc(struct naive_pool *pool, uint64_t size_bytes, uint64_t *address) {
    if (size_bytes > pool->info.own_bytes - pool->own_used) return false;
    *address = pool->own_next;
    pool->own_next += size_bytes;
    pool->own_used += size_bytes;
    return true;
}

struct naive_block *naive_new_memory(struct naive *naive, struct naive_device *device, struct naive_request *request) {
    const uint64_t bytes = request->segment_bytes;
    struct vram_stats *stats = &device->stats;
    request->limit_hit = device->limit_bytes != NAIVE_NO_LIMIT && device->held_bytes + bytes > device->limit_bytes;
    if (request->limit_hit) return NULL;
    if (naive->options.throw_on_oom) {
        const uint64_t most = (uint64_t)(naive->options.fraction * (double)device->memory_bytes);
        if (device->held_bytes + bytes > most) {
            stats->num_oom_rejections++;
            request->rejected = request->limit_hit = true; // without asking the device
            return NULL;
        }
    }
    if (naive_expandable(naive, request->pool)) return expandable_memory(naive, device, request);
    uint64_t address = 0;
    const bool own = request->pool && request->pool->info.own_base;
    if (own ? !own_alloc(request->pool, bytes, &address) : !naive_driver_alloc(naive, device, bytes, &address)) return NULL;
    device->held_bytes += bytes;
    struct naive_segment *segment = add_segment(naive, device, request, address, bytes, 0);
    naive_rise(stats->segment, request->small, 1);
    change_reserved(device, segment, (int64_t)bytes);
    segment->oversize = bytes >= naive->options.max_split_bytes;
    if (segment->oversize) {
        stats->oversize_segments.current++;
        stats->oversize_segments.allocated++;
        if (stats->oversize_segments.current > stats->oversize_segments.peak)
            stats->oversize_segments.peak = stats->oversize_segments.current;
    }
    stats->num_device_alloc++;
    naive_note(naive, device, VR_RECORD_SEGMENT_ALLOC, address, bytes, request->stream);
    return segment->first;
}

// --- giving memory back ---------------------------------------------------------------------------------------------------------------

static bool whole_segment(const struct naive_block *block) {
    return block->state == NAIVE_FREE && !block->prev && !block->next && !block->segment->page_bytes;
}

static void release_block(struct naive *naive, struct naive_device *device, struct naive_block *block) {
    struct naive_segment *segment = block->segment;
    struct vram_stats *stats = &device->stats;
    const uint64_t bytes = segment->size_bytes;
    stats->num_device_free++;
    naive_note(naive, device, VR_RECORD_SEGMENT_FREE, segment->address, bytes, segment->stream);
    if (segment->pool && segment->pool->info.own_base)
        segment->pool->own_used -= bytes;
    else
        device->used_bytes -= bytes;
    device->held_bytes -= bytes;
    naive_fall(stats->segment, segment->small, 1);
    change_reserved(device, segment, -(int64_t)bytes);
    if (segment->oversize) {
        stats->oversize_segments.current--;
        stats->oversize_segments.freed++;
    }
    remove_segment(device, segment);
}

// Returns a pool's free blocks in the order of the set: by stream, then as in the search. The caller frees the array.
static struct naive_block **sorted_free(struct naive *naive, const struct naive_device *device, const struct naive_pool *pool, bool small,
                                        size_t *count) {
    struct naive_block **blocks = NULL;
    size_t capacity = 0;
    *count = 0;
    for (size_t i = 0; i < device->segment_count; i++) {
        if (device->segments[i]->pool != pool || device->segments[i]->small != small) continue;
        for (struct naive_block *block = device->segments[i]->first; block; block = block->next) {
            if (block->state != NAIVE_FREE) continue;
            naive_make_room((void **)&blocks, &capacity, *count + 1, sizeof *blocks);
            size_t at = (*count)++;
            for (; at > 0; at--) {
                const struct naive_block *before = blocks[at - 1];
                const uint64_t stream = before->segment->stream, own = block->segment->stream;
                if (stream < own || (stream == own && naive_compare(naive, before, block) < 0)) break;
                blocks[at] = blocks[at - 1];
            }
            blocks[at] = block;
        }
    }
    return blocks;
}

// Releases a pool's free memory. Unmapping waits for streams, which a capture forbids.
void naive_release_pool(struct naive *naive, struct naive_device *device, const struct naive_pool *pool, bool small) {
    size_t count = 0;
    struct naive_block **blocks = sorted_free(naive, device, pool, small, &count);
    for (size_t i = 0; i < count; i++) {
        if (!whole_segment(blocks[i])) continue;
        release_block(naive, device, blocks[i]);
        blocks[i] = NULL;
    }
    for (size_t i = 0; i < count; i++)
        if (blocks[i] && blocks[i]->segment->page_bytes && !naive_capture_of(naive, blocks[i]->segment->stream))
            unmap_free(naive, device, blocks[i]);
    free(blocks);
}

static bool holds_memory(const struct naive_device *device, const struct naive_pool *pool) {
    for (size_t i = 0; i < device->segment_count; i++) {
        const struct naive_segment *segment = device->segments[i];
        if (segment->pool == pool && (segment->first->next || segment->first->state != NAIVE_UNMAPPED)) return true;
    }
    return false;
}

void naive_bury(struct naive *naive, struct naive_device *device) {
    for (size_t p = 0; p < naive->pool_count; p++) {
        const struct naive_pool *pool = naive->pools[p];
        if (pool->device != device->ordinal || pool->references || holds_memory(device, pool)) continue;
        for (size_t i = device->segment_count; i-- > 0;)
            if (device->segments[i]->pool == pool) remove_segment(device, device->segments[i]);
    }
}

// Releases the default pools, then unreferenced ones. The description leaves their order open; the newest comes first.
void naive_release_cached(struct naive *naive, struct naive_device *device, bool everything) {
    if (everything) {
        naive_convert(naive, device);
        device->stats.num_sync_all_streams++;
        naive_process_events(naive, device, true);
        naive_release_pool(naive, device, NULL, false);
        naive_release_pool(naive, device, NULL, true);
    }
    for (size_t i = naive->pool_count; i-- > 0;) {
        const struct naive_pool *pool = naive->pools[i];
        if ((pool->references && !naive_shares(naive, pool)) || pool->device != device->ordinal) continue;
        naive_release_pool(naive, device, pool, true);
        naive_release_pool(naive, device, pool, false);
    }
    naive_bury(naive, device);
}

// Releases oversize blocks of the request's stream and pool: one that is large enough, or as many of the largest as needed.
bool naive_release_available(struct naive *naive, struct naive_device *device, const struct naive_request *request) {
    const uint64_t limit = naive->options.max_split_bytes;
    if (limit == UINT64_MAX) return false;
    const uint64_t wanted = request->rounded_bytes > limit ? request->rounded_bytes : limit;
    size_t count = 0, first = 0, end = 0;
    struct naive_block **blocks = sorted_free(naive, device, request->pool, request->small, &count);
    while (first < count && blocks[first]->segment->stream < request->stream) first++;
    for (end = first; end < count && blocks[end]->segment->stream == request->stream && blocks[end]->size_bytes < wanted;) end++;
    uint64_t released = 0;
    if (end < count && blocks[end]->segment->stream == request->stream && whole_segment(blocks[end])) {
        release_block(naive, device, blocks[end]);
        released = wanted;
    } else {
        while (end > first && released < wanted && blocks[end - 1]->size_bytes >= limit) {
            struct naive_block *block = blocks[--end];
            if (!whole_segment(block)) continue;
            released += block->size_bytes;
            release_block(naive, device, block);
        }
    }
    free(blocks);
    return released >= wanted;
}

// Frees whole segments of the large pool that were unused for at least the average number of searches, while too much is reserved.
void naive_collect_garbage(struct naive *naive, struct naive_device *device) {
    const uint64_t threshold = (uint64_t)(naive->options.gc_threshold * (double)device->limit_bytes);
    if (device->held_bytes <= threshold) return;
    const uint64_t target = device->held_bytes - threshold;
    size_t count = 0, left = 0;
    struct naive_block **blocks = sorted_free(naive, device, NULL, false, &count);
    double total_age = 0;
    const uint64_t now = device->search_counter[false];
    for (size_t i = 0; i < count; i++) {
        if (blocks[i]->prev || blocks[i]->next)
            blocks[i] = NULL;
        else {
            total_age += (double)(now - blocks[i]->counter);
            left++;
        }
    }
    uint64_t reclaimed = 0;
    bool freed = true;
    while (reclaimed < target && freed && left > 0) {
        const double oldest = total_age / (double)left;
        freed = false;
        for (size_t i = 0; i < count; i++) {
            struct naive_block *block = blocks[i];
            if (!block || block->segment->page_bytes || (double)(now - block->counter) < oldest) continue;
            total_age -= (double)(now - block->counter);
            reclaimed += block->size_bytes;
            left--;
            freed = true;
            blocks[i] = NULL;
            release_block(naive, device, block);
        }
    }
    free(blocks);
}
