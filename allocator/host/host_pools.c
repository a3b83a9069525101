#include "host/host_pools.h"
#include "host/host_bins.h"
#include "host/host_context.h"
#include "host/host_fences.h"
#include "host/host_notify.h"
#include "host/host_source.h"

// --- lifetime -----------------------------------------------------------------------------------------------------------------------

enum vram_status vram_host_pool_create(struct vram_host *host, const struct vram_host_pool_options *options, struct vram_host_pool **pool) {
    VR_REQUIRE(host && pool);
    const bool for_graph = options != NULL && options->for_graph;
    struct vram_host_pool *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->host = host;
    made->references = 1;
    vr_host_lock(host);
    const uint64_t number = ++host->pools_made[for_graph ? 0 : 1];
    made->id = for_graph ? (struct vram_pool_id){number, 0} : (struct vram_pool_id){0, number};
    made->next = host->pools;
    host->pools = made;
    vr_host_unlock(host);
    *pool = made;
    return VRAM_OK;
}

void vr_host_keep(struct vram_host *host, struct vr_host_block *block) {
    block->state = VR_HOST_KEPT;
    host->stats.kept_bytes += block->size;
    vr_host_list_push(&block->pool->kept, block);
}

void vr_host_pool_hold(struct vram_host_pool *pool) { pool->references++; }

void vr_host_pool_drop(struct vram_host_pool *pool) {
    assert(pool->references != 0);
    if (--pool->references != 0) return;
    struct vram_host *host = pool->host;
    while (pool->kept != NULL) {
        struct vr_host_block *block = pool->kept;
        vr_host_list_remove(&pool->kept, block);
        host->stats.kept_bytes -= block->size;
        vr_host_uses_queue(host, block);
    }
    vr_host_background_wake(host);
}

void vram_host_pool_retain(struct vram_host_pool *pool) {
    if (pool == NULL) return;
    struct vram_host *host = pool->host;
    vr_host_lock(host);
    vr_host_pool_hold(pool);
    vr_host_unlock(host);
}

void vram_host_pool_release(struct vram_host_pool *pool) {
    if (pool == NULL) return;
    struct vram_host *host = pool->host;
    vr_host_lock(host);
    vr_host_pool_drop(pool);
    vr_host_free_unused_pools(host);
    vr_host_unlock(host);
}

struct vram_pool_id vram_host_pool_id(const struct vram_host_pool *pool) {
    if (pool == NULL) return (struct vram_pool_id){0, 0};
    return pool->id;
}

uint32_t vram_host_pool_references(struct vram_host_pool *pool) {
    if (pool == NULL) return 0;
    struct vram_host *host = pool->host;
    vr_host_lock(host);
    const uint32_t references = pool->references;
    vr_host_unlock(host);
    return references;
}

enum vram_status vram_host_pool_empty_cache(struct vram_host_pool *pool) {
    VR_REQUIRE(pool);
    struct vram_host *host = pool->host;
    vr_host_gather(host, true);
    vr_host_lock(host);
    vr_host_pool_hold(pool);
    vr_host_unlock(host);
    const enum vram_status polled = vr_host_poll(host, VR_HOST_POLL_NOW);
    vr_host_lock(host);
    vr_host_send_cache_out(host, pool);
    vr_host_pool_drop(pool);
    vr_host_unlock(host);
    const enum vram_status returned = vr_host_give_back(host);
    return vr_host_checked(host, polled != VRAM_OK ? polled : returned);
}

// --- routes -------------------------------------------------------------------------------------------------------------------------

// `capture` is the capture of the request's stream, queried when first needed.
static bool route_accepts(struct vram_host *host, const struct vr_host_route *open, uint64_t stream, uint64_t *capture, bool *asked) {
    switch (open->route.kind) {
    case VRAM_ROUTE_THREAD: return open->thread == vr_os_thread_id();
    case VRAM_ROUTE_STREAM: return open->route.stream == stream;
    case VRAM_ROUTE_CAPTURE:
        if (open->route.stream == stream) return true;
        if (!*asked) *capture = vr_host_capture_id(host, stream);
        *asked = true;
        return *capture != 0 && vr_host_capture_id(host, open->route.stream) == *capture;
    default: return true;
    }
}

struct vram_host_pool *vr_host_route(struct vram_host *host, uint64_t stream) {
    uint64_t capture = 0;
    bool asked = false;
    for (size_t i = host->route_count; i-- > 0;) {
        if (route_accepts(host, &host->routes[i], stream, &capture, &asked)) return host->routes[i].pool;
    }
    return &host->standard;
}

enum vram_status vram_host_pool_begin(struct vram_host_pool *pool, const struct vram_route *route) {
    VR_REQUIRE(pool && route);
    if ((unsigned)route->kind > VRAM_ROUTE_ALL) return VRAM_INVALID_ARGUMENT;
    struct vram_host *host = pool->host;
    vr_host_lock(host);
    const enum vram_status status = VR_GROW(host, routes, host->route_count + 1);
    if (status == VRAM_OK) {
        host->routes[host->route_count++] = (struct vr_host_route){.pool = pool, .route = *route, .thread = vr_os_thread_id()};
        vr_host_pool_hold(pool);
    }
    vr_host_unlock(host);
    return status;
}

static bool is_route(const struct vr_host_route *open, const struct vram_host_pool *pool, const struct vram_route *route) {
    if (open->pool != pool || open->route.kind != route->kind) return false;
    switch (route->kind) {
    case VRAM_ROUTE_THREAD: return open->thread == vr_os_thread_id();
    case VRAM_ROUTE_ALL: return true;
    default: return open->route.stream == route->stream;
    }
}

static bool close_route_locked(struct vram_host_pool *pool, const struct vram_route *route) {
    struct vram_host *host = pool->host;
    for (size_t i = host->route_count; i-- > 0;) {
        if (!is_route(&host->routes[i], pool, route)) continue;
        host->route_count--;
        memmove(&host->routes[i], &host->routes[i + 1], (host->route_count - i) * sizeof *host->routes);
        vr_host_pool_drop(pool);
        return true;
    }
    return false;
}

enum vram_status vram_host_pool_end(struct vram_host_pool *pool, const struct vram_route *route) {
    VR_REQUIRE(pool && route);
    struct vram_host *host = pool->host;
    vr_host_lock(host);
    const bool closed = close_route_locked(pool, route);
    vr_host_free_unused_pools(host);
    vr_host_unlock(host);
    return closed ? VRAM_OK : VRAM_INVALID_ARGUMENT;
}
