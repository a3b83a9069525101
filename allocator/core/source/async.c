// backend:cudaMallocAsync: requests and frees, and their handling during graph captures.
#include "core/capture/captures.h"
#include "core/capture/routes.h"
#include "core/oom_report.h"
#include "core/callbacks.h"
#include "core/source/raw.h"
#include "core/alloc.h"
#include "core/source/backend.h"

// --- the driver's pool ------------------------------------------------------------------------------------------------------------------

static enum vram_status set_up_pool(struct vr_device *device) {
    static const int reuse[] = {VR_CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, VR_CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
                                VR_CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES};
    struct vram_driver *driver = device->allocator->driver;
    VR_TRY(vr_driver_status(vr_cu(driver, device_get_default_mem_pool, &device->async.driver_pool, (int)device->ordinal)));
    uint64_t all = UINT64_MAX;
    const int threshold = VR_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    VR_TRY(vr_driver_status(vr_cu(driver, mem_pool_set_attribute, device->async.driver_pool, threshold, &all)));
    for (size_t i = 0; i < VR_COUNT_OF(reuse); i++) {
        int on = 1;
        VR_TRY(vr_driver_status(vr_cu(driver, mem_pool_set_attribute, device->async.driver_pool, reuse[i], &on)));
    }
    return VRAM_OK;
}

// The pool keeps its memory until it is trimmed, and reuses it in every way it can.
static enum vram_status open_pool(struct vr_device *device) {
    int supported = 0;
    const vr_cu_result result = vr_cu(device->allocator->driver, device_get_attribute, &supported,
                                      VR_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, (int)device->ordinal);
    VR_TRY(vr_driver_status(result));
    if (supported == 0) return VRAM_UNSUPPORTED;
    return set_up_pool(device);
}

static void refresh_counters(struct vr_device *device) {
    uint64_t held = 0;
    const int attribute = VR_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
    if (vr_cu(device->allocator->driver, mem_pool_get_attribute, device->async.driver_pool, attribute, &held) != VR_CU_SUCCESS) return;
    const int64_t change = (int64_t)held - device->stats.reserved[VRAM_STAT_ALL].current;
    vr_stat_add(&device->stats.reserved[VRAM_STAT_ALL], change);
    vr_stat_add(&device->stats.reserved[VRAM_STAT_LARGE_POOL], change);
}

// --- waiting for streams ----------------------------------------------------------------------------------------------------------------

static uint64_t capture_of(const struct vr_device *device, uint64_t stream) {
    return vr_any_captures(device) ? vr_capture_id(device, stream) : 0;
}

// Like capture_of(), but returns failures: a request in a capture must not be recorded as outside it. DRIVER.
static enum vram_status ask_capture(const struct vr_device *device, uint64_t stream, uint64_t *capture) {
    int status = VR_CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t id = 0, graph = 0, count = 0;
    const uint64_t *frontier = NULL;
    *capture = 0;
    if (!vr_any_captures(device)) return VRAM_OK;
    const vr_cu_result result = vr_cu(device->allocator->driver, stream_get_capture_info, stream, &status, &id, &graph, &frontier, &count);
    // The default stream never takes part in a capture, and cannot be queried while another stream captures.
    if (result == VR_CU_STREAM_CAPTURE_IMPLICIT) return VRAM_OK;
    if (result == VR_CU_SUCCESS && status == VR_CU_STREAM_CAPTURE_STATUS_ACTIVE) *capture = id;
    return vr_driver_status(result);
}

static vr_cu_result give_event(struct vram_driver *driver, uint64_t event, uint64_t size) {
    (void)size;
    return vr_cu(driver, event_destroy, event);
}

// Makes `waiter` wait for the present work of `stream`, which may be another device's.
static vr_cu_result wait_for(struct vr_device *device, uint64_t waiter, uint64_t stream) {
    struct vram_driver *driver = device->allocator->driver;
    uint64_t context = device->context, event = 0;
    vr_cu_result result = stream == 0 ? VR_CU_SUCCESS : vr_cu(driver, stream_get_ctx, stream, &context);
    if (result == VR_CU_SUCCESS && context != device->context) result = vr_cu(driver, ctx_set_current, context);
    if (result != VR_CU_SUCCESS) return result;
    result = vr_cu(driver, event_create, &event, VR_CU_EVENT_DISABLE_TIMING);
    if (result == VR_CU_SUCCESS) {
        result = vr_cu(driver, event_record, event, stream);
        if (result == VR_CU_SUCCESS) result = vr_cu(driver, stream_wait_event, waiter, event, 0);
        (void)vr_give_back(device, &(struct vr_driver_memory){give_event, event, 0});
    }
    if (context != device->context) VR_CU_INSIST(driver, ctx_set_current, device->context);
    return result;
}

