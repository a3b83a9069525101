// The naive model: requests, the best-fit search, allocation, freeing, events.
#include "model/naive_inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void naive_make_room(void **items, size_t *capacity, size_t needed, size_t item_bytes) {
    if (vr_grow(items, capacity, needed, item_bytes) == VRAM_OK) return;
    fputs("naive model: the host has no memory\n", stderr);
    abort();
}

// --- records and statistics ------------------------------------------------------------------------------------------

void naive_note(struct naive *naive, struct naive_device *device, enum vr_record_action action, uint64_t address, uint64_t size_bytes,
                uint64_t stream) {
    naive_make_room((void **)&naive->records, &naive->record_capacity, naive->record_count + 1, sizeof *naive->records);
    naive->records[naive->record_count++] =
        (struct vr_record){.address = address, .size_bytes = size_bytes, .stream = stream, .device = device->ordinal, .action = action};
}

static void rise_one(struct vram_stat *stat, int64_t by) {
    stat->current += by;
    stat->allocated += by;
    if (stat->current > stat->peak) stat->peak = stat->current;
}

static void fall_one(struct vram_stat *stat, int64_t by) {
    stat->current -= by;
    stat->freed += by;
}

void naive_rise(struct vram_stat *stat, bool small, int64_t by) {
    rise_one(&stat[VRAM_STAT_ALL], by);
    rise_one(&stat[small ? VRAM_STAT_SMALL_POOL : VRAM_STAT_LARGE_POOL], by);
}

void naive_fall(struct vram_stat *stat, bool small, int64_t by) {
    fall_one(&stat[VRAM_STAT_ALL], by);
    fall_one(&stat[small ? VRAM_STAT_SMALL_POOL : VRAM_STAT_LARGE_POOL], by);
}

static void change(struct vram_stat *stat, bool small, int64_t by) {
    if (by > 0) naive_rise(stat, small, by);
    if (by < 0) naive_fall(stat, small, -by);
}

// --- sizes ------------------------------------------------------------------------------------------------------------

static uint32_t divisor_of(const struct naive_options *options, uint64_t size_bytes) {
    uint32_t bucket = 0;
    for (uint64_t limit = 2 * VR_MIB; size_bytes >= limit && bucket < NAIVE_BUCKETS - 1; limit *= 2) bucket++;
    return options->divisions[bucket];
}

static uint64_t round_size(const struct naive_options *options, uint64_t size_bytes) {
    size_bytes += options->padding_bytes;
    if (size_bytes < NAIVE_MIN_BLOCK) return NAIVE_MIN_BLOCK;
    const uint32_t divisor = divisor_of(options, size_bytes);
    if (divisor > 1 && size_bytes > NAIVE_MIN_BLOCK * divisor) {
        uint64_t floor = 1;
        while (floor * 2 <= size_bytes) floor *= 2;
        if (floor == size_bytes) return size_bytes;
        return vr_round_up(size_bytes, floor / divisor);
    }
    return vr_round_up(size_bytes, NAIVE_MIN_BLOCK);
}

struct naive_request naive_make_request(const struct naive *naive, struct naive_pool *pool, uint64_t size_bytes, uint64_t stream) {
    struct naive_request request = {.stream = stream, .size_bytes = size_bytes, .pool = pool};
    request.rounded_bytes = round_size(&naive->options, size_bytes);
    request.small = request.rounded_bytes <= VR_MIB;
    if (request.small)
        request.segment_bytes = NAIVE_SMALL_SEGMENT;
    else if (request.rounded_bytes < 10 * VR_MIB)
        request.segment_bytes = naive->options.large_segment_bytes;
    else
        request.segment_bytes = vr_round_up(request.rounded_bytes, 2 * VR_MIB);
    return request;
}

// --- the search ---------------------------------------------------------------------------------------------------------

