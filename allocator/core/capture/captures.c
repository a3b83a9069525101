// Begins and ends captures, whether vram or the caller runs them in the driver.
#include "core/capture/captures.h"
#include "core/device.h"
#include "core/source/backend.h"

// --- begin and end ----------------------------------------------------------------------------------------------------------------------

static enum vram_status refuse_capture(struct vram_error *error, const char *why) {
    return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "%s", why);
}

static enum vram_status make_capture_room(struct vr_device *device) {
    return VR_GROW(&device->captures, items, device->captures.count + 1);
}

// Adds a capture that was already counted, and opens its route; a mark (pool NULL) has no route. Under all locks.
static enum vram_status enter_locked(struct vr_device *device, struct vram_pool *pool, uint64_t stream, bool others) {
    VR_ASSERT_ALL_LOCKED(device);
    const struct vram_route route = {.kind = VRAM_ROUTE_CAPTURE, .stream = stream};
    VR_TRY(make_capture_room(device));
    if (pool != NULL) VR_TRY(vr_route_open(pool, &route));
    device->captures.items[device->captures.count++] =
        (struct vr_capture){.pool = pool, .stream = stream, .thread = vr_os_thread_id(), .others = others};
    return VRAM_OK;
}

// Returns the newest capture into the pool (NULL: the newest mark) on the stream, or NULL.
static struct vr_capture *find_capture(const struct vr_device *device, const struct vram_pool *pool, uint64_t stream, bool others) {
    for (size_t i = device->captures.count; i-- > 0;) {
        struct vr_capture *capture = &device->captures.items[i];
        if (capture->stream == stream && capture->pool == pool && capture->others == others) return capture;
    }
    return NULL;
}

// Removes an ended capture and closes its route. Under all locks.
static void leave_locked(struct vr_device *device, struct vr_capture *capture) {
    VR_ASSERT_ALL_LOCKED(device);
    const struct vram_route route = {.kind = VRAM_ROUTE_CAPTURE, .stream = capture->stream};
    struct vram_pool *pool = capture->pool;
    const size_t after = (size_t)(&device->captures.items[--device->captures.count] - capture);
    memmove(capture, capture + 1, after * sizeof *capture);
    if (pool != NULL) (void)vr_route_close(pool, &route);
}

static void count_out(struct vr_device *device) {
    vr_capture_count(device->allocator, false);
    vr_capture_gate(device);
}

// Opens the route before the driver begins, so that no request in between misses it (allocator.md §captures).
static enum vram_status begin_locked(struct vram_pool *pool, uint64_t stream, enum vram_capture_mode mode, struct vram_error *error) {
    struct vr_device *device = pool->device;
    int state = VR_CU_STREAM_CAPTURE_STATUS_NONE;
    (void)vr_cu(device->allocator->driver, stream_is_capturing, stream, &state);
    if (state != VR_CU_STREAM_CAPTURE_STATUS_NONE) return refuse_capture(error, "this stream is already capturing");
    VR_TRY(enter_locked(device, pool, stream, false));
    const vr_cu_result result = vr_cu(device->allocator->driver, stream_begin_capture, stream, (int)mode);
    if (result != VR_CU_SUCCESS) {
        leave_locked(device, find_capture(device, pool, stream, false));
        (void)vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "the driver refused to begin the capture: %s", vr_cu_result_name(result));
        if (error != NULL) error->driver_result = result;
        return VRAM_DRIVER;
    }
    vr_private_mark_captured(pool);
    return VRAM_OK;
}

enum vram_status vram_capture_begin(struct vram_pool *pool, uint64_t stream, enum vram_capture_mode mode, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, pool);
    if (stream == 0) return refuse_capture(error, "the default stream cannot be captured; use a stream of your own");
    if ((unsigned)mode > VRAM_CAPTURE_RELAXED) return refuse_capture(error, "unknown capture mode");
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

static vr_cu_result give_graph(struct vram_driver *driver, uint64_t graph, uint64_t size) {
    (void)size;
    return vr_cu(driver, graph_destroy, graph);
}

// Also returns true if the driver gives no answer.
static bool may_capture(struct vram_driver *driver, uint64_t stream) {
    int status = VR_CU_STREAM_CAPTURE_STATUS_NONE;
    return vr_cu(driver, stream_is_capturing, stream, &status) != VR_CU_SUCCESS || status != VR_CU_STREAM_CAPTURE_STATUS_NONE;
}

// Ends the stream's capture in the driver. Retries while a failed call leaves the stream capturing, because the stream would be unusable.
// Returns the result of the first call.
static vr_cu_result end_in_driver(struct vr_device *device, uint64_t stream, uint64_t *graph) {
    struct vram_driver *driver = device->allocator->driver;
    const vr_cu_result result = vr_cu(driver, stream_end_capture, stream, graph);
    bool ended = result == VR_CU_SUCCESS;
    for (int tries = 1; !ended && tries < VR_CU_TRIES && may_capture(driver, stream); tries++) {
        uint64_t unwanted = 0;
        ended = vr_cu(driver, stream_end_capture, stream, &unwanted) == VR_CU_SUCCESS;
        if (ended && unwanted != 0) (void)vr_give_back(device, &(struct vr_driver_memory){give_graph, unwanted, 0});
    }
    return result;
}

