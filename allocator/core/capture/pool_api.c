// Implements vram/pool.h: private pools for programs.
#include "core/capture/private.h"
#include "base/text.h"
#include "core/capture/captures.h"
#include "core/release.h"
#include "core/alloc.h"
#include "core/source/backend.h"
#include "core/source/source_ops.h"

// --- lifetime ---------------------------------------------------------------------------------------------------------------------------

static bool is_default(struct vram_pool_id id) { return id.first == 0 && id.second == 0; }

static struct vram_pool_id next_id(struct vram_allocator *allocator, bool for_graph) {
    const uint64_t number = atomic_fetch_add_explicit(&allocator->pools_made[for_graph ? 0 : 1], 1, memory_order_relaxed) + 1;
    return for_graph ? (struct vram_pool_id){number, 0} : (struct vram_pool_id){0, number};
}

// Raises the counter to at least `number`, so that ids chosen later exceed those that clients chose.
static void raise_to(_Atomic uint64_t *counter, uint64_t number) {
    uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
    while (before < number &&
           !atomic_compare_exchange_weak_explicit(counter, &before, number, memory_order_relaxed, memory_order_relaxed)) {
    }
}

static enum vram_status enlist_pool(struct vr_device *device, struct vram_pool *made) {
    VR_TRY(vr_private_enlist(made));
    raise_to(&device->allocator->pools_made[0], made->id.first);
    raise_to(&device->allocator->pools_made[1], made->id.second);
    return VRAM_OK;
}

enum vram_status vram_pool_create(struct vram_allocator *allocator, uint32_t ordinal, const struct vram_pool_options *options,
                                  struct vram_pool **pool) {
    VR_REQUIRE(allocator && pool);
    static const struct vram_pool_options defaults;
    if (options == NULL) options = &defaults;
    if (options->allocate != NULL && options->deallocate == NULL) return VRAM_INVALID_ARGUMENT;
    if (options->tag != NULL && strlen(options->tag) >= VRAM_TAG_BYTES) return VRAM_INVALID_ARGUMENT;
    if (options->allocate != NULL && !allocator->backend->has_blocks) return VRAM_UNSUPPORTED;
    struct vr_device *device = NULL;
    VR_TRY(vr_device_get(allocator, ordinal, &device));
    struct vram_pool *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->device = device;
    made->options = *options;
    if (options->tag != NULL) memcpy(made->tag, options->tag, strlen(options->tag) + 1);
    made->options.tag = made->tag;
    made->references = 1;
    made->id = is_default(options->id) ? next_id(allocator, options->for_graph) : options->id;
    vr_device_lock(device);
    const enum vram_status status = enlist_pool(device, made);
    vr_device_unlock(device);
    if (status == VRAM_OK) {
        *pool = made;
    } else {
        free(made);
    }
    return status;
}

enum vram_status vram_pool_find(struct vram_allocator *allocator, uint32_t ordinal, struct vram_pool_id id, struct vram_pool **pool) {
    VR_REQUIRE(allocator && pool);
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    if (device == NULL) return VRAM_INVALID_ARGUMENT;
    vr_device_lock(device);
    struct vram_pool *found = vr_private_by_id(device, id);
    if (found != NULL && found->references == 0) found = NULL;
    if (found != NULL) vr_private_retain(found);
    vr_device_unlock(device);
    if (found == NULL) return VRAM_INVALID_ARGUMENT;
    *pool = found;
    return VRAM_OK;
}

void vram_pool_set_use_on_oom(struct vram_pool *pool, bool use_on_oom) {
    if (pool == NULL) return;
    vr_device_lock(pool->device);
    pool->options.use_on_oom = use_on_oom;
    vr_device_unlock(pool->device);
}

void vram_pool_set_no_split(struct vram_pool *pool, bool no_split) {
    if (pool == NULL) return;
    vr_device_lock(pool->device);
    pool->options.no_split = no_split;
    vr_pool_apply_options(pool);
    vr_device_unlock(pool->device);
}

enum vram_status vram_pool_set_tag(struct vram_pool *pool, const char *tag) {
    VR_REQUIRE(pool);
    if (tag == NULL) tag = "";
    if (strlen(tag) >= VRAM_TAG_BYTES) return VRAM_INVALID_ARGUMENT;
    vr_device_lock(pool->device);
    memcpy(pool->tag, tag, strlen(tag) + 1);
    vr_pool_apply_options(pool);
    vr_device_unlock(pool->device);
    return VRAM_OK;
}

