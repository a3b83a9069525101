#include "vram/host.h"
#include "vram/pool.h"
#include "base/base.h"
#include "core/capture/lending.h"
#include "core/device.h"
#include "driver/driver.h"

// A block that the graph uses but did not allocate.
struct fixture {
    uint64_t address;
    uint64_t size_bytes;
};

// The order in which the graphs of a pool were captured and are launched. Attached to the pool; guarded by all locks of the device.
struct rounds {
    uint64_t captured; // number of graphs captured into the pool, and the place of the next one
    uint64_t launched; // place of the last graph launched in the current round, plus one; 0: none yet
};

static const struct vr_extension_kind rounds_kind = {.destroy = free};

struct vram_graph {
    struct vr_device *device;
    struct vram_pool *pool; // with a reference
    uint64_t place;         // in its pool's order of capture, from 0
    uint64_t stream;
    uint64_t handle; // CUgraph
    uint64_t exec;
    bool capturing;
    struct fixture *fixtures;
    size_t fixture_count;
    size_t fixtures_capacity;
};

static enum vram_status refuse_graph(struct vram_error *error, const char *sentence) {
    return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "%s", sentence);
}

static enum vram_status driver_failed(struct vram_error *error, const char *what, vr_cu_result result) {
    (void)vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "%s: %s", what, vr_cu_result_name(result));
    if (error != NULL) error->driver_result = result;
    return VRAM_DRIVER;
}

// --- capture -------------------------------------------------------------------------------------------------------------------------

static enum vram_status make_pool(struct vram_allocator *allocator, uint32_t ordinal, const struct vram_graph_options *options,
                                  struct vram_pool **pool) {
    if (options->pool != NULL) {
        vram_pool_retain(options->pool);
        *pool = options->pool;
        return VRAM_OK;
    }
    const struct vram_pool_options own = {.for_graph = true};
    return vram_pool_create(allocator, ordinal, &own, pool);
}

static bool captures_already(struct vr_device *device) {
    vr_device_lock(device);
    const bool captures = device->captures.count != 0;
    vr_device_unlock(device);
    return captures;
}

static enum vram_status prepare_capture(struct vram_allocator *allocator, struct vr_device *device, uint64_t stream,
                                        const struct vram_graph_options *options, struct vram_error *error) {
    if (stream == 0) return refuse_graph(error, "the default stream cannot be captured; use a stream of your own");
    if (options->pool != NULL && options->pool->device != device) return refuse_graph(error, "the pool belongs to another device");
    if (captures_already(device)) return refuse_graph(error, "another capture is in progress on this device; end it first");
    if (options->keep_cache) return VRAM_OK;
    if (options->host != NULL) VR_TRY(vram_host_empty_cache(options->host));
    return vram_empty_cache_device(allocator, device->ordinal);
}

static struct rounds *rounds_of(const struct vram_pool *pool) { return vr_extension_find(&pool->extensions, &rounds_kind); }

// Attaches the rounds to the pool when the first graph is captured into it.
static enum vram_status attach_rounds(struct vram_pool *pool, struct vram_error *error) {
    struct rounds *made = calloc(1, sizeof *made);
    if (made == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for a graph");
    vr_device_lock(pool->device);
    const bool is_first = rounds_of(pool) == NULL;
    const enum vram_status status = is_first ? vr_extension_attach(&pool->extensions, &rounds_kind, made) : VRAM_OK;
    vr_device_unlock(pool->device);
    if (!is_first || status != VRAM_OK) free(made);
    return status;
}

static enum vram_status begin_capture(struct vram_graph *graph, enum vram_capture_mode mode, struct vram_error *error) {
    assert(!graph->capturing && graph->handle == 0 && graph->exec == 0);
    VR_TRY(attach_rounds(graph->pool, error));
    VR_TRY(vram_capture_begin(graph->pool, graph->stream, mode, error));
    graph->capturing = true;
    vr_device_lock(graph->device);
    graph->place = rounds_of(graph->pool)->captured++;
    vr_device_unlock(graph->device);
    return VRAM_OK;
}

static enum vram_status begin_graph(struct vram_allocator *allocator, uint32_t ordinal, uint64_t stream,
                                    const struct vram_graph_options *options, struct vram_graph **graph, struct vram_error *error) {
    struct vr_device *device = NULL;
    VR_TRY(vr_device_get(allocator, ordinal, &device));
    VR_TRY(prepare_capture(allocator, device, stream, options, error));
    struct vram_graph *made = calloc(1, sizeof *made);
    if (made == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for a graph");
    made->device = device;
    made->stream = stream;
    enum vram_status status = make_pool(allocator, ordinal, options, &made->pool);
    if (status == VRAM_OK) {
        status = begin_capture(made, options->mode, error);
        if (status != VRAM_OK) vram_pool_release(made->pool);
    }
    if (status != VRAM_OK) {
        free(made);
        return status;
    }
    *graph = made;
    return VRAM_OK;
}

enum vram_status vram_graph_begin(struct vram_allocator *allocator, uint32_t ordinal, uint64_t stream,
                                  const struct vram_graph_options *options, struct vram_graph **graph, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && graph);
    static const struct vram_graph_options defaults;
    vr_error_clear(error);
    return vr_error_complete(error, begin_graph(allocator, ordinal, stream, options == NULL ? &defaults : options, graph, error));
}

static enum vram_status instantiate(struct vram_graph *graph, struct vram_error *error) {
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(graph->device, &guard));
    const vr_cu_result result = vr_cu(graph->device->allocator->driver, graph_instantiate, &graph->exec, graph->handle, 0);
    vr_context_leave(&guard);
    return result == VR_CU_SUCCESS ? VRAM_OK : driver_failed(error, "cannot instantiate the captured graph", result);
}

