// malloc under all locks of the device: fences, callbacks, garbage collection, new memory, the ladder of retries, the report.
#include "core/events.h"
#include "core/oom.h"
#include "core/release.h"
#include "core/serve.h"
#include "core/source.h"

// How an attempt to get new memory ended.
struct attempt {
    enum vram_status status;
    bool limit_hit;
};

void vr_hand_out_slow(const struct vr_request *request, uint32_t block, bool loose) {
    struct vr_device *device = request->shard->device;
    const struct vr_block *item = vr_block_at(device->allocator, block);
    const uint64_t given = vr_pool_splits(device, item, request->rounded) ? request->rounded : item->size;
    struct vr_delta delta;
    vr_delta_of_malloc(item, given, request->size_bytes, &delta);
    vr_totals_apply(&device->totals, &request->shard->counters, request->kind, &delta, 0, 0);
    if (given >= device->options.max_split_bytes) vr_stat_add(&device->oversize_allocations, 1);
    vr_hand_out(request, block, given, loose);
}

// One search counts as one tick of the garbage collector's clock, while it is on.
static uint32_t search(const struct vr_request *request) {
    struct vr_device *device = request->shard->device;
    if (device->limit_bytes != VR_UNLIMITED && device->options.garbage_collection_threshold > 0) device->clock[request->kind]++;
    return vr_pool_search(device, &request->shard->pool[request->kind], request->rounded);
}

// The allowed share of the option, checked before the driver is asked (3.4.4).
static bool is_rejected(const struct vr_device *device, uint64_t held, uint64_t segment_bytes) {
    if (!device->options.throw_on_malloc_oom) return false;
    const uint64_t most = (uint64_t)(device->options.per_process_memory_fraction * (double)device->total_bytes);
    return held + segment_bytes > most;
}

static struct attempt get_memory(const struct vr_request *request, uint32_t *block) {
    struct vr_device *device = request->shard->device;
    const uint64_t segment_bytes = vr_segment_size(&device->options, request->rounded);
    const uint64_t held = (uint64_t)device->reserved[VRAM_STAT_ALL].current;
    const bool small = request->kind == VR_SMALL;
    if (device->limit_bytes != VR_UNLIMITED && held + segment_bytes > device->limit_bytes)
        return (struct attempt){VRAM_OUT_OF_MEMORY, true};
    if (is_rejected(device, held, segment_bytes)) {
        device->num_oom_rejections++;
        return (struct attempt){VRAM_REJECTED, true};
    }
    if (device->expandable) return (struct attempt){vr_expandable_grow(request->shard, small, request->rounded, block), false};
    return (struct attempt){vr_segment_make(request->shard, small, segment_bytes, block), false};
}

// The ladder of 3.1.6. Stops at the first success and at anything that is not a lack of memory.
static struct attempt find_memory(const struct vr_request *request, uint32_t *block) {
    struct vr_device *device = request->shard->device;
    if (device->limit_bytes != VR_UNLIMITED && device->options.garbage_collection_threshold > 0) {
        const enum vram_status status = vr_collect_garbage(device);
        if (status != VRAM_OK) return (struct attempt){status, false};
    }
    struct attempt attempt = get_memory(request, block);
    if (attempt.status != VRAM_OUT_OF_MEMORY) return attempt;
    bool enough = false;
    const enum vram_status status = vr_release_available(request->shard, request->kind, request->rounded, &enough);
    if (status != VRAM_OK) return (struct attempt){status, false};
    if (enough) attempt = get_memory(request, block);
    if (attempt.status != VRAM_OUT_OF_MEMORY) return attempt;
    const enum vram_status released = vr_release_all(device);
    if (released != VRAM_OK) return (struct attempt){released, false};
    device->num_alloc_retries++;
    return get_memory(request, block);
}

