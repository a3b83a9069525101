#include "core/source/async.h"
#include "core/capture/captures.h"
#include "core/fences.h"
#include "core/capture/private.h"

// --- putting off ------------------------------------------------------------------------------------------------------------------------

// Appends the frontier of a stream's captured work (what its next node would depend on). False when it takes part in no capture.
static bool add_frontier(const struct vr_device *device, uint64_t stream, struct vr_deferred *deferred, size_t *capacity) {
    int status = 0;
    uint64_t id = 0, graph = 0, count = 0;
    const uint64_t *frontier = NULL;
    if (vr_cu(device->allocator->driver, stream_get_capture_info, stream, &status, &id, &graph, &frontier, &count) != VR_CU_SUCCESS)
        return false;
    if (status != VR_CU_STREAM_CAPTURE_STATUS_ACTIVE) return false;
    void *markers = deferred->markers;
    const enum vram_status grown = vr_grow(&markers, capacity, deferred->marker_count + (size_t)count + 1, sizeof *deferred->markers);
    deferred->markers = markers;
    if (grown != VRAM_OK) return false;
    for (uint64_t i = 0; i < count; i++) deferred->markers[deferred->marker_count++] = frontier[i];
    return true;
}

// Markers for a block: none of them where a stream concerned is outside the capture, or used the block before: then only its end will do.
static void mark(const struct vr_device *device, struct vr_deferred *deferred) {
    const struct vram_allocator *allocator = device->allocator;
    const struct vr_block *block = vr_block_at(allocator, deferred->block);
    size_t capacity = 0;
    bool all = add_frontier(device, vr_shard_of(allocator, block)->stream, deferred, &capacity);
    for (uint32_t use = block->held.uses; use != 0 && all; use = vr_use_at(allocator, use)->next) {
        all = vr_use_at(allocator, use)->captured && add_frontier(device, vr_use_at(allocator, use)->stream, deferred, &capacity);
    }
    if (all) return;
    free(deferred->markers);
    deferred->markers = NULL;
    deferred->marker_count = 0;
}

enum vram_status vr_defer(struct vr_device *device, uint32_t block) {
    void *items = device->deferred;
    const enum vram_status status = vr_grow(&items, &device->deferred_capacity, device->deferred_count + 1, sizeof *device->deferred);
    device->deferred = items;
    VR_TRY(status);
    struct vr_deferred deferred = {.block = block};
    if (device->options.graph_capture_record_stream_reuse) mark(device, &deferred);
    device->deferred[device->deferred_count++] = deferred;
    vr_device_gate(device, VR_GATE_CAPTURE, true);
    return VRAM_OK;
}

// Leaves an empty place, which pack_deferred() takes out with all others.
static void remove_deferred(struct vr_device *device, size_t at) {
    free(device->deferred[at].markers);
    device->deferred[at] = (struct vr_deferred){0};
}

static void pack_deferred(struct vr_device *device) {
    size_t kept = 0;
    for (size_t at = 0; at < device->deferred_count; at++) {
        if (device->deferred[at].block != 0) device->deferred[kept++] = device->deferred[at];
    }
    device->deferred_count = kept;
}

// Uses recorded in a capture are over: captured streams must have joined before it could end.
static void drop_captured_uses(struct vram_allocator *allocator, struct vr_block *block) {
    for (uint32_t *link = &block->held.uses; *link != 0;) {
        struct vr_use *use = vr_use_at(allocator, *link);
        if (!use->captured) {
            link = &use->next;
            continue;
        }
        const uint32_t over = *link;
        *link = use->next;
        vr_slab_give(&allocator->uses, over);
    }
}

// A stream that was destroyed since the free takes no fence: its work is waited for with all of the devices', once, so that no later
// request fails of it.
static enum vram_status fence(struct vr_device *device, uint32_t block) {
    const enum vram_status status = vr_fences_record(device, block, NULL);
    if (status != VRAM_DRIVER) return status;
    VR_TRY(vr_uses_wait(device->allocator, vr_block_at(device->allocator, block)));
    vr_complete_free(device, block, true);
    return VRAM_OK;
}