// Returns the best free block of the request's stream and pool that is large enough and ordered after `after` (NULL: the first of all).
static struct naive_block *candidate(const struct naive *naive, const struct naive_device *device, const struct naive_request *request,
                                     bool expandable, const struct naive_block *after) {
    struct naive_block *best = NULL;
    for (size_t i = 0; i < device->segment_count; i++) {
        const struct naive_segment *segment = device->segments[i];
        if (segment->pool != request->pool || segment->stream != request->stream || segment->small != request->small) continue;
        if (segment->page_bytes && !expandable) continue;
        for (struct naive_block *block = segment->first; block; block = block->next) {
            if (block->state != NAIVE_FREE || block->size_bytes < request->rounded_bytes) continue;
            if (after && naive_compare(naive, block, after) <= 0) continue;
            if (!best || naive_compare(naive, block, best) < 0) best = block;
        }
    }
    return best;
}

// Returns the block's size after mapping the hole that follows it.
static uint64_t effective_size(const struct naive_block *block) {
    return block->size_bytes + (block->next && block->next->state == NAIVE_UNMAPPED ? block->next->size_bytes : 0);
}

static struct naive_block *search(const struct naive *naive, const struct naive_device *device, const struct naive_request *request,
                                  bool expandable) {
    const struct naive_options *options = &naive->options;
    struct naive_block *block = candidate(naive, device, request, expandable, NULL);
    if (!block) return NULL;
    while (expandable && block->segment->page_bytes) {
        struct naive_block *next = candidate(naive, device, request, expandable, block);
        if (!next || effective_size(next) >= effective_size(block)) break;
        block = next;
    }
    const uint64_t limit = options->max_split_bytes;
    const bool reuses = options->reuse_oversize && block->segment->page_bytes != 0;
    if (request->rounded_bytes < limit && block->size_bytes >= limit && !reuses) return NULL;
    if (request->rounded_bytes >= limit && block->size_bytes >= request->rounded_bytes + options->non_split_rounding_bytes) return NULL;
    return block;
}

// Counters of private pools do not influence decisions.
static struct naive_block *find_free(const struct naive *naive, struct naive_device *device, const struct naive_request *request) {
    const bool ticks = device->limit_bytes != NAIVE_NO_LIMIT && naive->options.gc_threshold > 0 && !request->pool;
    if (ticks) device->search_counter[request->small]++;
    return search(naive, device, request, naive_expandable(naive, request->pool));
}

bool naive_shares(const struct naive *naive, const struct naive_pool *pool) {
    return naive->options.share && !pool->info.for_graph && !pool->captured;
}

// Returns a cached block of a lending pool. The description leaves the order of such pools open; the newest comes first.
static struct naive_block *borrow(const struct naive *naive, const struct naive_device *device, const struct naive_request *request) {
    for (size_t i = naive->pool_count; i-- > 0 && !request->pool;) {
        struct naive_pool *pool = naive->pools[i];
        const bool lends = pool->info.use_on_oom || (naive_shares(naive, pool) && pool->info.own_base == 0);
        if (!lends || pool->references == 0 || pool->captured) continue;
        struct naive_request there = *request;
        there.pool = pool;
        struct naive_block *block = pool->device == device->ordinal ? search(naive, device, &there, false) : NULL;
        if (block) return block;
    }
    return NULL;
}

// --- allocating and freeing ------------------------------------------------------------------------------------------------

bool naive_should_split(const struct naive *naive, const struct naive_block *block, const struct naive_request *request) {
    const uint64_t rest = block->size_bytes - request->rounded_bytes;
    const struct naive_pool *pool = block->segment->pool;
    if (pool && pool->info.no_split) return false;
    if (request->small || naive_expandable(naive, pool)) return rest >= NAIVE_MIN_BLOCK;
    return request->rounded_bytes < naive->options.max_split_bytes && rest > VR_MIB;
}

