// The naive model: private pools, routes into them, exact addresses, checkpoints.
#include "model/naive_inside.h"

#include <stdlib.h>
#include <string.h>

// --- lifetime ----------------------------------------------------------------------------------------------------------------

struct naive_pool *naive_pool_create(struct naive *naive, uint32_t device, const struct naive_pool_info *info) {
    struct naive_pool *pool = calloc(1, sizeof *pool);
    if (!pool) abort();
    uint64_t number = 1;
    for (size_t i = 0; i < naive->pool_count; i++) number += naive->pools[i]->info.for_graph == info->for_graph;
    *pool = (struct naive_pool){.naive = naive, .device = device, .info = *info, .references = 1, .own_next = info->own_base};
    pool->id = info->for_graph ? (struct vram_pool_id){number, 0} : (struct vram_pool_id){0, number};
    naive_make_room((void **)&naive->pools, &naive->pool_capacity, naive->pool_count + 1, sizeof *naive->pools);
    naive->pools[naive->pool_count++] = pool;
    return pool;
}

void naive_pool_retain(struct naive_pool *pool) { pool->references++; }
static void empty_at_end(struct naive *naive, struct naive_device *device, const struct naive_pool *pool) {
    if (!device->capture_count) {
        naive_convert(naive, device);
        naive_finish_pool(naive, device, pool);
    }
    naive_release_pool(naive, device, pool, true);
    naive_release_pool(naive, device, pool, false);
}

void naive_pool_release(struct naive_pool *pool) {
    struct naive *naive = pool->naive;
    struct naive_device *device = &naive->device[pool->device];
    pool->references--;
    if (!pool->references && !pool->info.for_graph && naive->pytorch >= 206) empty_at_end(naive, device, pool);
    naive_bury(naive, device);
}
struct vram_pool_id naive_pool_id(const struct naive_pool *pool) {
    return pool->id;
}
uint32_t naive_pool_references(const struct naive_pool *pool) { return pool->references; }

// --- routes -------------------------------------------------------------------------------------------------------------------

void naive_pool_begin(struct naive *naive, struct naive_pool *pool, const struct vram_route *route) {
    struct naive_device *device = &naive->device[pool->device];
    naive_make_room((void **)&device->routes, &device->route_capacity, device->route_count + 1, sizeof *device->routes);
    device->routes[device->route_count++] = (struct naive_route){.pool = pool, .route = *route};
    pool->references++;
}

enum vram_status naive_pool_end(struct naive *naive, struct naive_pool *pool, const struct vram_route *route) {
    struct naive_device *device = &naive->device[pool->device];
    for (size_t i = device->route_count; i-- > 0;) {
        const struct naive_route *open = &device->routes[i];
        const bool by_stream = route->kind == VRAM_ROUTE_STREAM || route->kind == VRAM_ROUTE_CAPTURE;
        if (open->pool != pool || open->route.kind != route->kind || (by_stream && open->route.stream != route->stream)) continue;
        device->route_count--;
        memmove(&device->routes[i], &device->routes[i + 1], (device->route_count - i) * sizeof *device->routes);
        pool->references--;
        naive_bury(naive, device);
        return VRAM_OK;
    }
    return VRAM_INVALID_ARGUMENT;
}

struct naive_pool *naive_route_of(const struct naive *naive, const struct naive_device *device, uint64_t stream) {
    for (size_t i = device->route_count; i-- > 0;) {
        const struct vram_route *route = &device->routes[i].route;
        const uint64_t capture = route->kind == VRAM_ROUTE_CAPTURE ? naive_capture_of(naive, route->stream) : 0;
        if (route->kind == VRAM_ROUTE_STREAM && route->stream != stream) continue;
        if (route->kind == VRAM_ROUTE_CAPTURE && route->stream != stream && (!capture || naive_capture_of(naive, stream) != capture))
            continue;
        return device->routes[i].pool; // there is only one thread
    }
    return NULL;
}

void naive_complete_frees(struct naive *naive, struct naive_device *device, uint64_t stream) {
    if (naive_member_of(device, stream, NULL)) {
        if (naive->options.reuse) naive_reuse(naive, device, stream);
        return;
    }
    if (naive_request_captures(naive, device, stream)) return;
    naive_convert(naive, device);
    naive_process_events(naive, device, false);
}

void naive_pool_trim(struct naive *naive, struct naive_pool *pool) {
    struct naive_device *device = &naive->device[pool->device];
    if (pool->captured) return;
    if (!device->capture_count) {
        naive_convert(naive, device);
        naive_process_events(naive, device, false);
    }
    naive_release_pool(naive, device, pool, true);
    naive_release_pool(naive, device, pool, false);
}

