// Queries of an allocator: statistics, information on an address, the list of all blocks.
#include "core/alloc.h"
#include "core/source/backend.h"
#include "core/source/source_ops.h"
#include "core/verifier.h"

enum vram_status vram_device_count(struct vram_allocator *allocator, uint32_t *count) {
    VR_REQUIRE(allocator && count);
    *count = (uint32_t)allocator->device_count;
    return VRAM_OK;
}

enum vram_status vram_memory_info(struct vram_allocator *allocator, uint32_t ordinal, uint64_t *free_bytes, uint64_t *total_bytes) {
    VR_REQUIRE(allocator && free_bytes && total_bytes);
    struct vr_device *device = NULL;
    VR_TRY(vr_device_get(allocator, ordinal, &device));
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    const vr_cu_result result = vr_driver_memory_info(allocator->driver, free_bytes, total_bytes);
    vr_context_leave(&guard);
    return vr_driver_status(result);
}

static void fill_stats(const struct vr_device_stats *from, struct vram_stats *stats) {
    vr_totals_report(&from->totals, stats);
    memcpy(stats->segment, from->segment, sizeof stats->segment);
    memcpy(stats->reserved_bytes, from->reserved, sizeof stats->reserved_bytes);
    stats->oversize_allocations = from->oversize_allocations;
    stats->oversize_segments = from->oversize_segments;
    stats->num_alloc_retries = from->num_alloc_retries;
    stats->num_ooms = from->num_ooms;
    stats->max_split_size = from->max_split_at_start;
    stats->num_sync_all_streams = from->num_sync_all_streams;
    stats->num_device_alloc = from->num_device_alloc;
    stats->num_device_free = from->num_device_free;
    stats->num_oom_rejections = from->num_oom_rejections;
    stats->moved_bytes = from->moved_bytes;
}

enum vram_status vram_get_stats(struct vram_allocator *allocator, uint32_t ordinal, struct vram_stats *stats) {
    VR_REQUIRE(allocator && stats);
    if (ordinal >= (uint32_t)allocator->device_count) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    *stats = (struct vram_stats){.max_split_size = -1};
    if (device == NULL) return VRAM_OK;
    vr_device_lock(device);
    if (allocator->backend->refresh != NULL) allocator->backend->refresh(device);
    fill_stats(&device->stats, stats);
    vr_device_unlock(device);
    return VRAM_OK;
}

static void for_each_plain_stat(struct vr_device *device, void (*change)(struct vram_stat *stat)) {
    for (int v = 0; v < VRAM_STAT_POOLS; v++) {
        change(&device->stats.segment[v]);
        change(&device->stats.reserved[v]);
    }
    change(&device->stats.oversize_allocations);
    change(&device->stats.oversize_segments);
    for (struct vram_pool *pool = device->pools; pool != NULL; pool = pool->next) {
        for (int v = 0; v < VRAM_STAT_POOLS; v++) change(&pool->reserved[v]);
    }
    size_t at = 0;
    for (struct vr_known_pool *known = NULL; (known = vr_known_pool_after(&device->known, known, &at)) != NULL;) {
        for (int v = 0; v < VRAM_STAT_POOLS; v++) change(&known->reserved[v]);
    }
}

static void reset_peak(struct vram_stat *stat) { stat->peak = stat->current; }
static void reset_accumulated(struct vram_stat *stat) { stat->allocated = stat->freed = 0; }

enum vram_status vram_reset_peak_stats(struct vram_allocator *allocator, uint32_t ordinal) {
    VR_REQUIRE(allocator);
    if (ordinal >= (uint32_t)allocator->device_count) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    if (device == NULL) return VRAM_OK;
    vr_device_lock(device);
    vr_totals_reset_peak(&device->stats.totals);
    for_each_plain_stat(device, reset_peak);
    vr_device_unlock(device);
    return VRAM_OK;
}