// Runs the callbacks without the locks. True when one of them freed something.
static bool run_callbacks(struct vr_device *device, uint64_t size_bytes) {
    struct vram_allocator *allocator = device->allocator;
    struct vr_callback callbacks[VR_MAX_CALLBACKS];
    vr_mutex_lock(&allocator->mutex);
    const uint32_t count = atomic_load_explicit(&allocator->callback_count, memory_order_relaxed);
    memcpy(callbacks, allocator->callbacks, count * sizeof *callbacks);
    vr_mutex_unlock(&allocator->mutex);
    bool freed = false;
    for (uint32_t i = 0; i < count; i++) freed |= callbacks[i].function(device->ordinal, size_bytes, callbacks[i].user);
    return freed;
}

static enum vram_status serve_locked(struct vr_request *request, uint64_t *address, struct vram_oom *oom) {
    struct vr_device *device = request->shard->device;
    VR_TRY(vr_fences_poll(device));
    VR_TRY(vr_shard_reserve_records(request->shard, 8));
    uint32_t block = search(request);
    if (block == 0 && atomic_load_explicit(&device->allocator->callback_count, memory_order_relaxed) != 0) {
        vr_device_unlock(device);
        const bool freed = run_callbacks(device, request->size_bytes);
        vr_device_lock(device);
        VR_TRY(vr_shard_reserve_records(request->shard, 8));
        if (freed) block = search(request);
    }
    const bool loose = block == 0;
    if (loose) {
        const struct attempt attempt = find_memory(request, &block);
        if (attempt.status == VRAM_OUT_OF_MEMORY || attempt.status == VRAM_REJECTED) {
            const bool rejected = attempt.status == VRAM_REJECTED;
            vr_oom_describe(request, vr_segment_size(&device->options, request->rounded), rejected, attempt.limit_hit, oom);
            if (!rejected) {
                device->num_ooms++;
                vr_tell(device, VR_RECORD_OOM, oom->device_free_bytes, request->rounded, request->shard->stream);
            }
        }
        VR_TRY(attempt.status);
    }
    // A release on the way may have taken spare records: the split needs one.
    const enum vram_status status = vr_shard_reserve_records(request->shard, 1);
    if (status != VRAM_OK) {
        if (loose) vr_pool_insert(request->shard, block);
        return status;
    }
    *address = vr_block_at(device->allocator, block)->address;
    vr_hand_out_slow(request, block, loose);
    return VRAM_OK;
}

// A failure outside the pools: more than an exabyte was asked for, or the driver refused while caching is off.
static enum vram_status refuse(struct vr_device *device, struct vr_shard *shard, uint64_t size_bytes) {
    const struct vr_request request = {.shard = shard, .size_bytes = size_bytes, .rounded = size_bytes, .kind = VR_LARGE};
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    struct vram_oom oom;
    vr_device_lock(device);
    vr_oom_describe(&request, size_bytes, false, false, &oom);
    vr_device_unlock(device);
    vr_context_leave(&guard);
    vr_oom_announce(device->allocator, &oom);
    return VRAM_OUT_OF_MEMORY;
}

enum vram_status vr_malloc_slow(struct vr_device *device, struct vr_shard *shard, uint64_t size_bytes, uint64_t *address) {
    if (size_bytes >= VR_REQUEST_LIMIT) return refuse(device, shard, size_bytes);
    if ((atomic_load_explicit(&device->gate, memory_order_relaxed) & VR_GATE_RAW) != 0) {
        const enum vram_status status = vr_raw_malloc(device, size_bytes, shard->stream, address);
        return status == VRAM_OUT_OF_MEMORY ? refuse(device, shard, size_bytes) : status;
    }
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    struct vram_oom oom;
    vr_device_lock(device);
    struct vr_request request = {.shard = shard, .size_bytes = size_bytes, .rounded = vr_round_for(device, size_bytes)};
    request.kind = vr_pool_kind(request.rounded);
    const enum vram_status status = serve_locked(&request, address, &oom);
    vr_device_unlock(device);
    vr_context_leave(&guard);
    if (status == VRAM_OUT_OF_MEMORY || status == VRAM_REJECTED) vr_oom_announce(device->allocator, &oom);
    return status;
}