size_t vram_pool_tag(const struct vram_pool *pool, char *tag, size_t capacity) {
    struct vr_sink sink = vr_sink_begin(tag, capacity);
    if (pool == NULL) return sink.length;
    vr_device_lock(pool->device);
    vr_sink_printf(&sink, "%s", pool->tag);
    vr_device_unlock(pool->device);
    return sink.length;
}

void vram_pool_retain(struct vram_pool *pool) {
    if (pool == NULL) return;
    struct vr_device *device = pool->device;
    vr_device_lock(device);
    vr_private_retain(pool);
    vr_device_unlock(device);
}

// Gives the cache of a user's pool, not of a graph pool, back to the driver when its last reference is dropped. What fails is retried with
// the rest of the cache.
static enum vram_status empty_at_end(struct vram_pool *pool) {
    struct vr_device *device = pool->device;
    enum vram_status status = VRAM_OK;
    if (!vr_device_captures(device)) {
        status = vr_deferred_convert(device);
        const enum vram_status waited = vr_fences_wait_pool(device, pool);
        if (status == VRAM_OK) status = waited;
    }
    const enum vram_status released = vr_release_pool(pool);
    return status == VRAM_OK ? released : status;
}

void vram_pool_release(struct vram_pool *pool) {
    if (pool == NULL) return;
    struct vr_device *device = pool->device;
    struct vr_context_guard guard;
    const bool may_empty = device->allocator->pytorch >= VR_PYTORCH_POOL_END_EMPTIES && !pool->options.for_graph &&
                           !pool->options.keep_cache && device->allocator->backend->has_blocks &&
                           vr_context_enter(device, &guard) == VRAM_OK;
    if (may_empty) {
        vr_gather(device, VR_LEVEL_ALL, 0);
        vr_device_lock_guarded(device, &guard);
    } else {
        vr_device_lock(device);
    }
    vr_private_drop(pool);
    if (may_empty && pool->references == 0) (void)!empty_at_end(pool);
    vr_private_bury_one(pool);
    vr_device_unlock(device);
    if (may_empty) vr_context_leave(&guard);
}

struct vram_pool_id vram_get_pool_id(const struct vram_pool *pool) {
    if (pool == NULL) return (struct vram_pool_id){0, 0};
    return pool->id;
}

uint32_t vram_pool_references(const struct vram_pool *pool) {
    if (pool == NULL) return 0;
    struct vr_device *device = pool->device;
    vr_device_lock(device);
    const uint32_t references = pool->references;
    vr_device_unlock(device);
    return references;
}

// --- routes ---------------------------------------------------------------------------------------------------------------------------

enum vram_status vram_pool_begin(struct vram_pool *pool, const struct vram_route *route) {
    VR_REQUIRE(pool && route);
    if ((unsigned)route->kind > VRAM_ROUTE_FILTER) return VRAM_INVALID_ARGUMENT;
    if (route->kind == VRAM_ROUTE_FILTER && route->accepts == NULL) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = pool->device;
    vr_device_lock(device);
    const enum vram_status status = vr_route_open(pool, route);
    vr_device_unlock(device);
    return status;
}

static bool any_mark(const struct vr_captures *captures) {
    for (size_t i = 0; i < captures->count; i++) {
        if (captures->items[i].pool == NULL) return true;
    }
    return captures->mark_ended;
}

// Closes a route. If captures were marked, the route belonged to one that the driver has ended by now; with
// graph_capture_record_stream_reuse its deferred frees are completed, as at the end of vram's own captures. PyTorch ends the mark before
// the route since 2.13; vram's plug-in for older versions ends it after.
static enum vram_status end_marked(struct vram_pool *pool, const struct vram_route *route) {
    struct vr_device *device = pool->device;
    struct vr_context_guard guard;
    enum vram_status status = vr_context_enter(device, &guard);
    const bool entered = status == VRAM_OK;
    vr_gather(device, VR_LEVEL_ALL, 0);
    if (entered) vr_device_lock_guarded(device, &guard);
    if (!entered) vr_device_lock(device);
    const bool closed = vr_route_close(pool, route), settles = device->options.graph_capture_record_stream_reuse;
    if (!settles || !any_mark(&device->captures)) {
        status = VRAM_OK; // no driver call is needed
    } else if (closed && entered) {
        status = vr_deferred_convert_pool(device, pool);
    }
    if (closed) vr_private_bury_one(pool);
    vr_device_unlock(device);
    if (entered) vr_context_leave(&guard);
    return closed ? status : VRAM_INVALID_ARGUMENT;
}