enum vram_status vram_reset_accumulated_stats(struct vram_allocator *allocator, uint32_t ordinal) {
    VR_REQUIRE(allocator);
    if (ordinal >= (uint32_t)allocator->device_count) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    if (device == NULL) return VRAM_OK;
    vr_device_lock(device);
    vr_totals_reset_accumulated(&device->stats.totals);
    for_each_plain_stat(device, reset_accumulated);
    device->stats.num_alloc_retries = device->stats.num_ooms = device->stats.num_sync_all_streams = 0;
    device->stats.num_device_alloc = device->stats.num_device_free = device->stats.num_oom_rejections = 0;
    device->stats.moved_bytes = 0;
    vr_device_unlock(device);
    return VRAM_OK;
}

// --- one address ----------------------------------------------------------------------------------------------------------------

static struct vram_block_info info_of_block(const struct vram_allocator *allocator, const struct vr_block *block) {
    const struct vr_segment *segment = vr_segment_at(allocator, block->segment);
    return (struct vram_block_info){
        .address = block->address,
        .size_bytes = vr_usable_size(allocator, block),
        .requested_bytes = vr_is_cached(block->state) ? 0 : block->requested,
        .segment_address = segment->address,
        .segment_bytes = segment->mapped,
        .stream = vr_shard_of(allocator, block)->stream,
        .device = segment->device,
        .expandable = segment->expandable != 0,
        .pool = vr_shard_of(allocator, block)->owner == NULL ? (struct vram_pool_id){0, 0} : vr_shard_of(allocator, block)->owner->id,
    };
}

static struct vram_block_info describe_raw(const struct vr_raw_block *raw) {
    return (struct vram_block_info){
        .address = raw->address,
        .size_bytes = raw->size,
        .requested_bytes = raw->size,
        .segment_address = raw->address,
        .segment_bytes = raw->size,
        .stream = raw->stream,
        .device = raw->device,
        .pool = raw->pool,
    };
}

enum vram_status vram_get_block_info(struct vram_allocator *allocator, uint64_t address, struct vram_block_info *info) {
    VR_REQUIRE(allocator && info);
    struct vr_raw_block raw;
    struct vr_device *device = NULL;
    const uint32_t block = vr_find_and_lock_device(allocator, address, &device);
    if (block != 0) {
        *info = info_of_block(allocator, vr_block_at(allocator, block));
        vr_device_unlock(device);
        return VRAM_OK;
    }
    if (!vr_raw_find(allocator, address, &raw)) return VRAM_INVALID_POINTER;
    *info = describe_raw(&raw);
    return VRAM_OK;
}

uint64_t vram_allocated_size(struct vram_allocator *allocator, uint64_t address) {
    if (allocator == NULL) return 0;
    struct vr_shard *shard = NULL;
    struct vr_raw_block raw;
    const uint32_t block = vr_find_and_lock(allocator, address, &shard);
    if (block == 0) return vr_raw_find(allocator, address, &raw) ? raw.size : 0;
    const uint64_t size = vr_usable_size(allocator, vr_block_at(allocator, block));
    vr_device_unlock_short(shard->device);
    return size;
}

bool vram_is_expandable(struct vram_allocator *allocator, uint64_t address) {
    if (allocator == NULL) return false;
    struct vr_shard *shard = NULL;
    const uint32_t block = vr_find_and_lock(allocator, address, &shard);
    if (block == 0) return false;
    const bool expandable = vr_segment_at(allocator, vr_block_at(allocator, block)->segment)->expandable != 0;
    vr_device_unlock_short(shard->device);
    return expandable;
}

// Takes only the device's mutex: segments change under the mutex and the device's lock together, so the mutex suffices to read them.
enum vram_status vram_expandable_segments(struct vram_allocator *allocator, uint32_t ordinal, struct vram_expandable_segment *segments,
                                          size_t capacity, size_t *count) {
    VR_REQUIRE(allocator && count && (segments || capacity == 0));
    if (ordinal >= (uint32_t)allocator->device_count) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    size_t found = 0;
    if (device != NULL) {
        vr_mutex_lock(&device->mutex);
        for (uint32_t number = vr_segment_first(device); number != 0; number = vr_segment_after(device, number)) {
            const struct vr_segment *segment = vr_segment_at(allocator, number);
            if (!segment->expandable || found++ >= capacity) continue;
            segments[found - 1] = (struct vram_expandable_segment){.stream = allocator->shards[segment->shard]->stream,
                                                                   .address = segment->address,
                                                                   .reserved_bytes = segment->size,
                                                                   .mapped_bytes = segment->mapped,
                                                                   .small_pool = segment->small != 0};
        }
        vr_mutex_unlock(&device->mutex);
    }
    *count = found;
    return VRAM_OK;
}