// Gets a stream that frees blocks used by several streams: one for all frees outside captures, one for each capture.
static enum vram_status take_unifier(struct vr_device *device, uint64_t capture, uint64_t *stream) {
    struct vr_unifier *found = NULL;
    for (size_t i = 0; i < device->async.unifier_count; i++) {
        struct vr_unifier *unifier = &device->async.unifiers[i];
        if (unifier->capture == capture || (found == NULL && unifier->capture == 0)) found = unifier;
    }
    if (found != NULL) {
        found->capture = capture;
        *stream = found->stream;
        return VRAM_OK;
    }
    VR_TRY(VR_GROW(&device->async, unifiers, device->async.unifier_count + 1));
    VR_TRY(vr_driver_status(vr_cu(device->allocator->driver, stream_create, stream, VR_CU_STREAM_NON_BLOCKING)));
    device->async.unifiers[device->async.unifier_count++] = (struct vr_unifier){*stream, capture};
    return VRAM_OK;
}

// A free in a capture leaves its stream unjoined. Reserve room first, because a free cannot be undone.
static enum vram_status make_join_room(struct vr_device *device) { return VR_GROW(&device->async, joins, device->async.join_count + 1); }

static void note_join(struct vr_device *device, uint64_t stream, uint64_t capture) {
    for (size_t i = 0; i < device->async.join_count; i++) {
        if (device->async.joins[i].stream == stream && device->async.joins[i].capture == capture) return;
    }
    device->async.joins[device->async.join_count++] = (struct vr_unifier){stream, capture};
}

// Joins the streams on which blocks were freed to the capture again. The driver reports a failure when the capture ends.
static void rejoin_stream(struct vr_device *device, uint64_t stream) {
    const uint64_t capture = capture_of(device, stream);
    size_t kept = 0;
    for (size_t i = 0; i < device->async.join_count; i++) {
        const struct vr_unifier join = device->async.joins[i];
        if (join.capture != capture && capture != 0) {
            device->async.joins[kept++] = join;
        } else if (capture != 0 && join.stream != stream) {
            (void)wait_for(device, stream, join.stream);
        }
    }
    device->async.join_count = kept;
    for (size_t i = 0; i < device->async.unifier_count; i++) {
        // Streams of a capture that was lost become free too.
        struct vr_unifier *unifier = &device->async.unifiers[i];
        if (unifier->capture == capture || vr_capture_id(device, unifier->stream) == 0) unifier->capture = 0;
    }
}

// --- frees ------------------------------------------------------------------------------------------------------------------------------

// Adds one block (1), removes one (-1) or changes nothing (0), for each of three counters: allocated, requested, waiting. A postponed free
// moves the block from "allocated" to "waiting" at once, and out of "requested" and "waiting" when it completes.
static void book_block(struct vr_device *device, const struct vr_raw_block *block, int64_t allocated, int64_t requested, int64_t waiting) {
    const int64_t size = (int64_t)block->size;
    const struct vr_delta delta = {{
        [VR_F_COUNT] = allocated,
        [VR_F_BYTES] = allocated * size,
        [VR_F_REQUESTED] = requested * size,
    }};
    vr_totals_book_waiting(&device->stats.totals, VR_LARGE, waiting, waiting * size);
    vr_totals_book(&device->stats.totals, VR_LARGE, &delta);
}

// Gets the stream that frees the block, after making it wait for all streams that used the block. capture 0: outside captures.
static enum vram_status order_free(struct vr_device *device, const struct vr_raw_block *block, uint64_t capture, uint64_t *stream,
                                   vr_cu_result *result) {
    const struct vram_allocator *allocator = device->allocator;
    *stream = block->stream;
    *result = VR_CU_SUCCESS;
    if (block->uses == 0) return VRAM_OK;
    VR_TRY(take_unifier(device, capture, stream));
    *result = wait_for(device, *stream, block->stream);
    for (uint32_t use = block->uses; use != 0 && *result == VR_CU_SUCCESS; use = vr_use_at(allocator, use)->next)
        *result = wait_for(device, *stream, vr_use_at(allocator, use)->stream);
    return VRAM_OK;
}