void naive_hand_out(struct naive *naive, struct naive_device *device, const struct naive_request *request, struct naive_block *block,
                    bool split) {
    struct vram_stats *stats = &device->stats;
    const bool small = request->small, counted = block->segment->page_bytes == 0, was_split = block->prev || block->next;
    if (split) {
        struct naive_block *rest = naive_cut(block, request->rounded_bytes);
        rest->counter = device->search_counter[small];
        if (counted && was_split) naive_fall(stats->inactive_split_bytes, small, (int64_t)block->size_bytes);
        if (counted && !was_split) {
            naive_rise(stats->inactive_split_bytes, small, (int64_t)rest->size_bytes);
            naive_rise(stats->inactive_split, small, 1);
        }
    } else if (counted && was_split) {
        naive_fall(stats->inactive_split_bytes, small, (int64_t)block->size_bytes);
        naive_fall(stats->inactive_split, small, 1);
    }
    block->state = NAIVE_ALLOCATED;
    block->requested_bytes = request->size_bytes;
    block->use_count = 0;
    naive_note(naive, device, VR_RECORD_ALLOC, block->address, request->size_bytes, request->stream);
    naive_rise(stats->allocation, small, 1);
    naive_rise(stats->allocated_bytes, small, (int64_t)block->size_bytes);
    naive_rise(stats->active, small, 1);
    naive_rise(stats->active_bytes, small, (int64_t)block->size_bytes);
    naive_rise(stats->requested_bytes, small, (int64_t)request->size_bytes);
    block->oversize = block->size_bytes >= naive->options.max_split_bytes;
    if (block->oversize) rise_one(&stats->oversize_allocations, 1);
}

void naive_complete_free(struct naive *naive, struct naive_device *device, struct naive_block *block) {
    struct vram_stats *stats = &device->stats;
    const bool small = block->segment->small;
    const int64_t size = (int64_t)block->size_bytes, requested = (int64_t)block->requested_bytes;
    naive_note(naive, device, VR_RECORD_FREE_COMPLETED, block->address, block->requested_bytes, block->segment->stream);
    block->state = NAIVE_FREE;
    int64_t count = 0, bytes = 0;
    for (int side = 0; side < 2; side++) {
        const uint64_t gained = naive_merge(block, side == 0 ? block->prev : block->next);
        if (gained == 0) continue;
        count -= 1;
        bytes -= (int64_t)gained;
    }
    block->counter = device->search_counter[small];
    if (block->prev || block->next) {
        count += 1;
        bytes += (int64_t)block->size_bytes;
    }
    if (block->segment->page_bytes == 0) {
        change(stats->inactive_split, small, count);
        change(stats->inactive_split_bytes, small, bytes);
    }
    naive_fall(stats->active, small, 1);
    naive_fall(stats->active_bytes, small, size);
    naive_fall(stats->requested_bytes, small, requested);
}

void naive_request_free(struct naive *naive, struct naive_device *device, struct naive_block *block) {
    struct vram_stats *stats = &device->stats;
    const bool small = block->segment->small;
    naive_fall(stats->allocation, small, 1);
    naive_fall(stats->allocated_bytes, small, (int64_t)block->size_bytes);
    naive_note(naive, device, VR_RECORD_FREE_REQUESTED, block->address, block->requested_bytes, block->segment->stream);
    if (block->oversize) fall_one(&stats->oversize_allocations, 1);
    if (block->use_count == 0) {
        naive_complete_free(naive, device, block);
        return;
    }
    block->state = NAIVE_PENDING;
    if (device->capture_count)
        naive_defer(naive, device, block);
    else
        naive_record_events(naive, device, block);
}

// --- events -----------------------------------------------------------------------------------------------------------------

void naive_record_events(struct naive *naive, struct naive_device *device, struct naive_block *block) {
    for (size_t i = 0; i < block->use_count; i++) {
        naive_make_room((void **)&device->events, &device->event_capacity, device->event_count + 1, sizeof *device->events);
        device->events[device->event_count++] =
            (struct naive_event){.stream = block->uses[i], .order = naive->next_event++, .block = block};
        block->events++;
    }
}

static void finish_event(struct naive *naive, struct naive_device *device, size_t index) {
    struct naive_block *block = device->events[index].block;
    memmove(&device->events[index], &device->events[index + 1], (device->event_count - index - 1) * sizeof *device->events);
    device->event_count--;
    if (--block->events == 0) naive_complete_free(naive, device, block);
}