void naive_pool_stats(const struct naive *naive, const struct naive_pool *pool, struct vram_pool_stats *stats) {
    const struct naive_device *device = &naive->device[pool->device];
    *stats = (struct vram_pool_stats){.segments = 0};
    memcpy(stats->reserved_bytes, pool->reserved, sizeof stats->reserved_bytes);
    for (size_t i = 0; i < device->segment_count; i++) {
        if (device->segments[i]->pool != pool) continue;
        bool mapped = false;
        for (const struct naive_block *block = device->segments[i]->first; block; block = block->next) {
            mapped = mapped || block->state != NAIVE_UNMAPPED;
            if (block->state == NAIVE_FREE) stats->free_bytes += block->size_bytes;
            if (block->state == NAIVE_ALLOCATED) stats->allocated_bytes += block->size_bytes;
            if (block->state == NAIVE_ALLOCATED) stats->blocks++;
            if (block->state == NAIVE_ALLOCATED || block->state == NAIVE_PENDING) stats->active_bytes += block->size_bytes;
        }
        stats->segments += mapped;
    }
}

// --- exact addresses -----------------------------------------------------------------------------------------------------------

// Returns the free block of the request's stream and pool that contains [address, address + rounded).
static struct naive_block *free_around(const struct naive_device *device, const struct naive_request *request, uint64_t address) {
    for (size_t i = 0; i < device->segment_count; i++) {
        const struct naive_segment *segment = device->segments[i];
        if (segment->pool != request->pool || segment->stream != request->stream || segment->small != request->small) continue;
        for (struct naive_block *block = segment->first; block; block = block->next) {
            if (block->state != NAIVE_FREE || address < block->address) continue;
            const uint64_t offset = address - block->address;
            if (offset < block->size_bytes && block->size_bytes - offset >= request->rounded_bytes) return block;
        }
    }
    return NULL;
}

struct naive_block *naive_cut_below(struct naive_device *device, struct naive_block *block, uint64_t address) {
    if (block->address == address) return block;
    struct vram_stats *stats = &device->stats;
    const bool small = block->segment->small;
    if (!block->segment->page_bytes) {
        const bool was_split = block->prev || block->next;
        naive_rise(stats->inactive_split, small, was_split ? 1 : 2);
        if (!was_split) naive_rise(stats->inactive_split_bytes, small, (int64_t)block->size_bytes);
    }
    block->counter = device->search_counter[small];
    return naive_cut(block, address - block->address);
}

enum vram_status naive_malloc_at(struct naive *naive, uint32_t ordinal, uint64_t size_bytes, uint64_t stream, uint64_t address) {
    struct naive_device *device = &naive->device[ordinal];
    if (size_bytes == 0 || size_bytes >= (uint64_t)1 << 60 || address % NAIVE_MIN_BLOCK || !naive->caching) return VRAM_INVALID_ARGUMENT;
    naive_complete_frees(naive, device, stream);
    const struct naive_request request = naive_make_request(naive, naive_route_of(naive, device, stream), size_bytes, stream);
    struct naive_block *block = free_around(device, &request, address);
    if (!block) return VRAM_INVALID_ARGUMENT;
    block = naive_cut_below(device, block, address);
    naive_hand_out(naive, device, &request, block, naive_should_split(naive, block, &request));
    return VRAM_OK;
}

// --- checkpoints ---------------------------------------------------------------------------------------------------------------

struct saved {
    uint64_t address, size_bytes, stream;
    const struct naive_segment *segment;
    bool small, live;
};

struct naive_checkpoint {
    size_t count;
    struct saved blocks[];
};

size_t naive_checkpoint_blocks(const struct naive_checkpoint *checkpoint) {
    size_t count = 0;
    for (size_t i = 0; i < checkpoint->count; i++) count += checkpoint->blocks[i].live;
    return count;
}

static int by_address(const void *left, const void *right) {
    const uint64_t a = ((const struct saved *)left)->address, b = ((const struct saved *)right)->address;
    return a < b ? -1 : a > b;
}

static size_t count_pieces(const struct naive_device *device, const struct naive_pool *pool) {
    size_t count = 0;
    for (size_t i = 0; i < device->segment_count; i++)
        for (const struct naive_block *block = device->segments[i]->first; block; block = block->next)
            count += device->segments[i]->pool == pool && block->state != NAIVE_UNMAPPED;
    return count;
}

static struct naive_checkpoint *save(const struct naive_device *device, const struct naive_pool *pool) {
    struct naive_checkpoint *made = calloc(1, sizeof *made + count_pieces(device, pool) * sizeof *made->blocks);
    if (!made) abort();
    for (size_t i = 0; i < device->segment_count; i++) {
        const struct naive_segment *segment = device->segments[i];
        for (const struct naive_block *block = segment->first; block && segment->pool == pool; block = block->next) {
            if (block->state == NAIVE_UNMAPPED) continue;
            made->blocks[made->count++] = (struct saved){.address = block->address,
                                                         .size_bytes = block->size_bytes,
                                                         .stream = segment->stream,
                                                         .segment = segment,
                                                         .small = segment->small,
                                                         .live = block->state == NAIVE_ALLOCATED};
        }
    }
    qsort(made->blocks, made->count, sizeof *made->blocks, by_address);
    return made;
}

