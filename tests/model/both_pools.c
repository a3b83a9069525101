// Runs random operations with private pools: lifetimes, routes, exact addresses, checkpoints, captures with forks and joins.
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "driver/driver.h"
#include "model/both.h"
#include "vram/sim.h"

static bool compare_status(struct both *both, enum vram_status core, enum vram_status naive) {
    return both_compare_step(both, core, naive, 0, 0);
}

static struct both_pool *draw_pool(struct both *both) {
    struct both_pool *pool = &both->pools[both_draw(both, BOTH_POOLS)];
    return pool->core ? pool : NULL;
}

static bool captures(const struct both *both) { return both->setup->kind != CONF_POOLS; }

static unsigned number_of(const struct both *both, const struct both_pool *pool) { return (unsigned)(pool - both->pools); }

// --- a pool's own memory -----------------------------------------------------------------------------------------------------

static uint64_t take_own(uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    (void)device, (void)stream;
    struct both_own *own = user;
    if (size_bytes > own->left_bytes) return 0;
    const uint64_t address = own->next;
    own->next += size_bytes;
    own->left_bytes -= size_bytes;
    own->taken_bytes += size_bytes;
    return address;
}

static void give_own(uint64_t address, uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    (void)address, (void)device, (void)stream;
    struct both_own *own = user;
    own->left_bytes += size_bytes;
    own->taken_bytes -= size_bytes;
}

static struct both_own *make_own(struct both *both) {
    struct both_own *own = calloc(1, sizeof *own);
    if (!own) abort();
    *own = (struct both_own){.older = both->own, .next = 0x111000000000 + (++both->own_count << 36)};
    own->left_bytes = (10 + both_draw(both, 300)) * VR_MIB;
    both->own = own;
    return own;
}

bool both_own_close(struct both *both) {
    bool all = true;
    while (both->own) {
        struct both_own *own = both->own;
        both->own = own->older;
        if (own->taken_bytes) both_differ(both, "%" PRIu64 " bytes of a pool's own were not given back", own->taken_bytes);
        all = all && own->taken_bytes == 0;
        free(own);
    }
    return all;
}

// --- lifetime ----------------------------------------------------------------------------------------------------------------

static bool do_create(struct both *both) {
    struct both_pool *pool = &both->pools[both_draw(both, BOTH_POOLS)];
    if (pool->core) return true;
    struct vram_pool_options options = {
        .for_graph = both_draw(both, 2), .use_on_oom = both_draw(both, 3) == 0, .no_split = both_draw(both, 4) == 0};
    struct naive_pool_info info = {.for_graph = options.for_graph, .use_on_oom = options.use_on_oom, .no_split = options.no_split};
    if (both_draw(both, 4) == 0) {
        struct both_own *own = make_own(both);
        options.allocate = take_own;
        options.deallocate = give_own;
        options.user = own;
        info.own_base = own->next;
        info.own_bytes = own->left_bytes;
    }
    *pool = (struct both_pool){.device = (uint32_t)both_draw(both, both->device_count), .held = 1};
    both_say(both, "create pool %u device %u graph %d lends %d whole %d own %d", number_of(both, pool), (unsigned)pool->device,
             options.for_graph, options.use_on_oom, options.no_split, options.allocate != NULL);
    pool->naive = naive_pool_create(both->naive, pool->device, &info);
    return compare_status(both, vram_pool_create(both->world.allocator, pool->device, &options, &pool->core), VRAM_OK);
}

static void forget_checkpoint(struct both_pool *pool) {
    vram_checkpoint_destroy(pool->checkpoint);
    free(pool->naive_checkpoint);
    pool->checkpoint = NULL;
    pool->naive_checkpoint = NULL;
}

// Forgets the handle when the run has no reference left.
static void let_go(struct both_pool *pool) {
    if (pool->held || pool->route_count || pool->capture_count) return;
    forget_checkpoint(pool);
    pool->core = NULL;
}