// Makes the stream wait for what `other` recorded before the event `until`, or (0) until now.
static void wait_for(struct naive *naive, const struct naive_device *device, uint64_t stream, uint64_t other, uint64_t until) {
    naive_make_room((void **)&naive->waits, &naive->wait_capacity, naive->wait_count + 1, sizeof *naive->waits);
    const uint64_t now = naive->next_event++;
    naive->waits[naive->wait_count++] =
        (struct naive_wait){.device = device->ordinal, .stream = stream, .other = other, .order = now, .until = until != 0 ? until : now};
}

void naive_order_uses(struct naive *naive, struct naive_device *device, struct naive_block *block) {
    for (size_t i = 0; i < block->use_count; i++) wait_for(naive, device, block->segment->stream, block->uses[i], 0);
    block->use_count = 0;
}

void naive_order_pending(struct naive *naive, struct naive_device *device, const struct naive_pool *pool) {
    for (size_t i = 0; i < device->event_count;) {
        const struct naive_event *event = &device->events[i];
        if (event->block->segment->pool != pool) {
            i++;
            continue;
        }
        if (!event->complete) wait_for(naive, device, event->block->segment->stream, event->stream, event->order + 1);
        finish_event(naive, device, i);
    }
}

static void complete_before(struct naive *naive, uint32_t device, uint64_t stream, uint64_t order);

// Completes what a stream waited for before `order`. Each wait is followed once and removed.
static void complete_waits(struct naive *naive, uint32_t device, uint64_t stream, uint64_t order) {
    for (size_t i = 0; i < naive->wait_count;) {
        const struct naive_wait wait = naive->waits[i];
        if (wait.stream != stream || wait.order >= order || (stream == 0 && wait.device != device)) {
            i++;
            continue;
        }
        naive->waits[i] = naive->waits[--naive->wait_count];
        complete_before(naive, wait.device, wait.other, wait.until);
        i = 0;
    }
}

// Completes what was recorded on a stream before `order`, for the events of all devices, since a block may be used on another device's
// stream. Only the legacy stream has the same handle on every device.
static void complete_before(struct naive *naive, uint32_t device, uint64_t stream, uint64_t order) {
    for (uint32_t d = 0; d < naive->device_count; d++) {
        if (stream == 0 && d != device) continue;
        for (size_t i = 0; i < naive->device[d].event_count; i++) {
            struct naive_event *event = &naive->device[d].events[i];
            if (event->stream == stream && event->order < order) event->complete = true;
        }
    }
    complete_waits(naive, device, stream, order);
}

// Processes events. Streams complete in order, so an event is complete only if all earlier ones of its stream are.
void naive_process_events(struct naive *naive, struct naive_device *device, bool wait) {
    for (size_t i = 0; i < device->event_count;) {
        if (wait) complete_before(naive, device->ordinal, device->events[i].stream, device->events[i].order);
        if (wait || device->events[i].complete)
            finish_event(naive, device, i);
        else
            i++;
    }
}

void naive_finish_pool(struct naive *naive, struct naive_device *device, const struct naive_pool *pool) {
    device->stats.num_sync_all_streams++;
    for (size_t i = 0; i < device->event_count;) {
        const struct naive_event *event = &device->events[i];
        if (event->block->segment->pool != pool) {
            i++;
            continue;
        }
        complete_before(naive, device->ordinal, event->stream, event->order + 1);
        finish_event(naive, device, i);
    }
}

void naive_complete(struct naive *naive, uint32_t device, uint64_t stream) { complete_before(naive, device, stream, naive->next_event); }

void naive_complete_all(struct naive *naive) {
    for (uint32_t d = 0; d < naive->device_count; d++)
        for (size_t i = 0; i < naive->device[d].event_count; i++) naive->device[d].events[i].complete = true;
}

// --- the public interface -----------------------------------------------------------------------------------------------------

static struct naive_direct *find_direct(struct naive *naive, uint64_t address) {
    for (size_t i = 0; i < naive->direct_count; i++)
        if (naive->direct[i].address == address) return &naive->direct[i];
    return NULL;
}