// Explains the driver's result for the region.
static enum vram_status explain_capture(struct vram_error *error) {
    if (error == NULL) return VRAM_DRIVER;
    const int32_t result = error->driver_result;
    const char *why = "the capture returned no graph";
    if (result == VR_CU_STREAM_CAPTURE_INVALIDATED) {
        why = "the capture was invalidated: the captured code waited for the device or requested memory from the driver";
    } else if (result == VR_CU_STREAM_CAPTURE_UNJOINED) {
        why = "a stream joined the capture but was not joined back before its end";
    } else if (result == VR_CU_STREAM_CAPTURE_WRONG_THREAD) {
        why = "the thread that began the capture must end it";
    }
    return driver_failed(error, why, result);
}

enum vram_status vram_graph_end(struct vram_graph *graph, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, graph);
    struct vram_error detail;
    if (error == NULL) error = &detail;
    vr_error_clear(error);
    if (!graph->capturing) return refuse_graph(error, "this graph is not being captured");
    graph->capturing = false;
    const enum vram_status status = vram_capture_end(graph->pool, graph->stream, &graph->handle, error);
    if (status == VRAM_DRIVER) return explain_capture(error);
    return vr_error_complete(error, status == VRAM_OK ? instantiate(graph, error) : status);
}

// --- launch --------------------------------------------------------------------------------------------------------------------------

enum vram_status vram_graph_add_static(struct vram_graph *graph, uint64_t address) {
    VR_REQUIRE(graph);
    struct vram_block_info info;
    VR_TRY(vram_get_block_info(graph->device->allocator, address, &info));
    VR_TRY(VR_GROW(graph, fixtures, graph->fixture_count + 1));
    graph->fixtures[graph->fixture_count++] = (struct fixture){address, info.size_bytes};
    return VRAM_OK;
}

static enum vram_status check_fixtures(const struct vram_graph *graph, struct vram_error *error) {
    for (size_t i = 0; i < graph->fixture_count; i++) {
        const struct fixture *fixture = &graph->fixtures[i];
        if (vram_allocated_size(graph->device->allocator, fixture->address) == fixture->size_bytes) continue;
        return vr_fail(
            error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET,
            "the graph uses static memory at 0x%llx, which was freed or moved since; keep that memory and copy new values into it",
            (unsigned long long)fixture->address);
    }
    return VRAM_OK;
}

// Takes the graph's place in its pool's round, and the memory that the pool lent. *before: the round's state before.
static enum vram_status take_place(struct vram_graph *graph, uint64_t stream, uint64_t *before, struct vram_error *error) {
    struct rounds *rounds = rounds_of(graph->pool);
    assert(!graph->capturing && graph->exec != 0 && rounds != NULL);
    vr_device_lock(graph->device);
    *before = rounds->launched;
    const bool in_order = graph->place == 0 || graph->place >= *before;
    const enum vram_status status = in_order ? vr_lending_begin_launch(graph->pool, stream, error) : VRAM_INVALID_ARGUMENT;
    if (status == VRAM_OK) rounds->launched = graph->place + 1;
    vr_device_unlock(graph->device);
    if (in_order) return status;
    return refuse_graph(error, "graphs that share a pool must be launched in the order of their capture: a later graph was already "
                               "launched; start again with the first");
}

// Ends what take_place() began. If the launch failed, gives the place back, unless another launch followed.
static void end_launch(struct vram_graph *graph, bool launched, uint64_t before) {
    struct rounds *rounds = rounds_of(graph->pool);
    vr_device_lock(graph->device);
    vr_lending_end_launch(graph->pool);
    if (!launched && rounds->launched == graph->place + 1) rounds->launched = before;
    vr_device_unlock(graph->device);
}