enum vram_status vram_pool_end(struct vram_pool *pool, const struct vram_route *route) {
    VR_REQUIRE(pool && route);
    struct vr_device *device = pool->device;
    const bool deferred = (atomic_load_explicit(&device->gate, memory_order_relaxed) & VR_GATE_CAPTURE) != 0;
    if (deferred) return end_marked(pool, route);
    vr_device_lock(device);
    const bool closed = vr_route_close(pool, route);
    if (closed) vr_private_bury_one(pool);
    vr_device_unlock(device);
    return closed ? VRAM_OK : VRAM_INVALID_ARGUMENT;
}

// --- empty_cache ------------------------------------------------------------------------------------------------------------------------

enum vram_status vram_pool_empty_cache(struct vram_pool *pool) {
    VR_REQUIRE(pool);
    struct vr_device *device = pool->device;
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    vr_gather(device, VR_LEVEL_ALL, 0);
    vr_device_lock_guarded(device, &guard);
    enum vram_status status = VRAM_OK;
    if (!pool->captured) {
        const bool captures = vr_device_captures(device);
        if (!captures) status = vr_deferred_convert(device);
        if (!captures && status == VRAM_OK) status = vr_fences_poll(device, NULL);
        const enum vram_status shrunk = vr_release_pool(pool);
        if (status == VRAM_OK) status = shrunk;
    }
    vr_device_unlock(device);
    vr_context_leave(&guard);
    return status;
}

enum vram_status vram_empty_cache_pool(struct vram_allocator *allocator, uint32_t ordinal, struct vram_pool_id id) {
    VR_REQUIRE(allocator);
    if (is_default(id)) return vram_empty_cache_device(allocator, ordinal);
    if (ordinal >= (uint32_t)allocator->device_count) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    if (device == NULL) return VRAM_OK;
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    vr_gather(device, VR_LEVEL_ALL, 0);
    vr_device_lock_guarded(device, &guard);
    struct vram_pool *pool = vr_private_by_id(device, id);
    enum vram_status status = VRAM_OK;
    if (pool != NULL && pool->references == 0) {
        status = empty_at_end(pool);
        vr_private_bury_one(pool);
    }
    // PyTorch keeps an ended, empty pool until now, and counts the wait for its streams.
    if (pool == NULL) device->stats.num_sync_all_streams++;
    vr_device_unlock(device);
    vr_context_leave(&guard);
    return vr_verify_if_enabled(allocator, status);
}

// --- figures -----------------------------------------------------------------------------------------------------------------------

static void count_block(const struct vr_block *block, struct vram_pool_stats *stats) {
    if (block->state == VR_ALLOCATED) stats->allocated_bytes += block->size, stats->blocks++;
    if (block->state == VR_ALLOCATED || block->state == VR_PENDING) stats->active_bytes += block->size;
    if (block->state == VR_FREE) stats->free_bytes += block->size;
}

struct slot_figures {
    const struct vram_allocator *allocator;
    struct vram_pool_stats *stats;
    uint64_t bytes;
};

static enum vram_status count_slot(uint32_t block, void *user) {
    struct slot_figures *figures = user;
    count_block(vr_block_at(figures->allocator, block), figures->stats);
    figures->bytes += vr_block_at(figures->allocator, block)->size;
    return VRAM_OK;
}

// Memory for slots that no slot uses counts as free.
static void count_slots(const struct vram_pool *pool, struct vram_pool_stats *stats) {
    struct slot_figures figures = {.allocator = pool->device->allocator, .stats = stats};
    struct vr_held_bytes held;
    vr_source_count_held(pool->device, pool, &held);
    (void)vr_source_each_slot(pool->device, pool, count_slot, &figures);
    stats->free_bytes += held.there[VR_LARGE] + held.away[VR_LARGE] - figures.bytes;
}

struct pool_entry {
    const struct vram_pool *pool; // NULL: it has ended
    struct vram_pool_stats stats;
};