// Fills the whole report of a failure from the blocks.
static void fill_oom(struct naive *naive, struct naive_device *device, const struct naive_request *request) {
    struct vram_oom oom = {
        .device = device->ordinal,
        .stream = request->stream,
        .requested_bytes = request->size_bytes,
        .rounded_bytes = request->rounded_bytes,
        .segment_bytes = request->segment_bytes,
        .device_total_bytes = device->memory_bytes,
        .device_free_bytes = device->memory_bytes - device->used_bytes,
        .limit_bytes = device->limit_bytes,
        .rejected = request->rejected,
        .limit_hit = request->limit_hit,
    };
    size_t count = 0;
    const struct vram_block_view *view = naive_picture(naive, device->ordinal, &count);
    for (size_t i = 0; i < count; i++, view++) {
        if (find_direct(naive, view->block.address)) continue; // not in the statistics
        const uint64_t size = view->block.size_bytes;
        const bool own_stream = view->block.stream == request->stream, own_class = view->small_pool == request->small;
        const struct vram_pool_id id = request->pool ? request->pool->id : (struct vram_pool_id){0, 0};
        const bool own_pool = view->block.pool.first == id.first && view->block.pool.second == id.second;
        oom.reserved_bytes += size;
        if (view->state == VRAM_BLOCK_ALLOCATED) oom.allocated_bytes += size;
        if (view->state == VRAM_BLOCK_PENDING) oom.pending_bytes += size;
        if (view->state != VRAM_BLOCK_FREE) continue;
        oom.cached_bytes += size;
        if (!own_pool) oom.private_pool_bytes += size;
        if (own_pool && !own_stream) oom.other_stream_bytes += size;
        if (own_pool && own_stream && !own_class) oom.other_pool_bytes += size;
        const bool usable = own_pool && own_stream && own_class && (naive_expandable(naive, request->pool) || !view->block.expandable);
        if (usable && size > oom.largest_free_bytes) oom.largest_free_bytes = size;
    }
    naive->oom = oom;
}

static enum vram_status fail(struct naive *naive, struct naive_device *device, const struct naive_request *request) {
    fill_oom(naive, device, request);
    if (request->rejected) return VRAM_REJECTED;
    naive_note(naive, device, VR_RECORD_OOM, device->memory_bytes - device->used_bytes, request->rounded_bytes, request->stream);
    device->stats.num_ooms++;
    return VRAM_OUT_OF_MEMORY;
}

static void note_direct(struct naive *naive, enum vr_record_action action, const struct naive_direct *direct) {
    naive_note(naive, &naive->device[direct->device], action, direct->address, direct->size_bytes, direct->stream);
}

static enum vram_status direct_malloc(struct naive *naive, struct naive_device *device, uint64_t size_bytes, uint64_t stream,
                                      uint64_t *address) {
    struct naive_direct direct = {.size_bytes = size_bytes, .stream = stream, .device = device->ordinal};
    if (!naive_driver_alloc(naive, device, size_bytes, &direct.address)) return VRAM_OUT_OF_MEMORY;
    naive_make_room((void **)&naive->direct, &naive->direct_capacity, naive->direct_count + 1, sizeof direct);
    naive->direct[naive->direct_count++] = direct;
    note_direct(naive, VR_RECORD_SEGMENT_ALLOC, &direct);
    note_direct(naive, VR_RECORD_ALLOC, &direct);
    *address = direct.address;
    return VRAM_OK;
}

// Returns whether a request counts as captured: since 2.13, if its stream takes part in a capture; before that, if any stream of the device
// does.
bool naive_request_captures(const struct naive *naive, const struct naive_device *device, uint64_t stream) {
    return naive->pytorch >= 213 ? naive_capture_of(naive, stream) != 0 : device->capture_count != 0;
}

