#include "core/capture/private.h"
#include "core/source/async.h"
#include "core/capture/captures.h"
#include "core/fences.h"
#include "core/release.h"
#include "core/serve.h"
#include "core/source/source_ops.h"

// --- lifetime -----------------------------------------------------------------------------------------------------------------------

void vr_private_retain(struct vram_pool *pool) { pool->references++; }
void vr_private_drop(struct vram_pool *pool) {
    assert(pool->references != 0);
    pool->references--;
}

enum vram_status vram_pool_create(struct vram_allocator *allocator, uint32_t ordinal, const struct vram_pool_options *options,
                                  struct vram_pool **pool) {
    VR_REQUIRE(allocator && pool);
    static const struct vram_pool_options defaults;
    if (options == NULL) options = &defaults;
    if (options->allocate != NULL && options->deallocate == NULL) return VRAM_INVALID_ARGUMENT;
    if (options->allocate != NULL && vr_is_async(allocator)) return VRAM_UNSUPPORTED;
    struct vr_device *device = NULL;
    VR_TRY(vr_device_get(allocator, ordinal, &device));
    struct vram_pool *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->device = device;
    made->options = *options;
    made->references = 1;
    const int kind = options->for_graph ? 0 : 1;
    const uint64_t number = atomic_fetch_add_explicit(&allocator->pools_made[kind], 1, memory_order_relaxed) + 1;
    made->id = options->for_graph ? (struct vram_pool_id){number, 0} : (struct vram_pool_id){0, number};
    vr_device_lock(device);
    made->next = device->pools;
    device->pools = made;
    vr_device_unlock(device);
    *pool = made;
    return VRAM_OK;
}

// The shard is taken again by a pool made later: its lists are empty, its counters stand at zero.
static void retire_shard(struct vr_device *device, struct vr_shard *shard) {
    void *idle = device->idle_shards;
    const enum vram_status status = vr_grow(&idle, &device->idle_capacity, device->idle_count + 1, sizeof *device->idle_shards);
    device->idle_shards = idle;
    shard->owner = NULL;
    shard->idle = true;
    if (status == VRAM_OK) device->idle_shards[device->idle_count++] = shard;
}

// Reservations without a page stay behind when growing failed; they go with the pool.
static void drop_empty_reservations(struct vr_shard *shard) {
    const struct vram_allocator *allocator = shard->device->allocator;
    for (int p = 0; p < VR_POOLS; p++) {
        while (shard->pool[p].holes != 0) vr_expandable_unreserve(shard, vr_block_at(allocator, shard->pool[p].holes)->segment);
    }
}

static bool is_dead(const struct vram_pool *pool) { return pool->references == 0 && pool->segments == 0; }

static void bury(struct vram_pool *pool) {
    for (size_t i = 0; i < pool->shard_count; i++) {
        drop_empty_reservations(pool->shards[i]);
        retire_shard(pool->device, pool->shards[i]);
    }
    free(pool->shards);
    free(pool);
}

static void bury_the_dead(struct vr_device *device) {
    for (struct vram_pool **link = &device->pools; *link != NULL;) {
        struct vram_pool *pool = *link;
        if (!is_dead(pool)) {
            link = &pool->next;
            continue;
        }
        *link = pool->next;
        bury(pool);
    }
}

// Who lets go of a pool asks only whether that one died: a look at all of them costs as many steps as there are.
static void let_go(struct vram_pool *pool) {
    if (is_dead(pool)) bury_the_dead(pool->device);
}

void vr_private_release_all(struct vr_device *device) {
    while (device->pools != NULL) {
        struct vram_pool *next = device->pools->next;
        free(device->pools->shards);
        free(device->pools);
        device->pools = next;
    }
}

void vram_pool_retain(struct vram_pool *pool) {
    if (pool == NULL) return;
    struct vr_device *device = pool->device;
    vr_device_lock(device);
    vr_private_retain(pool);
    vr_device_unlock(device);
}

void vram_pool_release(struct vram_pool *pool) {
    if (pool == NULL) return;
    struct vr_device *device = pool->device;
    vr_device_lock(device);
    vr_private_drop(pool);
    let_go(pool);
    vr_device_unlock(device);
}