// Completes deferred frees after a capture has ended. With graph_capture_record_stream_reuse the pool's blocks become free at once; all
// others with the next request. Frees a pool that has neither references nor memory. Under all locks.
static enum vram_status settle_ended(struct vr_device *device, struct vram_pool *pool) {
    VR_ASSERT_ALL_LOCKED(device);
    const bool late = device->options.graph_capture_record_stream_reuse && pool != NULL && !vr_device_captures(device);
    const enum vram_status status = late ? vr_deferred_convert_pool(device, pool) : VRAM_OK;
    if (!vr_any_captures(device)) vr_pasts_release(&device->captures.pasts);
    if (pool != NULL) vr_private_bury_one(pool);
    return status;
}

// Ends the capture for the allocator even if the driver fails or no context can be entered.
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
    struct vr_capture *capture = find_capture(device, pool, stream, false);
    const bool known = capture != NULL;
    if (known) {
        const struct vr_backend_ops *backend = device->allocator->backend;
        if (backend->before_capture_end != NULL) backend->before_capture_end(device, stream);
        result = end_in_driver(device, stream, &made);
        leave_locked(device, capture);
        count_out(device);
        (void)!settle_ended(device, pool); // the next request retries what the driver refuses here
    }
    vr_device_unlock(device);
    if (entered) vr_context_leave(&guard);
    if (!known) return refuse_capture(error, "no capture into this pool is in progress on this stream");
    *graph = result == VR_CU_SUCCESS ? made : 0;
    if (*graph != 0) return VRAM_OK;
    (void)vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "the capture returned no graph: %s", vr_cu_result_name(result));
    if (error != NULL) error->driver_result = result;
    return VRAM_DRIVER;
}

// --- captures of others -----------------------------------------------------------------------------------------------------------------

static enum vram_status enter_capture(struct vr_device *device, struct vram_pool *pool, uint64_t stream) {
    vr_capture_count(device->allocator, true);
    vr_device_lock(device);
    const enum vram_status status = enter_locked(device, pool, stream, true);
    if (status == VRAM_OK && pool != NULL) vr_private_mark_captured(pool);
    if (status != VRAM_OK) count_out(device);
    vr_device_unlock(device);
    return status;
}

// The caller has called vr_gather().
static enum vram_status leave_capture(struct vr_device *device, struct vram_pool *pool, uint64_t stream) {
    struct vr_context_guard guard;
    const bool entered = vr_context_enter(device, &guard) == VRAM_OK;
    vr_device_lock(device);
    struct vr_capture *capture = find_capture(device, pool, stream, true);
    enum vram_status status = VRAM_INVALID_ARGUMENT;
    if (capture != NULL) {
        leave_locked(device, capture);
        if (pool == NULL) device->captures.mark_ended = device->captures.deferred_count != 0;
        count_out(device);
        status = settle_ended(device, pool);
    }
    vr_device_unlock(device);
    if (entered) vr_context_leave(&guard);
    return status;
}

enum vram_status vram_capture_enter(struct vram_pool *pool, uint64_t stream) {
    VR_REQUIRE(pool);
    return stream == 0 ? VRAM_INVALID_ARGUMENT : enter_capture(pool->device, pool, stream);
}

enum vram_status vram_capture_leave(struct vram_pool *pool, uint64_t stream) {
    VR_REQUIRE(pool);
    vr_gather(pool->device, VR_LEVEL_ALL, 0);
    return leave_capture(pool->device, pool, stream);
}

enum vram_status vram_capture_mark_begin(struct vram_allocator *allocator, uint32_t ordinal, uint64_t stream) {
    VR_REQUIRE(allocator);
    struct vr_device *device = NULL;
    VR_TRY(vr_device_get(allocator, ordinal, &device));
    return enter_capture(device, NULL, stream);
}

enum vram_status vram_capture_mark_end(struct vram_allocator *allocator, uint32_t ordinal, uint64_t stream) {
    VR_REQUIRE(allocator);
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    if (device == NULL) return VRAM_INVALID_ARGUMENT;
    vr_gather(device, VR_LEVEL_ALL, 0);
    return leave_capture(device, NULL, stream);
}

void vr_captures_release(struct vr_captures *captures) {
    free(captures->items);
    while (captures->first_deferred != NULL) {
        struct vr_deferred *deferred = captures->first_deferred;
        captures->first_deferred = deferred->next;
        free(deferred->markers);
        free(deferred);
    }
    free(captures->ready);
    free(captures->blockers);
    vr_pasts_release(&captures->pasts);
    *captures = (struct vr_captures){0};
}