// Finds memory when it is short. A captured request does not release memory to the driver, and memory known to a graph is never released.
static struct naive_block *in_need(struct naive *naive, struct naive_device *device, struct naive_request *request) {
    struct naive_block *block = borrow(naive, device, request);
    if (block || naive_request_captures(naive, device, request->stream)) return block;
    const bool kept = request->pool && request->pool->captured;
    if (!kept && naive_release_available(naive, device, request)) block = naive_new_memory(naive, device, request);
    if (block || request->rejected) return block;
    naive_release_cached(naive, device, true);
    device->stats.num_alloc_retries++;
    if (naive->options.search_after_wait) block = search(naive, device, request, naive_expandable(naive, request->pool));
    return block ? block : naive_new_memory(naive, device, request);
}

// Returns the block that the other stream's own search would find among its whole segments; NULL if there is none, or its options keep it.
static struct naive_block *whole_segment_of(const struct naive *naive, const struct naive_device *device, struct naive_request there) {
    const uint64_t limit = naive->options.max_split_bytes;
    struct naive_block *block = candidate(naive, device, &there, false, NULL);
    while (block && (block->prev || block->next)) block = candidate(naive, device, &there, false, block);
    if (!block) return NULL;
    if (there.rounded_bytes < limit) return block->size_bytes < limit ? block : NULL;
    return block->size_bytes < there.rounded_bytes + naive->options.non_split_rounding_bytes ? block : NULL;
}

// reclaim_streams: moves the smallest free segment of another stream to this stream; if several are equal, the oldest.
static struct naive_block *reclaim(struct naive *naive, struct naive_device *device, const struct naive_request *request) {
    struct naive_block *best = NULL;
    size_t captures = 0;
    for (uint32_t d = 0; d < naive->device_count; d++) captures += naive->device[d].capture_count;
    if (!naive->options.reclaim || naive_expandable(naive, request->pool) || captures) return NULL;
    for (size_t i = 0; i < device->segment_count; i++) {
        struct naive_request there = *request;
        there.stream = device->segments[i]->stream;
        struct naive_block *block = there.stream == request->stream ? NULL : whole_segment_of(naive, device, there);
        if (!block) continue;
        const bool equal = best && best->size_bytes == block->size_bytes;
        if (!best || block->size_bytes < best->size_bytes || (equal && block->segment->order < best->segment->order)) best = block;
    }
    if (!best) return NULL;
    struct naive_segment *segment = best->segment;
    wait_for(naive, device, request->stream, segment->stream, 0);
    naive_note(naive, device, VR_RECORD_SEGMENT_FREE, segment->address, segment->size_bytes, segment->stream);
    segment->stream = request->stream;
    naive_note(naive, device, VR_RECORD_SEGMENT_ALLOC, segment->address, segment->size_bytes, segment->stream);
    return best;
}

// Aligns a large request in an expandable segment, if the block has room, as torch_npu does.
static uint64_t aligned_begin(const struct naive *naive, const struct naive_block *block, const struct naive_request *request) {
    const uint64_t step = 1024 * (uint64_t)naive->options.alignment_kib;
    if (!naive_expandable(naive, block->segment->pool) || step == 0 || request->rounded_bytes < 2 * VR_MIB) return block->address;
    const uint64_t begin = (block->address + step - 1) / step * step;
    return begin + request->rounded_bytes <= block->address + block->size_bytes ? begin : block->address;
}

static enum vram_status serve(struct naive *naive, struct naive_device *device, struct naive_pool *pool, uint64_t size_bytes,
                              uint64_t stream, uint64_t *address) {
    naive_complete_frees(naive, device, stream);
    struct naive_request request = naive_make_request(naive, pool ? pool : naive_route_of(naive, device, stream), size_bytes, stream);
    if (request.pool && naive_capture_of(naive, stream) != 0) request.pool->captured = true;
    struct naive_block *block = find_free(naive, device, &request);
    if (!block) block = reclaim(naive, device, &request);
    if (!block) {
        const bool collects = device->limit_bytes != NAIVE_NO_LIMIT && naive->options.gc_threshold > 0;
        if (collects && !naive_request_captures(naive, device, stream)) naive_collect_garbage(naive, device);
        block = naive_new_memory(naive, device, &request);
    }
    if (!block && !request.rejected) block = in_need(naive, device, &request);
    if (!block) return fail(naive, device, &request);
    block = naive_cut_below(device, block, aligned_begin(naive, block, &request));
    naive_hand_out(naive, device, &request, block, naive_should_split(naive, block, &request));
    *address = block->address;
    return VRAM_OK;
}