struct vram_pool_id vram_pool_id(const struct vram_pool *pool) {
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

static bool accepts(const struct vr_device *device, const struct vr_open_route *open, uint64_t stream) {
    switch (open->route.kind) {
    case VRAM_ROUTE_THREAD: return open->thread == vr_os_thread_id();
    case VRAM_ROUTE_STREAM: return open->route.stream == stream;
    case VRAM_ROUTE_CAPTURE: return open->route.stream == stream || vr_same_capture(device, open->route.stream, stream);
    default: return true;
    }
}

struct vram_pool *vr_route(struct vr_device *device, uint64_t stream) {
    for (size_t i = device->route_count; i-- > 0;) {
        if (accepts(device, &device->routes[i], stream)) return device->routes[i].pool;
    }
    return NULL;
}

bool vr_capture_pool(struct vr_device *device, uint64_t stream, struct vram_pool_id *id) {
    if ((atomic_load_explicit(&device->gate, memory_order_relaxed) & VR_GATE_CAPTURE) == 0) return false;
    vr_device_lock(device);
    const struct vram_pool *pool = vr_is_capturing(device, stream) ? vr_route(device, stream) : NULL;
    if (pool != NULL) *id = pool->id;
    vr_device_unlock(device);
    return pool != NULL;
}

bool vr_pool_is_filled(struct vr_device *device, struct vram_pool_id id) {
    bool filled = false;
    if (device == NULL) return false;
    vr_device_lock(device);
    for (size_t i = 0; i < device->route_count && !filled; i++) {
        const struct vram_pool_id *open = &device->routes[i].pool->id;
        filled = open->first == id.first && open->second == id.second;
    }
    vr_device_unlock(device);
    return filled;
}

enum vram_status vr_route_open(struct vram_pool *pool, const struct vram_route *route) {
    struct vr_device *device = pool->device;
    void *routes = device->routes;
    const enum vram_status status = vr_grow(&routes, &device->route_capacity, device->route_count + 1, sizeof *device->routes);
    device->routes = routes;
    VR_TRY(status);
    device->routes[device->route_count++] = (struct vr_open_route){.pool = pool, .route = *route, .thread = vr_os_thread_id()};
    vr_private_retain(pool);
    vr_device_gate(device, VR_GATE_ROUTES, true);
    return VRAM_OK;
}

static bool is_route(const struct vr_open_route *open, const struct vram_pool *pool, const struct vram_route *route) {
    if (open->pool != pool || open->route.kind != route->kind) return false;
    switch (route->kind) {
    case VRAM_ROUTE_THREAD: return open->thread == vr_os_thread_id();
    case VRAM_ROUTE_ALL: return true;
    default: return open->route.stream == route->stream;
    }
}

bool vr_route_close(struct vram_pool *pool, const struct vram_route *route) {
    struct vr_device *device = pool->device;
    for (size_t i = device->route_count; i-- > 0;) {
        if (!is_route(&device->routes[i], pool, route)) continue;
        device->route_count--;
        memmove(&device->routes[i], &device->routes[i + 1], (device->route_count - i) * sizeof *device->routes);
        vr_device_gate(device, VR_GATE_ROUTES, device->route_count != 0);
        vr_private_drop(pool);
        return true;
    }
    return false;
}

enum vram_status vram_pool_begin(struct vram_pool *pool, const struct vram_route *route) {
    VR_REQUIRE(pool && route);
    if ((unsigned)route->kind > VRAM_ROUTE_ALL) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = pool->device;
    vr_device_lock(device);
    const enum vram_status status = vr_route_open(pool, route);
    vr_device_unlock(device);
    return status;
}

enum vram_status vram_pool_end(struct vram_pool *pool, const struct vram_route *route) {
    VR_REQUIRE(pool && route);
    struct vr_device *device = pool->device;
    vr_device_lock(device);
    const bool closed = vr_route_close(pool, route);
    if (closed) let_go(pool);
    vr_device_unlock(device);
    return closed ? VRAM_OK : VRAM_INVALID_ARGUMENT;
}

enum vram_status vram_pool_malloc(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    VR_REQUIRE(pool && address);
    if (size_bytes == 0) {
        *address = 0;
        return VRAM_OK;
    }
    struct vr_shard *shard = NULL;
    VR_TRY(vr_shard_get(pool->device, stream, &shard));
    vr_gather(pool->device, VR_LEVEL_STATE, 0);
    return vr_checked(pool->device->allocator, vr_malloc_slow(shard, pool, size_bytes, address));
}

// --- giving back ------------------------------------------------------------------------------------------------------------------------

enum vram_status vr_private_shrink(struct vram_pool *pool) {
    const enum vram_status small = vr_release_kind(pool->shards, pool->shard_count, VR_SMALL);
    const enum vram_status large = vr_release_kind(pool->shards, pool->shard_count, VR_LARGE);
    return small != VRAM_OK ? small : large;
}

enum vram_status vr_private_shrink_freeable(struct vr_device *device) {
    enum vram_status first = VRAM_OK;
    for (struct vram_pool *pool = device->pools; pool != NULL; pool = pool->next) {
        const enum vram_status status = pool->references == 0 ? vr_private_shrink(pool) : VRAM_OK;
        if (first == VRAM_OK) first = status;
    }
    bury_the_dead(device);
    return first;
}

enum vram_status vram_pool_trim(struct vram_pool *pool) {
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
        if (!captures && status == VRAM_OK) status = vr_fences_poll(device);
        const enum vram_status shrunk = vr_private_shrink(pool);
        if (status == VRAM_OK) status = shrunk;
    }
    vr_device_unlock(device);
    vr_context_leave(&guard);
    return status;
}

// --- questions -----------------------------------------------------------------------------------------------------------------------

static bool belongs(const struct vram_pool *pool, const struct vr_block *block) {
    return vr_shard_of(pool->device->allocator, block)->owner == pool;
}

static void count_block(const struct vr_block *block, struct vram_pool_stats *stats) {
    if (block->state == VR_ALLOCATED) stats->allocated_bytes += block->size, stats->blocks++;
    if (block->state == VR_ALLOCATED || block->state == VR_PENDING) stats->active_bytes += block->size;
    if (block->state == VR_FREE) stats->free_bytes += block->size;
}

enum vram_status vram_pool_stats(struct vram_pool *pool, struct vram_pool_stats *stats) {
    VR_REQUIRE(pool && stats);
    struct vr_device *device = pool->device;
    const struct vram_allocator *allocator = device->allocator;
    *stats = (struct vram_pool_stats){.segments = 0};
    vr_device_lock(device);
    memcpy(stats->reserved_bytes, pool->reserved, sizeof stats->reserved_bytes);
    stats->segments = pool->segments;
    for (size_t i = 0; i < device->segment_count; i++) {
        uint32_t at = vr_segment_at(allocator, device->segments[i])->first;
        if (!belongs(pool, vr_block_at(allocator, at))) continue;
        for (; at != 0; at = vr_block_at(allocator, at)->next) count_block(vr_block_at(allocator, at), stats);
    }
    vr_device_unlock(device);
    return VRAM_OK;
}