enum vram_status vr_deferred_convert(struct vr_device *device) {
    struct vram_allocator *allocator = device->allocator;
    enum vram_status status = VRAM_OK;
    for (size_t at = 0; at < device->deferred_count && status == VRAM_OK; at++) {
        const uint32_t block = device->deferred[at].block;
        struct vr_block *item = vr_block_at(allocator, block);
        if (vr_use_captures(device, item)) continue;
        drop_captured_uses(allocator, item);
        if (item->held.uses != 0) {
            status = fence(device, block);
        } else {
            vr_complete_free(device, block, true);
        }
        if (status == VRAM_OK) remove_deferred(device, at);
    }
    pack_deferred(device);
    if (status == VRAM_OK) vr_capture_gate(device);
    return status;
}

// --- reuse inside a capture ------------------------------------------------------------------------------------------------------------

// The nodes that lie before a stream's next node, found by walking dependencies backwards: a set, and the walk's stack.
struct past {
    uint64_t *slots; // open addressing, 0 = empty
    size_t capacity; // a power of two
    size_t count;
    uint64_t *stack;
    size_t stack_count;
    size_t stack_capacity;
};

static bool contains(const struct past *past, uint64_t node) {
    if (past->capacity == 0) return false;
    size_t at = (size_t)vr_mix64(node) & (past->capacity - 1);
    while (past->slots[at] != 0 && past->slots[at] != node) at = (at + 1) & (past->capacity - 1);
    return past->slots[at] == node;
}

static void put(struct past *past, uint64_t node) {
    size_t at = (size_t)vr_mix64(node) & (past->capacity - 1);
    while (past->slots[at] != 0) at = (at + 1) & (past->capacity - 1);
    past->slots[at] = node;
    past->count++;
}

static enum vram_status make_room(struct past *past) {
    if ((past->count + 1) * 2 <= past->capacity) return VRAM_OK;
    const struct past old = *past;
    past->capacity = old.capacity == 0 ? 64 : old.capacity * 2;
    past->slots = calloc(past->capacity, sizeof *past->slots);
    if (past->slots == NULL) {
        *past = old;
        return VRAM_NO_HOST_MEMORY;
    }
    past->count = 0;
    for (size_t i = 0; i < old.capacity; i++) {
        if (old.slots[i] != 0) put(past, old.slots[i]);
    }
    free(old.slots);
    return VRAM_OK;
}

static enum vram_status visit(struct past *past, uint64_t node) {
    if (contains(past, node)) return VRAM_OK;
    VR_TRY(make_room(past));
    void *stack = past->stack;
    const enum vram_status status = vr_grow(&stack, &past->stack_capacity, past->stack_count + 1, sizeof *past->stack);
    past->stack = stack;
    VR_TRY(status);
    put(past, node);
    past->stack[past->stack_count++] = node;
    return VRAM_OK;
}

static enum vram_status visit_dependencies(struct vr_device *device, struct past *past, uint64_t node) {
    struct vram_driver *driver = device->allocator->driver;
    uint64_t count = 0;
    VR_TRY(vr_driver_status(vr_cu(driver, graph_node_get_dependencies, node, NULL, &count)));
    if (count == 0) return VRAM_OK;
    uint64_t *nodes = malloc((size_t)count * sizeof *nodes);
    if (nodes == NULL) return VRAM_NO_HOST_MEMORY;
    enum vram_status status = vr_driver_status(vr_cu(driver, graph_node_get_dependencies, node, nodes, &count));
    for (uint64_t i = 0; i < count && status == VRAM_OK; i++) status = visit(past, nodes[i]);
    free(nodes);
    return status;
}

static enum vram_status walk_back(struct vr_device *device, uint64_t stream, struct past *past) {
    int state = 0;
    uint64_t id = 0, graph = 0, count = 0;
    const uint64_t *frontier = NULL;
    VR_TRY(vr_driver_status(vr_cu(device->allocator->driver, stream_get_capture_info, stream, &state, &id, &graph, &frontier, &count)));
    for (uint64_t i = 0; i < count; i++) VR_TRY(visit(past, frontier[i]));
    while (past->stack_count != 0) VR_TRY(visit_dependencies(device, past, past->stack[--past->stack_count]));
    return VRAM_OK;
}

static bool all_past(const struct past *past, const struct vr_deferred *deferred) {
    for (size_t i = 0; i < deferred->marker_count; i++) {
        if (!contains(past, deferred->markers[i])) return false;
    }
    return deferred->markers != NULL;
}