// Settles frees that a finished capture postponed.
static void settle(struct naive *naive, struct naive_device *device) {
    if (!device->capture_count) naive_convert(naive, device);
}

enum vram_status naive_pool_checkpoint(struct naive *naive, struct naive_pool *pool, struct naive_checkpoint **checkpoint) {
    struct naive_device *device = &naive->device[pool->device];
    settle(naive, device);
    *checkpoint = save(device, pool);
    return VRAM_OK;
}

// Returns the bytes of the saved block's range that are still mapped memory of the segment.
static uint64_t bytes_in(const struct naive_segment *segment, const struct saved *saved) {
    uint64_t bytes = 0;
    for (const struct naive_block *block = segment->first; block; block = block->next) {
        const uint64_t begin = block->address > saved->address ? block->address : saved->address;
        const uint64_t block_end = block->address + block->size_bytes, saved_end = saved->address + saved->size_bytes;
        const uint64_t end = block_end < saved_end ? block_end : saved_end;
        if (block->state != NAIVE_UNMAPPED && begin < end) bytes += end - begin;
    }
    return bytes;
}

// Returns whether the saved block's whole range is still mapped, in one segment of its pool, stream and size class.
static bool is_there(const struct naive_device *device, const struct naive_pool *pool, const struct saved *saved) {
    for (size_t i = 0; i < device->segment_count; i++) {
        const struct naive_segment *segment = device->segments[i];
        if (segment->pool != pool || segment->stream != saved->stream || segment->small != saved->small) continue;
        if (bytes_in(segment, saved) == saved->size_bytes) return true;
    }
    return false;
}

static struct naive_block *block_at(const struct naive_device *device, uint64_t address) {
    for (size_t s = 0; s < device->segment_count; s++)
        for (struct naive_block *block = device->segments[s]->first; block; block = block->next)
            if (block->address == address) return block;
    abort();
}

static void free_at(struct naive *naive, struct naive_device *device, uint64_t address) {
    naive_request_free(naive, device, block_at(device, address));
}

// Returns whether ordering streams is forbidden because it would change a capture's graph.
static bool order_is_forbidden(const struct naive *naive, const struct naive_device *device, const struct naive_pool *pool) {
    size_t captures = 0;
    for (uint32_t d = 0; d < naive->device_count; d++) captures += naive->device[d].capture_count;
    for (size_t s = 0; s < device->segment_count && captures; s++) {
        if (device->segments[s]->pool != pool) continue;
        for (const struct naive_block *block = device->segments[s]->first; block; block = block->next)
            if (block->state == NAIVE_PENDING || (block->state == NAIVE_ALLOCATED && block->use_count)) return true;
    }
    return false;
}

// Returns whether a restore allocates the saved block: every live one, and a free one if that is possible.
static bool is_made(const struct naive_device *device, const struct naive_pool *pool, const struct saved *saved) {
    return saved->live || ((saved->small || saved->size_bytes > VR_MIB) && is_there(device, pool, saved));
}

static void make(struct naive *naive, struct naive_device *device, struct naive_pool *pool, const struct saved *saved) {
    const struct naive_request request = {
        .stream = saved->stream, .size_bytes = saved->size_bytes, .rounded_bytes = saved->size_bytes, .pool = pool, .small = saved->small};
    struct naive_block *block = naive_cut_below(device, free_around(device, &request, saved->address), saved->address);
    naive_hand_out(naive, device, &request, block, block->size_bytes > saved->size_bytes);
}

enum vram_status naive_pool_restore(struct naive *naive, struct naive_pool *pool, const struct naive_checkpoint *checkpoint) {
    struct naive_device *device = &naive->device[pool->device];
    settle(naive, device);
    for (size_t i = 0; i < checkpoint->count; i++)
        if (checkpoint->blocks[i].live && !is_there(device, pool, &checkpoint->blocks[i])) return VRAM_INVALID_ARGUMENT;
    if (order_is_forbidden(naive, device, pool)) return VRAM_INVALID_ARGUMENT;
    struct naive_checkpoint *all = save(device, pool);
    // Order uses first, then pending blocks: a stream that waits for another also waits for what that one waited for.
    for (size_t i = 0; i < all->count; i++)
        if (all->blocks[i].live) naive_order_uses(naive, device, block_at(device, all->blocks[i].address));
    naive_order_pending(naive, device, pool);
    for (size_t i = 0; i < all->count; i++)
        if (all->blocks[i].live) free_at(naive, device, all->blocks[i].address);
    free(all);
    const struct saved *saved = checkpoint->blocks;
    for (size_t from = 0, end; from < checkpoint->count; from = end) {
        for (end = from; end < checkpoint->count && saved[end].segment == saved[from].segment; end++)
            if (is_made(device, pool, &saved[end])) make(naive, device, pool, &saved[end]);
        for (size_t i = from; i < end; i++)
            if (!saved[i].live && is_made(device, pool, &saved[i])) free_at(naive, device, saved[i].address);
    }
    return VRAM_OK;
}