enum vram_status vram_get_cache_info(struct vram_allocator *allocator, uint32_t ordinal, struct vram_cache_info *info) {
    VR_REQUIRE(allocator && info);
    if (ordinal >= (uint32_t)allocator->device_count) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    *info = (struct vram_cache_info){0};
    if (device == NULL) return VRAM_OK;
    vr_device_lock(device);
    vr_source_count_free(device, &info->cached_bytes, &info->largest_free_bytes);
    for (uint32_t number = vr_segment_first(device); number != 0; number = vr_segment_after(device, number)) {
        for (uint32_t at = vr_segment_at(allocator, number)->first; at != 0; at = vr_block_at(allocator, at)->next) {
            const struct vr_block *block = vr_block_at(allocator, at);
            if (block->state != VR_FREE) continue;
            info->cached_bytes += block->size;
            info->free_blocks++;
            if (block->size > info->largest_free_bytes) info->largest_free_bytes = block->size;
        }
    }
    vr_device_unlock(device);
    return VRAM_OK;
}

static bool find_in_device(struct vr_device *device, uint64_t address, struct vram_block_info *info) {
    const struct vram_allocator *allocator = device->allocator;
    const uint32_t block = vr_block_containing(device, address);
    if (block == 0 || vr_block_at(allocator, block)->state != VR_ALLOCATED) return false;
    *info = info_of_block(allocator, vr_block_at(allocator, block));
    return true;
}

enum vram_status vram_find_block(struct vram_allocator *allocator, uint64_t address, struct vram_block_info *info) {
    VR_REQUIRE(allocator && info);
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device == NULL) continue;
        vr_device_lock(device);
        const bool found = find_in_device(device, address, info);
        vr_device_unlock(device);
        if (found) return VRAM_OK;
    }
    struct vr_raw_block raw;
    if (!vr_raw_find_containing(allocator, address, &raw)) return VRAM_INVALID_POINTER;
    *info = describe_raw(&raw);
    return VRAM_OK;
}

// --- all blocks -----------------------------------------------------------------------------------------------------------------

struct view_list {
    struct vram_block_view *views;
    size_t count;
    size_t views_capacity;
    uint32_t *stacks; // numbers of clients' contexts, with a reference to each
    size_t stack_count, stacks_capacity;
};

// Returns the client's context of the stack, referenced until the visits end. NULL for other stacks, or without memory to keep it.
static void *kept_context(struct view_list *list, uint32_t stack) {
    if (!vr_stack_is_foreign(stack) || VR_GROW(list, stacks, list->stack_count + 1) != VRAM_OK) return NULL;
    list->stacks[list->stack_count++] = vr_stack_keep(stack);
    return vr_foreign_stack_context(stack, NULL);
}

static enum vram_status add_view(const struct vr_device *device, const struct vr_segment *segment, const struct vr_block *block,
                                 struct view_list *list) {
    const struct vram_allocator *allocator = device->allocator;
    if (block->state == VR_HOLE) return VRAM_OK;
    VR_TRY(VR_GROW(list, views, list->count + 1));
    list->views[list->count++] = (struct vram_block_view){
        .block = info_of_block(allocator, block),
        .state = vr_is_cached(block->state)   ? VRAM_BLOCK_FREE
                 : block->state == VR_PENDING ? VRAM_BLOCK_PENDING
                                              : VRAM_BLOCK_ALLOCATED,
        .small_pool = block->small != 0,
        .age = vr_shard_of(allocator, block)->owner == NULL ? device->clock[block->small] - block->age_base : 0,
        .segment_number = segment->counter,
        .context = vr_is_cached(block->state) ? NULL : kept_context(list, block->stack),
        .segment_context = kept_context(list, segment->stack),
    };
    return VRAM_OK;
}