// Returns whether a running capture forbids the free, because its graph would free a block that it did not allocate.
static bool must_wait(const struct vr_device *device, const struct vr_raw_block *block) {
    if (!vr_any_captures(device)) return false;
    if (capture_of(device, block->stream) != block->capture) return vr_is_capturing(device, block->stream);
    for (uint32_t use = block->uses; use != 0; use = vr_use_at(device->allocator, use)->next) {
        const uint64_t stream = vr_use_at(device->allocator, use)->stream;
        if (vr_is_capturing(device, stream) && capture_of(device, stream) != block->capture) return true;
    }
    return false;
}

// The driver does not know a captured block that no launch has allocated, or whose graph was destroyed.
static enum vram_status give_to_driver(struct vr_device *device, const struct vr_raw_block *block) {
    struct vram_driver *driver = device->allocator->driver;
    const uint64_t capture = block->capture != 0 && capture_of(device, block->stream) == block->capture ? block->capture : 0;
    uint64_t stream = 0;
    vr_cu_result result = VR_CU_SUCCESS;
    if (capture != 0) VR_TRY(make_join_room(device));
    VR_TRY(order_free(device, block, capture, &stream, &result));
    const uint64_t base = block->address - device->allocator->front_redzone;
    if (result == VR_CU_SUCCESS) result = vr_cu(driver, mem_free_async, base, stream);
    // A destroyed stream cannot free: mem_free waits for the device instead.
    if (vr_stream_is_gone(result) && !vr_any_captures(device)) result = vr_cu(driver, mem_free, base);
    if (result == VR_CU_INVALID_VALUE && block->capture != 0 && capture == 0) result = VR_CU_SUCCESS;
    if (result == VR_CU_SUCCESS && capture != 0) note_join(device, stream, capture);
    return vr_driver_status(result);
}

static void forget_uses(struct vram_allocator *allocator, uint32_t use) {
    while (use != 0) {
        const uint32_t next = vr_use_at(allocator, use)->next;
        vr_slab_give(&allocator->uses, use);
        use = next;
    }
}

static enum vram_status free_locked(struct vr_device *device, struct vr_raw_block *block) {
    struct vram_allocator *allocator = device->allocator;
    if (must_wait(device, block)) {
        block->postponed = true;
        vr_raw_change(allocator, block);
        device->async.postponed_count++;
        vr_notify_raw(device, VR_RECORD_FREE_REQUESTED, block);
        book_block(device, block, -1, 0, 1);
        return VRAM_OK;
    }
    VR_TRY(give_to_driver(device, block));
    vr_notify_raw(device, VR_RECORD_FREE_REQUESTED, block);
    vr_notify_raw(device, VR_RECORD_FREE_COMPLETED, block);
    vr_raw_forget(allocator, block->address);
    book_block(device, block, -1, -1, 0);
    forget_uses(allocator, block->uses);
    return VRAM_OK;
}

static enum vram_status async_free(struct vram_allocator *allocator, uint64_t address) {
    struct vr_raw_block block;
    if (!vr_raw_find(allocator, address, &block) || !block.driver_pool) return VRAM_INVALID_POINTER;
    struct vr_device *device = vr_device_if_used(allocator, block.device);
    vr_gather(device, VR_LEVEL_ALL, 3);
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    vr_device_lock_guarded(device, &guard);
    // Another thread may have freed the block meanwhile.
    const bool there = vr_raw_find(allocator, address, &block) && block.driver_pool;
    const enum vram_status status = there ? free_locked(device, &block) : VRAM_INVALID_POINTER;
    vr_device_unlock(device);
    vr_context_leave(&guard);
    return status;
}

static enum vram_status free_postponed_block(struct vr_device *device, const struct vr_raw_block *block) {
    VR_TRY(give_to_driver(device, block));
    device->async.postponed_count--;
    vr_notify_raw(device, VR_RECORD_FREE_COMPLETED, block);
    vr_raw_forget(device->allocator, block->address);
    book_block(device, block, 0, -1, -1);
    forget_uses(device->allocator, block->uses);
    return VRAM_OK;
}

// Does the postponed frees that no capture forbids any more. Removing a block may move another one into its slot. A further pass finds what
// other devices moved in the table meanwhile.
static enum vram_status free_postponed(struct vr_device *device) {
    enum vram_status first = VRAM_OK;
    for (bool freed = true; freed && device->async.postponed_count != 0;) {
        struct vr_raw_block block;
        freed = false;
        for (size_t at = 0; device->async.postponed_count != 0 && vr_raw_next_postponed(device->allocator, device->ordinal, &at, &block);) {
            if (must_wait(device, &block)) continue;
            const enum vram_status status = free_postponed_block(device, &block);
            if (first == VRAM_OK) first = status;
            if (status != VRAM_OK) continue;
            freed = true;
            at--;
        }
    }
    return first;
}