static bool any_candidate(const struct vr_device *device, uint64_t stream) {
    for (size_t i = 0; i < device->deferred_count; i++) {
        const struct vr_block *block = vr_block_at(device->allocator, device->deferred[i].block);
        if (device->deferred[i].markers != NULL && vr_shard_of(device->allocator, block)->stream == stream) return true;
    }
    return false;
}

enum vram_status vr_deferred_reuse(struct vr_device *device, uint64_t stream) {
    struct vram_allocator *allocator = device->allocator;
    if (!any_candidate(device, stream)) return VRAM_OK;
    struct past past = {0};
    const enum vram_status status = walk_back(device, stream, &past);
    for (size_t i = 0; status == VRAM_OK && i < device->deferred_count; i++) {
        const uint32_t block = device->deferred[i].block;
        struct vr_block *item = vr_block_at(allocator, block);
        if (vr_shard_of(allocator, item)->stream != stream || !all_past(&past, &device->deferred[i])) continue;
        vr_uses_clear(allocator, item);
        vr_complete_free(device, block, true);
        remove_deferred(device, i);
    }
    pack_deferred(device);
    free(past.slots);
    free(past.stack);
    return status;
}

// --- begin and end ----------------------------------------------------------------------------------------------------------------------

static enum vram_status refuse(struct vram_error *error, const char *why) {
    return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "%s", why);
}

static enum vram_status make_capture_room(struct vr_device *device) {
    void *captures = device->captures;
    const enum vram_status status = vr_grow(&captures, &device->capture_capacity, device->capture_count + 1, sizeof *device->captures);
    device->captures = captures;
    return status;
}

// Opens the route of a capture that was counted in. Under all locks.
static enum vram_status enter_locked(struct vram_pool *pool, uint64_t stream, bool others) {
    struct vr_device *device = pool->device;
    const struct vram_route route = {.kind = VRAM_ROUTE_CAPTURE, .stream = stream};
    VR_TRY(make_capture_room(device));
    VR_TRY(vr_route_open(pool, &route));
    device->captures[device->capture_count++] =
        (struct vr_capture){.pool = pool, .stream = stream, .thread = vr_os_thread_id(), .others = others};
    return VRAM_OK;
}

// The newest of the pool's captures on the stream; NULL: there is none.
static struct vr_capture *find_capture(const struct vram_pool *pool, uint64_t stream, bool others) {
    const struct vr_device *device = pool->device;
    for (size_t i = device->capture_count; i-- > 0;) {
        struct vr_capture *capture = &device->captures[i];
        if (capture->stream == stream && capture->pool == pool && capture->others == others) return capture;
    }
    return NULL;
}

// The capture is over: closes its route. Under all locks.
static void leave_locked(struct vr_device *device, struct vr_capture *capture) {
    const struct vram_route route = {.kind = VRAM_ROUTE_CAPTURE, .stream = capture->stream};
    struct vram_pool *pool = capture->pool;
    const size_t after = (size_t)(&device->captures[--device->capture_count] - capture);
    memmove(capture, capture + 1, after * sizeof *capture);
    (void)vr_route_close(pool, &route);
}

static void count_out(struct vr_device *device) {
    vr_capture_count(device->allocator, false);
    vr_capture_gate(device);
}

// The route is opened before the driver begins, so that nothing slips between (5.8).
static enum vram_status begin_locked(struct vram_pool *pool, uint64_t stream, enum vram_capture_mode mode, struct vram_error *error) {
    struct vr_device *device = pool->device;
    if (vr_stream_is_capturing(device, stream)) return refuse(error, "this stream is capturing already");
    VR_TRY(enter_locked(pool, stream, false));
    const vr_cu_result result = vr_cu(device->allocator->driver, stream_begin_capture, stream, (int)mode);
    if (result != VR_CU_SUCCESS) {
        leave_locked(device, find_capture(pool, stream, false));
        (void)vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "the driver would not begin the capture: %s", vr_cu_result_name(result));
        if (error != NULL) error->driver_result = result;
        return VRAM_DRIVER;
    }
    pool->captured = true;
    return VRAM_OK;
}