static bool do_retain(struct both *both) {
    struct both_pool *pool = draw_pool(both);
    if (!pool || pool->held > 2) return true;
    both_say(both, "retain pool %u", number_of(both, pool));
    vram_pool_retain(pool->core);
    naive_pool_retain(pool->naive);
    pool->held++;
    return compare_status(both, VRAM_OK, VRAM_OK);
}

static bool release(struct both *both, struct both_pool *pool) {
    both_say(both, "release pool %u", number_of(both, pool));
    naive_pool_release(pool->naive);
    vram_pool_release(pool->core);
    pool->held--;
    let_go(pool);
    return compare_status(both, VRAM_OK, VRAM_OK);
}

static bool do_release(struct both *both) {
    struct both_pool *pool = draw_pool(both);
    return !pool || !pool->held || release(both, pool);
}

static bool do_trim(struct both *both) {
    const struct both_pool *pool = draw_pool(both);
    if (!pool) return true;
    both_say(both, "trim pool %u", number_of(both, pool));
    naive_pool_trim(both->naive, pool->naive);
    return compare_status(both, vram_pool_empty_cache(pool->core), VRAM_OK);
}

// --- routes ------------------------------------------------------------------------------------------------------------------

static struct vram_route draw_route(struct both *both, uint32_t device) {
    static const enum vram_route_kind kinds[] = {VRAM_ROUTE_THREAD, VRAM_ROUTE_STREAM, VRAM_ROUTE_STREAM, VRAM_ROUTE_CAPTURE,
                                                 VRAM_ROUTE_ALL};
    return (struct vram_route){.kind = kinds[both_draw(both, VR_COUNT_OF(kinds))],
                               .stream = both->world.stream[device][both_draw(both, 3)]};
}

// Returns whether a capture opened the route, so that only its end closes it.
static bool is_of_capture(const struct both_pool *pool, const struct vram_route *route) {
    for (size_t i = 0; i < pool->capture_count; i++)
        if (route->kind == VRAM_ROUTE_CAPTURE && pool->captures[i] == route->stream) return true;
    return false;
}

static bool do_begin(struct both *both) {
    struct both_pool *pool = draw_pool(both);
    if (!pool || pool->route_count == BOTH_ROUTES) return true;
    const struct vram_route route = draw_route(both, pool->device);
    if (is_of_capture(pool, &route)) return true;
    both_say(both, "begin pool %u kind %d stream 0x%" PRIx64, number_of(both, pool), (int)route.kind, route.stream);
    naive_pool_begin(both->naive, pool->naive, &route);
    pool->routes[pool->route_count++] = route;
    return compare_status(both, vram_pool_begin(pool->core, &route), VRAM_OK);
}

static bool end_route(struct both *both, struct both_pool *pool, size_t index) {
    const struct vram_route route = pool->routes[index];
    if (is_of_capture(pool, &route)) return true;
    both_say(both, "end pool %u kind %d stream 0x%" PRIx64, number_of(both, pool), (int)route.kind, route.stream);
    pool->routes[index] = pool->routes[--pool->route_count];
    const enum vram_status naive = naive_pool_end(both->naive, pool->naive, &route), core = vram_pool_end(pool->core, &route);
    let_go(pool);
    return compare_status(both, core, naive);
}

// Ends a route, usually an open one.
static bool do_end(struct both *both) {
    struct both_pool *pool = draw_pool(both);
    if (!pool) return true;
    if (pool->route_count && both_draw(both, 10)) return end_route(both, pool, both_draw(both, pool->route_count));
    const struct vram_route route = draw_route(both, pool->device);
    for (size_t i = 0; i < pool->route_count; i++)
        if (pool->routes[i].kind == route.kind) return true;
    if (is_of_capture(pool, &route)) return true;
    both_say(both, "end pool %u kind %d, which is not open", number_of(both, pool), (int)route.kind);
    return compare_status(both, vram_pool_end(pool->core, &route), naive_pool_end(both->naive, pool->naive, &route));
}