enum vram_status naive_malloc(struct naive *naive, uint32_t ordinal, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    struct naive_device *device = &naive->device[ordinal];
    if (size_bytes == 0) {
        *address = 0;
        return VRAM_OK;
    }
    if (size_bytes >= (uint64_t)1 << 60) return VRAM_OUT_OF_MEMORY;
    if (!naive->caching) return direct_malloc(naive, device, size_bytes, stream, address);
    return serve(naive, device, NULL, size_bytes, stream, address);
}

enum vram_status naive_pool_malloc(struct naive *naive, struct naive_pool *pool, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    if (size_bytes == 0) {
        *address = 0;
        return VRAM_OK;
    }
    if (size_bytes >= (uint64_t)1 << 60) return VRAM_OUT_OF_MEMORY;
    return serve(naive, &naive->device[pool->device], pool, size_bytes, stream, address);
}

static struct naive_block *find_allocated(struct naive *naive, uint64_t address, struct naive_device **device) {
    for (uint32_t d = 0; d < naive->device_count; d++) {
        *device = &naive->device[d];
        for (size_t i = 0; i < (*device)->segment_count; i++) {
            const struct naive_segment *segment = (*device)->segments[i];
            if (address < segment->address || address - segment->address >= segment->size_bytes) continue;
            for (struct naive_block *block = segment->first; block; block = block->next)
                if (block->address == address && block->state == NAIVE_ALLOCATED) return block;
        }
    }
    return NULL;
}

enum vram_status naive_free(struct naive *naive, uint64_t address) {
    if (address == 0) return VRAM_OK;
    struct naive_direct *direct = find_direct(naive, address);
    if (direct) {
        naive->device[direct->device].used_bytes -= direct->size_bytes;
        note_direct(naive, VR_RECORD_FREE_REQUESTED, direct);
        note_direct(naive, VR_RECORD_FREE_COMPLETED, direct);
        note_direct(naive, VR_RECORD_SEGMENT_FREE, direct);
        *direct = naive->direct[--naive->direct_count];
        return VRAM_OK;
    }
    struct naive_device *device = NULL;
    struct naive_block *block = find_allocated(naive, address, &device);
    if (!block) return VRAM_INVALID_POINTER;
    naive_request_free(naive, device, block);
    return VRAM_OK;
}

enum vram_status naive_record_stream(struct naive *naive, uint64_t address, uint64_t stream) {
    if (address == 0 || find_direct(naive, address)) return VRAM_OK;
    struct naive_device *device = NULL;
    struct naive_block *block = find_allocated(naive, address, &device);
    if (!block) return VRAM_INVALID_POINTER;
    if (block->segment->stream == stream) return VRAM_OK;
    const bool captured = naive_member_of(device, stream, NULL) != NULL;
    for (size_t i = 0; i < block->use_count; i++) {
        if (block->uses[i] != stream) continue;
        block->use_captured[i] = block->use_captured[i] && captured;
        return VRAM_OK;
    }
    if (block->use_count == NAIVE_USES) abort(); // the tests use fewer streams
    block->use_captured[block->use_count] = captured;
    block->uses[block->use_count++] = stream;
    return VRAM_OK;
}

void naive_empty_cache_device(struct naive *naive, uint32_t device) {
    naive_release_cached(naive, &naive->device[device], naive->device[device].capture_count == 0);
}

void naive_empty_cache(struct naive *naive) {
    for (uint32_t d = 0; d < naive->device_count; d++) naive_empty_cache_device(naive, d);
}

// --- settings -----------------------------------------------------------------------------------------------------------------