// Runs before a request. Does not query the driver about every block again while the captures are unchanged.
static enum vram_status free_postponed_after_change(struct vr_device *device) {
    const uint64_t changes = atomic_load_explicit(&device->allocator->capture_changes, memory_order_acquire);
    if (changes == device->async.postponed_changes && vr_any_captures(device)) return VRAM_OK;
    device->async.postponed_changes = changes;
    return free_postponed(device);
}

// --- requests ---------------------------------------------------------------------------------------------------------------------------

// Does the postponed frees that no capture forbids any more. Then waits for the device and returns the pool's unused memory.
static enum vram_status trim_driver_pool(struct vr_device *device) {
    struct vram_driver *driver = device->allocator->driver;
    enum vram_status first = free_postponed(device);
    if (vr_device_captures(device)) return first;
    vr_cu_result result = vr_cu(driver, ctx_synchronize, 0);
    device->stats.num_sync_all_streams++;
    if (result == VR_CU_SUCCESS) result = vr_cu(driver, mem_pool_trim_to, device->async.driver_pool, 0);
    refresh_counters(device);
    return first != VRAM_OK ? first : vr_driver_status(result);
}

// Allocates from the driver's pool. If memory is short, waits for the device, trims the pool, and tries again.
static vr_cu_result ask_driver_pool(struct vr_device *device, uint64_t size_bytes, uint64_t stream, bool capturing, uint64_t *address) {
    struct vram_driver *driver = device->allocator->driver;
    vr_cu_result result = vr_cu(driver, mem_alloc_from_pool_async, address, size_bytes, device->async.driver_pool, stream);
    if (result != VR_CU_OUT_OF_MEMORY || capturing || vr_device_captures(device)) return result;
    if (trim_driver_pool(device) != VRAM_OK) return result;
    device->stats.num_alloc_retries++;
    return vr_cu(driver, mem_alloc_from_pool_async, address, size_bytes, device->async.driver_pool, stream);
}

static enum vram_status fail_request(const struct vr_alloc_request *request, vr_cu_result result, bool limit_hit, struct vram_oom *oom) {
    struct vr_device *device = request->shard->device;
    if (!limit_hit && result != VR_CU_OUT_OF_MEMORY) return VRAM_DRIVER;
    refresh_counters(device);
    vr_oom_describe(request, request->size_bytes, false, limit_hit, oom);
    const uint64_t held = oom->reserved_bytes, used = oom->allocated_bytes + oom->pending_bytes;
    oom->cached_bytes = held > used ? held - used : 0;
    device->stats.num_ooms++;
    vr_notify(device, VR_RECORD_OOM, oom->device_free_bytes, request->size_bytes, request->shard->stream);
    return VRAM_OUT_OF_MEMORY;
}

static enum vram_status serve_locked(const struct vr_alloc_request *request, const struct vram_pool *pool, uint64_t *address,
                                     struct vram_oom *oom) {
    struct vr_device *device = request->shard->device;
    struct vram_allocator *allocator = device->allocator;
    const uint64_t stream = request->shard->stream;
    VR_TRY(free_postponed_after_change(device));
    if (pool == NULL && device->routes.count != 0) pool = vr_route(device, stream);
    struct vr_raw_block block = {.size = request->size_bytes, .stream = stream, .device = device->ordinal, .driver_pool = true};
    VR_TRY(ask_capture(device, stream, &block.capture));
    block.stack = vr_has_listener(device) ? vr_current_stack : 0;
    if (pool != NULL) block.pool = pool->id;
    const uint64_t used = (uint64_t)vr_totals_active(&device->stats.totals, VR_LARGE, VR_F_BYTES);
    if (device->limit_bytes != VR_UNLIMITED && (used > device->limit_bytes || request->size_bytes > device->limit_bytes - used))
        return fail_request(request, VR_CU_OUT_OF_MEMORY, true, oom);
    const uint64_t bytes = request->size_bytes + 2 * allocator->front_redzone;
    uint64_t base = 0;
    const vr_cu_result result = ask_driver_pool(device, bytes, stream, block.capture != 0, &base);
    if (result != VR_CU_SUCCESS) return fail_request(request, result, false, oom);
    block.address = base + allocator->front_redzone;
    const enum vram_status status = vr_raw_remember(allocator, &block);
    if (status != VRAM_OK) {
        VR_CU_INSIST(allocator->driver, mem_free_async, base, stream);
        return status;
    }
    book_block(device, &block, 1, 1, 0);
    refresh_counters(device);
    vr_notify_raw(device, VR_RECORD_ALLOC, &block);
    *address = block.address;
    return VRAM_OK;
}