enum vram_status vram_capture_begin(struct vram_pool *pool, uint64_t stream, enum vram_capture_mode mode, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, pool);
    if (stream == 0) return refuse(error, "a capture cannot be made on the default stream: use a stream of its own");
    struct vr_device *device = pool->device;
    struct vr_context_guard guard;
    vr_error_clear(error);
    const enum vram_status entered = vr_context_enter(device, &guard);
    if (entered != VRAM_OK) return vr_error_complete(error, entered);
    vr_capture_count(device->allocator, true);
    vr_device_lock_guarded(device, &guard);
    const enum vram_status status = begin_locked(pool, stream, mode, error);
    if (status != VRAM_OK) count_out(device);
    vr_device_unlock(device);
    vr_context_leave(&guard);
    return vr_error_complete(error, status);
}

// Ends the stream's capture in the driver. A refusal that leaves it capturing is met by asking once more: a stream must not be lost.
static vr_cu_result end_in_driver(struct vram_driver *driver, uint64_t stream, uint64_t *graph) {
    const vr_cu_result result = vr_cu(driver, stream_end_capture, stream, graph);
    int status = VR_CU_STREAM_CAPTURE_STATUS_NONE;
    if (result == VR_CU_SUCCESS || vr_cu(driver, stream_is_capturing, stream, &status) != VR_CU_SUCCESS) return result;
    uint64_t unwanted = 0;
    if (status != VR_CU_STREAM_CAPTURE_STATUS_NONE && vr_cu(driver, stream_end_capture, stream, &unwanted) == VR_CU_SUCCESS &&
        unwanted != 0) {
        (void)vr_cu(driver, graph_destroy, unwanted);
    }
    return result;
}

// What the end of captures leaves to be done. Under all locks.
static enum vram_status settle_ended(struct vr_device *device) {
    const bool late = device->options.graph_capture_record_stream_reuse && !vr_device_captures(device);
    return late ? vr_deferred_convert(device) : VRAM_OK;
}

// Whatever the driver says, the capture is over for the allocator: a failed one leaves nothing behind. That needs no context of ours.
enum vram_status vram_capture_end(struct vram_pool *pool, uint64_t stream, uint64_t *graph, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, pool && graph);
    struct vr_device *device = pool->device;
    struct vr_context_guard guard;
    vr_error_clear(error);
    vr_gather(device, VR_LEVEL_ALL, 0);
    const bool entered = vr_context_enter(device, &guard) == VRAM_OK;
    vr_device_lock(device);
    uint64_t made = 0;
    vr_cu_result result = VR_CU_SUCCESS;
    struct vr_capture *capture = find_capture(pool, stream, false);
    const bool known = capture != NULL;
    enum vram_status status = VRAM_OK;
    if (known) {
        if (vr_is_async(device->allocator)) vr_async_rejoin(device, stream);
        result = end_in_driver(device->allocator->driver, stream, &made);
        leave_locked(device, capture);
        count_out(device);
        status = settle_ended(device);
    }
    vr_device_unlock(device);
    if (entered) vr_context_leave(&guard);
    if (!known) return refuse(error, "this pool has no capture under way on this stream");
    *graph = result == VR_CU_SUCCESS ? made : 0;
    if (*graph != 0) return vr_error_complete(error, status);
    (void)vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "the capture gave no graph: %s", vr_cu_result_name(result));
    if (error != NULL) error->driver_result = result;
    return VRAM_DRIVER;
}

// --- captures of others -----------------------------------------------------------------------------------------------------------------

enum vram_status vram_capture_enter(struct vram_pool *pool, uint64_t stream) {
    VR_REQUIRE(pool);
    if (stream == 0) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = pool->device;
    vr_capture_count(device->allocator, true);
    vr_device_lock(device);
    const enum vram_status status = enter_locked(pool, stream, true);
    if (status == VRAM_OK) pool->captured = true;
    if (status != VRAM_OK) count_out(device);
    vr_device_unlock(device);
    return status;
}

enum vram_status vram_capture_leave(struct vram_pool *pool, uint64_t stream) {
    VR_REQUIRE(pool);
    struct vr_device *device = pool->device;
    struct vr_context_guard guard;
    vr_gather(device, VR_LEVEL_ALL, 0);
    const bool entered = vr_context_enter(device, &guard) == VRAM_OK;
    vr_device_lock(device);
    struct vr_capture *capture = find_capture(pool, stream, true);
    enum vram_status status = VRAM_INVALID_ARGUMENT;
    if (capture != NULL) {
        leave_locked(device, capture);
        count_out(device);
        status = settle_ended(device);
    }
    vr_device_unlock(device);
    if (entered) vr_context_leave(&guard);
    return status;
}