static struct pool_entry entry_of(const struct vram_pool *pool) {
    struct pool_entry entry = {.pool = pool, .stats = {.id = pool->id, .segments = pool->segments}};
    memcpy(entry.stats.reserved_bytes, pool->reserved, sizeof entry.stats.reserved_bytes);
    count_slots(pool, &entry.stats);
    return entry;
}

static struct pool_entry entry_of_known(const struct vr_known_pool *known) {
    if (known->pool != NULL) return entry_of(known->pool);
    struct pool_entry entry = {.stats = {.id = known->id, .ended = true}};
    memcpy(entry.stats.reserved_bytes, known->reserved, sizeof entry.stats.reserved_bytes);
    return entry;
}

static int by_pool(const void *a, const void *b) {
    return VR_ORDER((uintptr_t)((const struct pool_entry *)a)->pool, (uintptr_t)((const struct pool_entry *)b)->pool);
}

static int by_id(const void *a, const void *b) {
    const struct vram_pool_id x = ((const struct pool_entry *)a)->stats.id, y = ((const struct pool_entry *)b)->stats.id;
    return x.first != y.first ? VR_ORDER(x.first, y.first) : VR_ORDER(x.second, y.second);
}

// Adds the blocks in the device's segments to the entries of their pools. Sorts the entries by pool. Called with the device locked.
static void count_segments(struct vr_device *device, struct pool_entry *entries, size_t count) {
    VR_ASSERT_ALL_LOCKED(device);
    const struct vram_allocator *allocator = device->allocator;
    qsort(entries, count, sizeof *entries, by_pool);
    for (uint32_t number = vr_segment_first(device); number != 0; number = vr_segment_after(device, number)) {
        const struct vr_segment *segment = vr_segment_at(allocator, number);
        const struct pool_entry key = {.pool = vr_shard_of(allocator, vr_block_at(allocator, segment->first))->owner};
        if (key.pool == NULL || segment->source->has_slots) continue;
        struct pool_entry *entry = bsearch(&key, entries, count, sizeof *entries, by_pool);
        for (uint32_t at = segment->first; entry != NULL && at != 0; at = vr_block_at(allocator, at)->next)
            count_block(vr_block_at(allocator, at), &entry->stats);
    }
}

enum vram_status vram_get_pool_stats(struct vram_pool *pool, struct vram_pool_stats *stats) {
    VR_REQUIRE(pool && stats);
    vr_device_lock(pool->device);
    struct pool_entry entry = entry_of(pool);
    count_segments(pool->device, &entry, 1);
    vr_device_unlock(pool->device);
    *stats = entry.stats;
    return VRAM_OK;
}

// Gets an entry for each private pool that has ever held memory. *entries is freed by the caller. Called with the device locked.
static enum vram_status list_entries(struct vr_device *device, struct pool_entry **entries, size_t *count) {
    VR_ASSERT_ALL_LOCKED(device);
    struct pool_entry *all = malloc((device->known.count + 1) * sizeof *all);
    if (all == NULL) return VRAM_NO_HOST_MEMORY;
    size_t at = 0, found = 0;
    const struct vr_known_pool *known = vr_known_pool_after(&device->known, NULL, &at);
    for (; known != NULL; known = vr_known_pool_after(&device->known, known, &at))
        if (known->pool == NULL || known->pool->counted) all[found++] = entry_of_known(known);
    count_segments(device, all, found);
    *entries = all;
    *count = found;
    return VRAM_OK;
}

enum vram_status vram_get_all_pool_stats(struct vram_allocator *allocator, uint32_t ordinal, struct vram_pool_stats *stats, size_t capacity,
                                         size_t *count) {
    VR_REQUIRE(allocator && count && (stats || capacity == 0));
    if (ordinal >= (uint32_t)allocator->device_count) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    struct pool_entry *entries = NULL;
    size_t found = 0;
    if (device != NULL) {
        vr_device_lock(device);
        const enum vram_status status = list_entries(device, &entries, &found);
        vr_device_unlock(device);
        VR_TRY(status);
        qsort(entries, found, sizeof *entries, by_id);
    }
    for (size_t i = 0; i < found && i < capacity; i++) stats[i] = entries[i].stats;
    free(entries);
    *count = found;
    return VRAM_OK;
}