// Callbacks run before the request fails, because they may free memory.
static enum vram_status async_malloc(struct vr_shard *shard, struct vram_pool *pool, uint64_t size_bytes, uint64_t *address) {
    struct vr_device *device = shard->device;
    const struct vr_alloc_request request = {.shard = shard, .size_bytes = size_bytes, .rounded = size_bytes, .kind = VR_LARGE};
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    struct vram_oom oom;
    vr_device_lock_guarded(device, &guard);
    enum vram_status status = serve_locked(&request, pool, address, &oom);
    vr_device_unlock(device);
    bool freed = false;
    const enum vram_status ran = status == VRAM_OUT_OF_MEMORY ? vr_run_callbacks(device, size_bytes, &freed) : VRAM_OK;
    if (ran == VRAM_OK && freed) {
        vr_device_lock_guarded(device, &guard);
        status = serve_locked(&request, pool, address, &oom);
        vr_device_unlock(device);
    }
    vr_context_leave(&guard);
    if (ran != VRAM_OK) return ran;
    if (status == VRAM_OUT_OF_MEMORY) vr_oom_announce(device->allocator, &oom);
    return status;
}

// --- uses on other streams --------------------------------------------------------------------------------------------------------------

static enum vram_status add_use(struct vram_allocator *allocator, struct vr_raw_block *block, uint64_t stream) {
    const uint32_t before = block->uses;
    VR_TRY(vr_uses_enter(allocator, &block->uses, stream, false, NULL));
    if (block->uses != before) vr_raw_change(allocator, block);
    return VRAM_OK;
}

static enum vram_status record_stream(struct vram_allocator *allocator, uint64_t address, uint64_t stream) {
    struct vr_raw_block block;
    if (!vr_raw_find(allocator, address, &block)) return VRAM_INVALID_POINTER;
    // The block was allocated while caching was off: the driver's free waits for the device.
    if (!block.driver_pool || block.stream == stream) return VRAM_OK;
    struct vr_device *device = vr_device_if_used(allocator, block.device);
    vr_device_lock(device);
    const bool there = vr_raw_find(allocator, address, &block);
    const enum vram_status status = there ? add_use(allocator, &block, stream) : VRAM_INVALID_POINTER;
    vr_device_unlock(device);
    return status;
}

// --- giving back ------------------------------------------------------------------------------------------------------------------------

static void close_pool(struct vr_device *device) {
    struct vram_driver *driver = device->allocator->driver;
    struct vr_context_guard guard;
    if (vr_context_insist(device, &guard)) {
        VR_CU_INSIST(driver, ctx_synchronize, 0);
        VR_CU_INSIST(driver, mem_pool_trim_to, device->async.driver_pool, 0);
        for (size_t i = 0; i < device->async.unifier_count; i++) VR_CU_INSIST(driver, stream_destroy, device->async.unifiers[i].stream);
        vr_context_leave(&guard);
    }
    free(device->async.unifiers);
    free(device->async.joins);
}

// --- the check --------------------------------------------------------------------------------------------------------------------------

static enum vram_status check_async(const struct vr_device *device, struct vram_error *error) {
    struct vr_raw_sums sums;
    vr_raw_sum(device, &sums);
    const struct vr_totals *totals = &device->stats.totals;
    if (sums.count != vr_totals_current(totals, VR_LARGE, VR_F_COUNT) || sums.bytes != vr_totals_current(totals, VR_LARGE, VR_F_BYTES) ||
        sums.requested != vr_totals_current(totals, VR_LARGE, VR_F_REQUESTED))
        return vr_fail(error, VRAM_MISMATCH, VRAM_NO_OFFSET, "the counters disagree with the blocks of the driver's pool");
    if (sums.postponed != (int64_t)device->async.postponed_count || sums.postponed != totals->waiting[VR_F_COUNT].current[VR_LARGE])
        return vr_fail(error, VRAM_MISMATCH, VRAM_NO_OFFSET, "postponed frees are miscounted");
    return VRAM_OK;
}

const struct vr_backend_ops vr_backend_async = {
    .open = open_pool,
    .close = close_pool,
    .malloc = async_malloc,
    .free = async_free,
    .record_stream = record_stream,
    .trim = trim_driver_pool,
    .refresh = refresh_counters,
    .before_capture_end = rejoin_stream,
    .check = check_async,
};
