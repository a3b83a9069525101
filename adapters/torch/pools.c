// Maps PyTorch's private pools to vram's, by their ids.
#include "vram_torch.h"
#include "inside.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "vram/pool.h"

struct route {
    pthread_t thread;
    uint64_t stream; // of the capture; 0: the thread is routed
};

// Exists while PyTorch refers to it or a route leads to it.
struct pool {
    struct pool *next;
    struct vram_torch_pool_id id;
    int device;
    uint32_t references;    // from PyTorch
    struct vram_pool *pool; // holds one reference
    struct route *routes;   // open, oldest first
    size_t route_count;
    size_t route_capacity;
};

// Guards the list. Lock order: before the allocator's locks.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool *pools;
static _Thread_local uint64_t expected_stream;

static struct pool *find_pool(int device, struct vram_torch_pool_id id) {
    struct pool *pool = pools;
    while (pool != NULL && (pool->device != device || pool->id.first != id.first || pool->id.second != id.second)) pool = pool->next;
    return pool;
}

// Adds a new pool to the list, without references from PyTorch.
static enum vram_status make_pool(struct vram_allocator *allocator, int device, struct vram_torch_pool_id id, struct pool **pool) {
    struct pool *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    const struct vram_pool_options options = {.for_graph = id.first != 0};
    const enum vram_status status = vram_pool_create(allocator, (uint32_t)device, &options, &made->pool);
    if (status != VRAM_OK) {
        free(made);
        return status;
    }
    made->id = id;
    made->device = device;
    made->next = pools;
    pools = made;
    *pool = made;
    return VRAM_OK;
}

static void end_unused(struct pool *pool) {
    if (pool->references != 0 || pool->route_count != 0) return;
    struct pool **link = &pools;
    while (*link != pool) link = &(*link)->next;
    *link = pool->next;
    vram_pool_release(pool->pool);
    free(pool->routes);
    free(pool);
}

static enum vram_status open_route(struct pool *pool, uint64_t stream) {
    if (pool->route_count == pool->route_capacity) {
        const size_t capacity = pool->route_capacity == 0 ? 4 : pool->route_capacity * 2;
        struct route *routes = realloc(pool->routes, capacity * sizeof *routes);
        if (routes == NULL) return VRAM_NO_HOST_MEMORY;
        pool->routes = routes;
        pool->route_capacity = capacity;
    }
    const struct vram_route by_thread = {.kind = VRAM_ROUTE_THREAD};
    const enum vram_status status = stream == 0 ? vram_pool_begin(pool->pool, &by_thread) : vram_capture_enter(pool->pool, stream);
    if (status == VRAM_OK) pool->routes[pool->route_count++] = (struct route){.thread = pthread_self(), .stream = stream};
    return status;
}

static enum vram_status begin_locked(struct vram_allocator *allocator, int device, struct vram_torch_pool_id id, uint64_t stream) {
    struct pool *pool = find_pool(device, id);
    enum vram_status status = pool == NULL ? make_pool(allocator, device, id, &pool) : VRAM_OK;
    if (status != VRAM_OK) return status;
    status = open_route(pool, stream);
    if (status == VRAM_OK) pool->references++;
    end_unused(pool);
    return status;
}

void vram_torch_begin_allocate_to_pool(int device, struct vram_torch_pool_id id, void *filter) {
    (void)filter;
    struct vram_allocator *allocator = NULL;
    const uint64_t stream = expected_stream;
    expected_stream = 0;
    int status = vr_torch_first_use(&allocator);
    if (status == VRAM_OK) {
        pthread_mutex_lock(&lock);
        const enum vram_status begun = begin_locked(allocator, device, id, stream);
        pthread_mutex_unlock(&lock);
        status = vr_torch_answer(begun, "starting the use of a private pool");
    }
    if (status != VRAM_OK) vr_torch_raise_last("vram_torch_begin_allocate_to_pool");
}

static enum vram_status close_route(struct pool *pool, size_t index) {
    const struct route route = pool->routes[index];
    pool->route_count--;
    memmove(&pool->routes[index], &pool->routes[index + 1], (pool->route_count - index) * sizeof *pool->routes);
    if (route.stream != 0) return vram_capture_leave(pool->pool, route.stream);
    const struct vram_route by_thread = {.kind = VRAM_ROUTE_THREAD};
    return vram_pool_end(pool->pool, &by_thread);
}

static enum vram_status end_locked(struct pool *pool) {
    enum vram_status status = VRAM_INVALID_ARGUMENT;
    for (size_t i = pool == NULL ? 0 : pool->route_count; i-- > 0;) {
        if (pool->routes[i].stream == 0 && !pthread_equal(pool->routes[i].thread, pthread_self())) continue;
        status = close_route(pool, i);
        end_unused(pool);
        break;
    }
    return status;
}

void vram_torch_end_allocate_to_pool(int device, struct vram_torch_pool_id id) {
    pthread_mutex_lock(&lock);
    const enum vram_status status = end_locked(find_pool(device, id));
    pthread_mutex_unlock(&lock);
    if (vr_torch_answer(status, "ending the use of a private pool") != VRAM_OK) vr_torch_raise_last("vram_torch_end_allocate_to_pool");
}

void vram_torch_release_pool(int device, struct vram_torch_pool_id id) {
    pthread_mutex_lock(&lock);
    struct pool *pool = find_pool(device, id);
    if (pool != NULL) {
        if (pool->references != 0) pool->references--;
        end_unused(pool);
    }
    pthread_mutex_unlock(&lock);
}

void vram_torch_expect_capture(uint64_t stream) { expected_stream = stream; }

uint32_t vram_torch_pool_count(void) {
    uint32_t count = 0;
    pthread_mutex_lock(&lock);
    for (const struct pool *pool = pools; pool != NULL; pool = pool->next) count++;
    pthread_mutex_unlock(&lock);
    return count;
}

// --- launches --------------------------------------------------------------------------------------------------------------------------

// Returns the pool with a reference for the caller, or NULL. The other way of PyTorch's allocators gives its pools PyTorch's ids.
static struct vram_pool *retain_pool(int device, struct vram_torch_pool_id id) {
    struct vram_allocator *allocator = NULL;
    struct vram_pool *found = NULL;
    if (device < 0 || vr_torch_first_use(&allocator) != VRAM_OK) return NULL;
    pthread_mutex_lock(&lock);
    const struct pool *ours = find_pool(device, id);
    if (ours != NULL) {
        found = ours->pool;
        vram_pool_retain(found);
    }
    pthread_mutex_unlock(&lock);
    if (found != NULL) return found;
    return vram_pool_find(allocator, (uint32_t)device, (struct vram_pool_id){id.first, id.second}, &found) == VRAM_OK ? found : NULL;
}

int vram_torch_launch_begin(int device, struct vram_torch_pool_id id, uint64_t stream) {
    struct vram_pool *pool = retain_pool(device, id);
    struct vram_error error = {0};
    if (pool == NULL) return VRAM_OK;
    const enum vram_status status = vram_pool_launch_begin(pool, stream, &error);
    if (status != VRAM_OK) vram_pool_release(pool); // otherwise the launch keeps the reference
    return vr_torch_answer_error(status, &error);
}

void vram_torch_launch_end(int device, struct vram_torch_pool_id id) {
    struct vram_pool *pool = retain_pool(device, id);
    if (pool == NULL) return;
    vram_pool_launch_end(pool);
    vram_pool_release(pool);
    vram_pool_release(pool);
}