void naive_configure(struct naive *naive, const struct naive_conf *conf) {
    struct naive_options *options = &naive->options;
    if (conf->has_large_segment) options->large_segment_bytes = conf->large_segment_bytes;
    // Every parse resets these; the others keep their values.
    if (conf->has_reclaim) options->reclaim = conf->reclaim;
    if (conf->has_share) options->share = conf->share;
    if (conf->has_search) options->search_after_wait = conf->search_after_wait;
    if (conf->has_reuse_oversize) options->reuse_oversize = conf->reuse_oversize;
    options->max_split_bytes = conf->has_max_split ? conf->max_split_bytes : UINT64_MAX;
    if (conf->padding_bytes) options->padding_bytes = conf->padding_bytes;
    if (conf->has_alignment) options->alignment_kib = conf->alignment_kib;
    options->non_split_rounding_bytes = conf->has_non_split_rounding ? conf->non_split_rounding_bytes : options->large_segment_bytes;
    options->gc_threshold = conf->has_gc ? conf->gc_threshold : 0;
    for (size_t i = 0; i < NAIVE_BUCKETS; i++) options->divisions[i] = conf->has_divisions ? conf->divisions[i] : 0;
    if (conf->has_expandable) options->expandable = conf->expandable;
    if (conf->has_fraction) options->fraction = conf->fraction;
    if (conf->has_throw) options->throw_on_oom = conf->throw_on_oom;
    if (conf->has_reserve) options->reserve_fraction = conf->reserve_fraction;
    if (conf->has_reuse) options->reuse = conf->reuse;
}

void naive_set_fraction(struct naive *naive, uint32_t device, double fraction) {
    const uint64_t total = naive->device[device].memory_bytes;
    naive->device[device].limit_bytes = fraction < 1 ? (uint64_t)round(fraction * (double)total) : NAIVE_NO_LIMIT;
}

void naive_set_limit(struct naive *naive, uint32_t device, uint64_t limit_bytes) { naive->device[device].limit_bytes = limit_bytes; }

void naive_set_caching(struct naive *naive, bool enabled) { naive->caching = enabled; }

struct naive *naive_create(const struct naive_info *info) {
    struct naive *naive = calloc(1, sizeof *naive);
    if (!naive) abort();
    naive->device_count = info->device_count;
    naive->pytorch = info->conf.pytorch;
    naive->oldest_first = info->tie_break == VRAM_TIE_AS_PYTORCH ? naive->pytorch >= 213 : info->tie_break == VRAM_TIE_OLDEST_SEGMENT;
    naive->caching = true;
    naive->addresses = info->addresses;
    naive->next_alloc = 0x300000000000;
    naive->next_reserve = 0x400000000000;
    naive->options.large_segment_bytes = 20 * VR_MIB;
    naive->options.fraction = 1;
    naive->options.search_after_wait = true;
    naive_configure(naive, &info->conf);
    for (uint32_t d = 0; d < naive->device_count; d++) {
        struct naive_device *device = &naive->device[d];
        device->ordinal = d;
        device->memory_bytes = info->memory_bytes;
        device->stats.max_split_size = naive->options.max_split_bytes == UINT64_MAX ? -1 : (int64_t)naive->options.max_split_bytes;
        naive_set_fraction(naive, d, naive->options.fraction);
    }
    return naive;
}

static void destroy_device(struct naive_device *device) {
    for (size_t i = 0; i < device->segment_count; i++) {
        for (struct naive_block *block = device->segments[i]->first, *next; block; block = next) {
            next = block->next;
            free(block);
        }
        free(device->segments[i]);
    }
    free(device->segments);
    free(device->events);
    free(device->routes);
    free(device->deferred);
}

void naive_destroy(struct naive *naive) {
    if (!naive) return;
    for (uint32_t d = 0; d < naive->device_count; d++) destroy_device(&naive->device[d]);
    for (size_t i = 0; i < naive->pool_count; i++) free(naive->pools[i]);
    free(naive->pools);
    free(naive->waits);
    free(naive->direct);
    free(naive->records);
    free(naive->picture);
    free(naive);
}