static enum vram_status add_pictured(const struct vr_device *device, const struct vr_segment *segment, struct view_list *list) {
    struct vr_block *blocks = NULL;
    size_t count = 0;
    VR_TRY(segment->source->blocks(device, segment, &blocks, &count));
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) status = add_view(device, segment, &blocks[i], list);
    free(blocks);
    return status;
}

static enum vram_status add_segment(const struct vr_device *device, const struct vr_segment *segment, struct view_list *list) {
    const struct vram_allocator *allocator = device->allocator;
    if (segment->source->blocks != NULL) return add_pictured(device, segment, list);
    for (uint32_t at = segment->first; at != 0; at = vr_block_at(allocator, at)->next)
        VR_TRY(add_view(device, segment, vr_block_at(allocator, at), list));
    return VRAM_OK;
}

static int infos_by_address(const void *a, const void *b) {
    const uint64_t x = ((const struct vram_block_view *)a)->block.address, y = ((const struct vram_block_view *)b)->block.address;
    return VR_ORDER(x, y);
}

// Adds the blocks outside the pools. The memory between them is unknown.
static enum vram_status add_raw(const struct vr_device *device, const struct vram_pool *only, struct view_list *list) {
    struct vr_raw_block *blocks = NULL;
    size_t count = 0;
    VR_TRY(vr_raw_copy(device, only, &blocks, &count));
    const enum vram_status status = VR_GROW(list, views, list->count + count);
    for (size_t i = 0; i < count && status == VRAM_OK; i++) {
        const enum vram_block_state state = blocks[i].postponed ? VRAM_BLOCK_PENDING : VRAM_BLOCK_ALLOCATED;
        void *context = kept_context(list, blocks[i].stack);
        list->views[list->count++] =
            (struct vram_block_view){.block = describe_raw(&blocks[i]), .state = state, .context = context, .segment_context = context};
    }
    free(blocks);
    if (count != 0 && status == VRAM_OK) qsort(list->views, list->count, sizeof *list->views, infos_by_address);
    return status;
}

// Lists the blocks of one private pool, or of all pools if `only` is NULL.
static enum vram_status list_views(const struct vr_device *device, const struct vram_pool *only, struct view_list *list) {
    const struct vram_allocator *allocator = device->allocator;
    for (uint32_t number = vr_segment_first(device); number != 0; number = vr_segment_after(device, number)) {
        const struct vr_segment *segment = vr_segment_at(allocator, number);
        if (only != NULL && allocator->shards[segment->shard]->owner != only) continue;
        VR_TRY(add_segment(device, segment, list));
    }
    return add_raw(device, only, list);
}

static enum vram_status walk_blocks(struct vr_device *device, const struct vram_pool *only, vram_block_visitor visit, void *user) {
    struct view_list list = {0};
    vr_device_lock(device);
    const enum vram_status status = list_views(device, only, &list);
    vr_device_unlock(device);
    for (size_t i = 0; status == VRAM_OK && i < list.count && visit(&list.views[i], user); i++) {
    }
    for (size_t i = 0; i < list.stack_count; i++) vr_stack_drop(list.stacks[i]);
    free(list.stacks);
    free(list.views);
    return status;
}

enum vram_status vram_walk(struct vram_allocator *allocator, uint32_t ordinal, vram_block_visitor visit, void *user) {
    VR_REQUIRE(allocator);
    if (ordinal >= (uint32_t)allocator->device_count || visit == NULL) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    return device == NULL ? VRAM_OK : walk_blocks(device, NULL, visit, user);
}

enum vram_status vram_pool_walk(struct vram_pool *pool, vram_block_visitor visit, void *user) {
    VR_REQUIRE(pool);
    return visit == NULL ? VRAM_INVALID_ARGUMENT : walk_blocks(pool->device, pool, visit, user);
}