// --- requests ----------------------------------------------------------------------------------------------------------------

static bool do_pool_malloc(struct both *both) {
    const struct both_pool *pool = draw_pool(both);
    if (!pool || both->live_count >= BOTH_MAX_LIVE || both->live_count > 2 * both->target) return true;
    const uint64_t stream = both_draw_stream(both, pool->device), size = both_draw_size(both);
    both_say(both, "malloc %" PRIu64 " pool %u stream 0x%" PRIx64, size, number_of(both, pool), stream);
    struct both_live live = {.size_bytes = size, .stream = stream, .device = pool->device};
    uint64_t expected = 0;
    const enum vram_status core = vram_pool_malloc(pool->core, size, stream, &live.address);
    const enum vram_status naive = naive_pool_malloc(both->naive, pool->naive, size, stream, &expected);
    return both_got(both, core, naive, &live, expected);
}

// Requests an exact address, usually inside a free block, for its stream and with a size that fits.
static bool do_malloc_at(struct both *both) {
    if (!both->exact_operations || both->live_count >= BOTH_MAX_LIVE) return true;
    const uint32_t device = (uint32_t)both_draw(both, both->device_count);
    size_t count = 0;
    const struct vram_block_view *views = naive_picture(both->naive, device, &count);
    if (count == 0) return true;
    size_t at = both_draw(both, count);
    for (size_t tries = 0; views[at].state != VRAM_BLOCK_FREE && tries < count; tries++) at = (at + 1) % count;
    const struct vram_block_info block = views[at].block;
    const uint64_t units = block.size_bytes / 512, offset = both_draw(both, 3) && units != 0 ? both_draw(both, units) : 0;
    uint64_t address = block.address + 512 * offset, size = 1 + both_draw(both, block.size_bytes - 512 * offset);
    uint64_t stream = block.stream;
    if (both_draw(both, 10) == 0) address += both_draw(both, 1024);
    if (both_draw(both, 10) == 0) stream = both->world.stream[device][both_draw(both, 3)];
    if (both_draw(both, 10) == 0) size = both_draw_size(both);
    both_say(both, "malloc %" PRIu64 " device %u stream 0x%" PRIx64 " at 0x%" PRIx64, size, (unsigned)device, stream, address);
    const enum vram_status core = vram_malloc_at(both->world.allocator, device, size, stream, address);
    if (!compare_status(both, core, naive_malloc_at(both->naive, device, size, stream, address))) return false;
    if (core == VRAM_OK)
        both->live[both->live_count++] = (struct both_live){.address = address, .size_bytes = size, .stream = stream, .device = device};
    return true;
}

// --- checkpoints -------------------------------------------------------------------------------------------------------------

static bool do_checkpoint(struct both *both) {
    struct both_pool *pool = draw_pool(both);
    if (!pool || !both->exact_operations) return true;
    forget_checkpoint(pool);
    both_say(both, "checkpoint pool %u", number_of(both, pool));
    const enum vram_status naive = naive_pool_checkpoint(both->naive, pool->naive, &pool->naive_checkpoint);
    return compare_status(both, vram_pool_checkpoint(pool->core, &pool->checkpoint), naive);
}

struct restoring {
    struct both *both;
    const struct both_pool *pool;
};

static void freed(uint64_t address, void *user) {
    struct both *both = ((struct restoring *)user)->both;
    for (size_t i = 0; i < both->live_count; i++) {
        if (both->live[i].address != address) continue;
        both_forget_live(both, i);
        return;
    }
    both_differ(both, "restore freed 0x%" PRIx64 ", which did not live", address);
}

static void created(uint64_t address, uint64_t size_bytes, void *user) {
    const struct restoring *restoring = user;
    struct both *both = restoring->both;
    both->live[both->live_count++] = (struct both_live){.address = address, .size_bytes = size_bytes, .device = restoring->pool->device};
}