static enum vram_status launch_graph(struct vram_graph *graph, uint64_t stream, struct vram_error *error) {
    struct vr_context_guard guard;
    if (vr_context_enter(graph->device, &guard) != VRAM_OK)
        return vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "cannot make the device's context current");
    const vr_cu_result result = vr_cu(graph->device->allocator->driver, graph_launch, graph->exec, stream);
    vr_context_leave(&guard);
    return result == VR_CU_SUCCESS ? VRAM_OK : driver_failed(error, "the driver refused to launch the graph", result);
}

enum vram_status vram_graph_launch(struct vram_graph *graph, uint64_t stream, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, graph);
    if (graph->exec == 0) return refuse_graph(error, "this graph is not ready: its capture is in progress or failed");
    VR_TRY(check_fixtures(graph, error));
    uint64_t before = 0;
    const enum vram_status placed = take_place(graph, stream, &before, error);
    if (placed != VRAM_OK) return vr_error_complete(error, placed);
    const enum vram_status status = launch_graph(graph, stream, error);
    end_launch(graph, status == VRAM_OK, before);
    return status;
}

struct vram_pool *vram_graph_pool(const struct vram_graph *graph) {
    if (graph == NULL) return NULL;
    return graph->pool;
}
uint64_t vram_graph_exec(const struct vram_graph *graph) {
    if (graph == NULL) return 0;
    return graph->exec;
}

static void destroy_handles(struct vram_graph *graph) {
    struct vram_driver *driver = graph->device->allocator->driver;
    struct vr_context_guard guard;
    if (vr_context_enter(graph->device, &guard) != VRAM_OK) return;
    if (graph->exec != 0) VR_CU_INSIST(driver, graph_exec_destroy, graph->exec);
    if (graph->handle != 0) VR_CU_INSIST(driver, graph_destroy, graph->handle);
    vr_context_leave(&guard);
}

void vram_graph_destroy(struct vram_graph *graph) {
    if (graph == NULL) return;
    // Ignore the status: an abandoned capture has ended in any case.
    if (graph->capturing && vram_capture_end(graph->pool, graph->stream, &graph->handle, NULL) != VRAM_OK) graph->handle = 0;
    destroy_handles(graph);
    vram_pool_release(graph->pool);
    free(graph->fixtures);
    free(graph);
}

// --- sequences -----------------------------------------------------------------------------------------------------------------------

static enum vram_status warm_up(const struct vram_graph_callable *callables, size_t count, uint32_t warmups, uint64_t stream) {
    for (uint32_t round = 0; round < warmups; round++) {
        for (size_t i = 0; i < count; i++) VR_TRY(callables[i].run(stream, callables[i].user));
    }
    return VRAM_OK;
}

static enum vram_status capture_one(struct vram_allocator *allocator, uint32_t device, uint64_t stream,
                                    const struct vram_graph_callable *callable, struct vram_pool *pool, struct vram_graph **graph,
                                    struct vram_error *error) {
    const struct vram_graph_options options = {.pool = pool, .keep_cache = pool != NULL};
    VR_TRY(vram_graph_begin(allocator, device, stream, &options, graph, error));
    const enum vram_status ran = callable->run(stream, callable->user);
    const enum vram_status ended = vram_graph_end(*graph, error);
    const enum vram_status status = ran != VRAM_OK ? ran : ended;
    if (status == VRAM_OK) return VRAM_OK;
    vram_graph_destroy(*graph);
    return status;
}

static enum vram_status capture_all(struct vram_allocator *allocator, uint32_t device, uint64_t stream,
                                    const struct vram_graph_callable *callables, size_t count, struct vram_graph **made,
                                    struct vram_error *error) {
    for (size_t i = 0; i < count; i++) {
        struct vram_pool *shared = i == 0 ? NULL : vram_graph_pool(made[0]);
        const enum vram_status status = capture_one(allocator, device, stream, &callables[i], shared, &made[i], error);
        if (status != VRAM_OK) {
            while (i-- > 0) vram_graph_destroy(made[i]);
            return status;
        }
    }
    return VRAM_OK;
}

enum vram_status vram_graph_capture_all(struct vram_allocator *allocator, uint32_t device, uint64_t stream,
                                        const struct vram_graph_callable *callables, size_t count, uint32_t warmups,
                                        struct vram_graph **graphs, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && (count == 0 || (callables && graphs)));
    if (stream == 0) return refuse_graph(error, "the default stream cannot be captured; use a stream of your own");
    if (count == 0) return VRAM_OK;
    vr_error_clear(error);
    struct vram_graph **made = calloc(count, sizeof(struct vram_graph *));
    if (made == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for the graphs");
    enum vram_status status = warm_up(callables, count, warmups, stream);
    if (status == VRAM_OK) status = capture_all(allocator, device, stream, callables, count, made, error);
    if (status == VRAM_OK) memcpy(graphs, made, count * sizeof(struct vram_graph *));
    free(made);
    return vr_error_complete(error, status);
}