static bool do_restore(struct both *both) {
    const struct both_pool *pool = draw_pool(both);
    if (!pool || !pool->checkpoint) return true;
    if (both->live_count + naive_checkpoint_blocks(pool->naive_checkpoint) > BOTH_MAX_LIVE) return true;
    both_say(both, "restore pool %u", number_of(both, pool));
    struct restoring restoring = {both, pool};
    const struct vram_restore_observer observer = {freed, created, &restoring};
    const enum vram_status core = vram_pool_restore(pool->core, pool->checkpoint, &observer);
    const enum vram_status naive = naive_pool_restore(both->naive, pool->naive, pool->naive_checkpoint);
    return compare_status(both, core, naive) && both->difference[0] == '\0';
}

// --- captures ----------------------------------------------------------------------------------------------------------------

static bool do_capture_begin(struct both *both) {
    struct both_pool *pool = draw_pool(both);
    if (!pool || !captures(both) || pool->capture_count == BOTH_CAPTURES) return true;
    const uint64_t stream = both->world.stream[pool->device][both_draw(both, 3)];
    for (size_t i = 0; i < pool->route_count; i++)
        if (pool->routes[i].kind == VRAM_ROUTE_CAPTURE && pool->routes[i].stream == stream) return true;
    size_t count = 0;
    for (size_t i = 0; i < BOTH_POOLS; i++) count += both->pools[i].core ? both->pools[i].capture_count : 0;
    if (count == BOTH_CAPTURES) return true;
    both_say(both, "capture pool %u stream 0x%" PRIx64, number_of(both, pool), stream);
    const enum vram_status naive = naive_capture_begin(both->naive, pool->naive, stream);
    const enum vram_capture_mode mode = (enum vram_capture_mode)both_draw(both, 3);
    const enum vram_status core = vram_capture_begin(pool->core, stream, mode, NULL);
    if (core == VRAM_OK) pool->captures[pool->capture_count++] = stream;
    return compare_status(both, core, naive);
}

static bool capture_end(struct both *both, struct both_pool *pool, size_t index) {
    const uint64_t stream = pool->captures[index];
    both_say(both, "end capture pool %u stream 0x%" PRIx64, number_of(both, pool), stream);
    uint64_t graph = 0;
    const enum vram_status naive = naive_capture_end(both->naive, pool->naive, stream);
    const enum vram_status core = vram_capture_end(pool->core, stream, &graph, NULL);
    pool->captures[index] = pool->captures[--pool->capture_count];
    let_go(pool);
    if ((graph != 0) != (core == VRAM_OK)) both_differ(both, "%s and graph 0x%" PRIx64, vram_status_name(core), graph);
    if (graph && vr_cu(both->world.sim, graph_destroy, graph) != VR_CU_SUCCESS) both_differ(both, "the graph is none");
    return compare_status(both, core, naive) && both->difference[0] == '\0';
}

static bool order(struct both *both, uint64_t from, uint64_t to) {
    both_say(both, "stream 0x%" PRIx64 " waits for 0x%" PRIx64, to, from);
    uint64_t event = 0;
    struct vram_driver *sim = both->world.sim;
    const bool done = vr_cu(sim, event_create, &event, VR_CU_EVENT_DISABLE_TIMING) == VR_CU_SUCCESS &&
                      vr_cu(sim, event_record, event, from) == VR_CU_SUCCESS &&
                      vr_cu(sim, stream_wait_event, to, event, 0) == VR_CU_SUCCESS && vr_cu(sim, event_destroy, event) == VR_CU_SUCCESS;
    if (!done) both_differ(both, "the driver would not let stream 0x%" PRIx64 " wait for 0x%" PRIx64, to, from);
    naive_order(both->naive, from, to);
    return done && compare_status(both, VRAM_OK, VRAM_OK);
}

static bool join_all(struct both *both, const struct both_pool *pool, uint64_t origin) {
    const uint64_t capture = naive_capture_of(both->naive, origin);
    for (size_t i = 1; i < VR_WORLD_STREAMS; i++) {
        const uint64_t stream = both->world.stream[pool->device][i];
        if (stream != origin && naive_capture_of(both->naive, stream) == capture && !order(both, stream, origin)) return false;
    }
    return true;
}

// Ends a capture, usually with every fork joined.
static bool do_capture_end(struct both *both) {
    struct both_pool *pool = draw_pool(both);
    if (!pool || !pool->capture_count) return true;
    const size_t index = both_draw(both, pool->capture_count);
    if (both_draw(both, 8) && !join_all(both, pool, pool->captures[index])) return false;
    return capture_end(both, pool, index);
}

// Makes streams wait for each other, which forks and joins captures.
static bool do_order(struct both *both) {
    const uint32_t device = (uint32_t)both_draw(both, both->device_count);
    const uint64_t from = both->world.stream[device][1 + both_draw(both, 3)], to = both->world.stream[device][1 + both_draw(both, 3)];
    const uint64_t capture = naive_capture_of(both->naive, from), other = naive_capture_of(both->naive, to);
    if (!capture || from == to || (other && other != capture)) return true;
    return order(both, from, to);
}

static bool do_kernel(struct both *both) {
    const uint32_t device = (uint32_t)both_draw(both, both->device_count);
    const uint64_t stream = both->world.stream[device][1 + both_draw(both, 3)];
    if (!naive_capture_of(both->naive, stream) || !naive_kernel(both->naive, stream)) return true;
    both_say(both, "kernel on stream 0x%" PRIx64, stream);
    return compare_status(both, vram_sim_launch(both->world.sim, device, stream, NULL, NULL, 1), VRAM_OK);
}

// --- the table of operations -------------------------------------------------------------------------------------------------

// X(function, weight)
#define POOL_OPERATIONS(X)                                                                                                                 \
    X(do_create, 20)                                                                                                                       \
    X(do_retain, 6)                                                                                                                        \
    X(do_release, 10)                                                                                                                      \
    X(do_begin, 40)                                                                                                                        \
    X(do_end, 80)                                                                                                                          \
    X(do_pool_malloc, 260)                                                                                                                 \
    X(do_malloc_at, 60)                                                                                                                    \
    X(do_trim, 12)                                                                                                                         \
    X(do_checkpoint, 12)                                                                                                                   \
    X(do_restore, 10)                                                                                                                      \
    X(do_capture_begin, 60)                                                                                                                \
    X(do_capture_end, 20)                                                                                                                  \
    X(do_order, 90)                                                                                                                        \
    X(do_kernel, 180)

bool both_pool_step(struct both *both) {
    static const struct {
        bool (*perform)(struct both *both);
        unsigned weight;
    } operations[] = {
#define OPERATION(function, weight) {function, weight},
        POOL_OPERATIONS(OPERATION)
#undef OPERATION
    };
    uint64_t all = 0;
    for (size_t i = 0; i < VR_COUNT_OF(operations); i++) all += operations[i].weight;
    uint64_t at = both_draw(both, all);
    size_t i = 0;
    for (; at >= operations[i].weight; i++) at -= operations[i].weight;
    return operations[i].perform(both);
}

bool both_pool_end(struct both *both) {
    for (size_t i = 0; i < BOTH_POOLS; i++) {
        struct both_pool *pool = &both->pools[i];
        while (pool->core && pool->capture_count)
            if (!capture_end(both, pool, pool->capture_count - 1)) return false;
        while (pool->core && pool->route_count)
            if (!end_route(both, pool, pool->route_count - 1)) return false;
        while (pool->core && pool->held)
            if (!release(both, pool)) return false;
    }
    return true;
}
