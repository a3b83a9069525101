#include "core/device.h"

enum { SPINS_BEFORE_YIELD = 200, MANY_AWAKE = 64 };

static void add_awake(struct vr_device *device, struct vr_shard *shard) {
    device->awake[device->awake_count] = shard;
    device->counters[device->awake_count++] = &shard->counters;
}

// Takes the lock of a shard that rests. False when it does not rest any more.
static bool wake(struct vr_shard *shard) {
    struct vr_device *device = shard->device;
    vr_mutex_lock(&device->mutex);
    const bool rests = atomic_load_explicit(&shard->lock, memory_order_relaxed) == VR_SHARD_RESTS;
    if (rests) {
        atomic_store_explicit(&shard->lock, VR_SHARD_LOCKED, memory_order_relaxed);
        add_awake(device, shard);
        vr_totals_wake(&device->totals, &shard->counters);
    }
    vr_mutex_unlock(&device->mutex);
    return rests;
}

void vr_shard_lock_contended(struct vr_shard *shard) {
    for (unsigned spins = 0;; spins++) {
        uint32_t state = atomic_load_explicit(&shard->lock, memory_order_relaxed);
        if (state == VR_SHARD_RESTS && wake(shard)) return;
        if (state == VR_SHARD_OPEN &&
            atomic_compare_exchange_weak_explicit(&shard->lock, &state, VR_SHARD_LOCKED, memory_order_acquire, memory_order_relaxed)) {
            return;
        }
        if (spins >= SPINS_BEFORE_YIELD) vr_os_yield();
    }
}

void vr_device_lock(struct vr_device *device) {
    vr_mutex_lock(&device->mutex);
    for (uint32_t i = 0; i < device->awake_count; i++) {
        struct vr_shard *shard = device->awake[i];
        vr_shard_lock(shard);
        for (int p = 0; p < VR_POOLS; p++) {
            if (shard->pool[p].last != 0) vr_pool_settle(shard, &shard->pool[p]); // a pool that nobody used is not written to
        }
    }
    vr_totals_gather(&device->totals, device->counters, device->awake_count);
}

// Whether the shard handed anything out since the last time it was asked.
static bool is_in_use(struct vr_shard *shard) {
    const struct vr_counters *counters = &shard->counters;
    const int64_t handed_out = counters->increased[VR_SMALL][VR_F_COUNT] + counters->increased[VR_LARGE][VR_F_COUNT];
    const bool changed = handed_out != shard->handed_out;
    shard->handed_out = handed_out;
    return changed;
}

// Lets shards rest that are not of the default pools and, where these are many, those that were not in use.
static void lay_to_rest(struct vr_device *device) {
    const uint32_t count = device->awake_count;
    device->awake_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct vr_shard *shard = device->awake[i];
        if (shard->owner == NULL && !shard->idle && (count <= MANY_AWAKE || is_in_use(shard))) {
            add_awake(device, shard);
        } else {
            atomic_store_explicit(&shard->lock, VR_SHARD_RESTS, memory_order_release);
        }
    }
}

void vr_device_unlock(struct vr_device *device) {
    lay_to_rest(device);
    vr_totals_share(&device->totals, device->counters, device->awake_count);
    for (uint32_t i = device->awake_count; i-- > 0;) vr_shard_unlock(device->awake[i]);
    vr_mutex_unlock(&device->mutex);
}

static void relax(const struct vr_device *device, struct vr_context_guard *guard) {
    if (guard->relaxed || (atomic_load_explicit(&device->gate, memory_order_relaxed) & VR_GATE_CAPTURE) == 0) return;
    guard->relaxed = vr_cu(guard->driver, thread_exchange_capture_mode, &guard->capture_mode) == VR_CU_SUCCESS;
}

enum vram_status vr_context_enter(struct vr_device *device, struct vr_context_guard *guard) {
    struct vram_driver *driver = device->allocator->driver;
    *guard = (struct vr_context_guard){.driver = driver, .capture_mode = VR_CU_STREAM_CAPTURE_MODE_RELAXED};
    VR_TRY(vr_driver_status(vr_cu(driver, ctx_get_current, &guard->previous)));
    if (guard->previous != device->context) {
        VR_TRY(vr_driver_status(vr_cu(driver, ctx_set_current, device->context)));
        guard->changed = true;
    }
    relax(device, guard);
    return VRAM_OK;
}

void vr_device_lock_guarded(struct vr_device *device, struct vr_context_guard *guard) {
    vr_device_lock(device);
    relax(device, guard);
}

void vr_context_leave(struct vr_context_guard *guard) {
    // Nothing can be done about a failure: the thread keeps the device's context, or the relaxed mode.
    if (guard->relaxed) (void)vr_cu(guard->driver, thread_exchange_capture_mode, &guard->capture_mode);
    if (guard->changed) (void)vr_cu(guard->driver, ctx_set_current, guard->previous);
}

void vr_device_gate(struct vr_device *device, uint32_t bit, bool on) {
    if (on) {
        atomic_fetch_or_explicit(&device->gate, bit, memory_order_acq_rel);
    } else {
        atomic_fetch_and_explicit(&device->gate, ~bit, memory_order_acq_rel);
    }
}

static bool expands(const struct vr_device *device, const struct vram_pool *owner) {
    return device->expandable && (owner == NULL || owner->options.allocate == NULL);
}

static void dress_shard(struct vr_shard *shard, struct vram_pool *owner, uint64_t stream) {
    shard->stream = stream;
    shard->owner = owner;
    shard->idle = false;
    shard->expandable = expands(shard->device, owner);
    shard->whole = owner != NULL && owner->options.no_split;
}

void vr_device_apply_options(struct vr_device *device, const struct vr_options *options) {
    device->options = *options;
    // No request is larger, and sums stay in their range.
    if (device->options.large_segment_bytes > VR_REQUEST_LIMIT) device->options.large_segment_bytes = VR_REQUEST_LIMIT;
    device->expandable = options->expandable_segments && device->granularity != 0;
    const uint32_t count = atomic_load_explicit(&device->shard_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) device->shards[i]->expandable = expands(device, device->shards[i]->owner);
    device->divisions = false;
    for (int i = 0; i < VR_ROUNDUP_BUCKETS; i++) device->divisions |= options->roundup_divisions[i] > 1;
    vr_device_gate(device, VR_GATE_COLLECT, options->garbage_collection_threshold > 0 && device->limit_bytes != VR_UNLIMITED);
}

// --- shards -----------------------------------------------------------------------------------------------------------

static enum vram_status grow_shard_arrays(struct vr_device *device, uint32_t count) {
    void *shards = device->shards, *awake = device->awake, *counters = device->counters;
    size_t capacity = device->shard_capacity;
    enum vram_status status = vr_grow(&shards, &capacity, count, sizeof *device->shards);
    device->shards = shards;
    VR_TRY(status);
    capacity = device->shard_capacity;
    status = vr_grow(&awake, &capacity, count, sizeof *device->awake);
    device->awake = awake;
    VR_TRY(status);
    capacity = device->shard_capacity;
    status = vr_grow(&counters, &capacity, count, sizeof *device->counters);
    device->counters = counters;
    VR_TRY(status);
    device->shard_capacity = capacity;
    return VRAM_OK;
}

static enum vram_status number_shard(struct vr_device *device, struct vr_shard *made) {
    struct vram_allocator *allocator = device->allocator;
    const uint32_t number = atomic_fetch_add_explicit(&allocator->shard_count, 1, memory_order_relaxed);
    if (number >= VR_MAX_SHARDS) {
        atomic_fetch_sub_explicit(&allocator->shard_count, 1, memory_order_relaxed);
        return VRAM_LIMIT;
    }
    made->number = number;
    allocator->shards[number] = made;
    return VRAM_OK;
}

// A shard at the end of the device's array, in no table. Zero pages: every list empty, no slack.
static enum vram_status make_shard_locked(struct vr_device *device, struct vr_shard **shard) {
    const uint32_t count = atomic_load_explicit(&device->shard_count, memory_order_relaxed);
    if (count >= VR_SHARDS_PER_DEVICE) return VRAM_LIMIT;
    VR_TRY(grow_shard_arrays(device, count + 1));
    void *memory = NULL;
    VR_TRY(vr_os_reserve(sizeof(struct vr_shard), &memory));
    struct vr_shard *made = memory;
    made->device = device;
    const enum vram_status status = number_shard(device, made);
    if (status != VRAM_OK) {
        vr_os_unreserve(memory, sizeof(struct vr_shard));
        return status;
    }
    device->shards[count] = made;
    *shard = made;
    return VRAM_OK;
}

static enum vram_status make_default_shard_locked(struct vr_device *device, uint64_t stream, struct vr_shard **shard) {
    VR_TRY(make_shard_locked(device, shard));
    dress_shard(*shard, NULL, stream);
    const uint32_t count = atomic_load_explicit(&device->shard_count, memory_order_relaxed);
    uint32_t at = (uint32_t)vr_mix64(stream) % VR_SHARD_SLOTS;
    while (atomic_load_explicit(&device->slots[at], memory_order_relaxed) != NULL) at = (at + 1) % VR_SHARD_SLOTS;
    add_awake(device, *shard);
    atomic_store_explicit(&device->slots[at], *shard, memory_order_release);
    atomic_store_explicit(&device->shard_count, count + 1, memory_order_release);
    return VRAM_OK;
}

enum vram_status vr_shard_of_pool(struct vram_pool *pool, uint64_t stream, struct vr_shard **shard) {
    struct vr_device *device = pool->device;
    for (size_t i = 0; i < pool->shard_count; i++) {
        if (pool->shards[i]->stream != stream) continue;
        *shard = pool->shards[i];
        return VRAM_OK;
    }
    void *shards = pool->shards;
    const enum vram_status status = vr_grow(&shards, &pool->shard_capacity, pool->shard_count + 1, sizeof *pool->shards);
    pool->shards = shards;
    VR_TRY(status);
    if (device->idle_count != 0) {
        *shard = device->idle_shards[--device->idle_count];
    } else {
        VR_TRY(make_shard_locked(device, shard));
        atomic_store_explicit(&(*shard)->lock, VR_SHARD_RESTS, memory_order_relaxed);
        atomic_fetch_add_explicit(&device->shard_count, 1, memory_order_release);
    }
    dress_shard(*shard, pool, stream);
    // In the order of the streams, as release gives their memory back (3.7).
    size_t at = pool->shard_count++;
    for (; at > 0 && pool->shards[at - 1]->stream > stream; at--) pool->shards[at] = pool->shards[at - 1];
    pool->shards[at] = *shard;
    return VRAM_OK;
}

enum vram_status vr_shard_make(struct vr_device *device, uint64_t stream, struct vr_shard **shard) {
    vr_mutex_lock(&device->mutex);
    enum vram_status status = VRAM_OK;
    *shard = vr_shard_find(device, stream);
    if (*shard == NULL) status = make_default_shard_locked(device, stream, shard);
    vr_mutex_unlock(&device->mutex);
    return status;
}

static int by_stream(const void *a, const void *b) {
    const uint64_t x = (*(struct vr_shard *const *)a)->stream, y = (*(struct vr_shard *const *)b)->stream;
    return VR_ORDER(x, y);
}

static bool has_free_block(const struct vr_shard *shard) {
    uint64_t any = 0;
    for (unsigned p = 0; p < VR_POOLS; p++) {
        for (size_t i = 0; i < VR_SUMMARY_WORDS; i++) any |= shard->pool[p].index.summary[i];
    }
    return any != 0;
}

enum vram_status vr_device_shards_by_stream(const struct vr_device *device, struct vr_shard ***shards, size_t *count) {
    const uint32_t all = atomic_load_explicit(&device->shard_count, memory_order_relaxed);
    struct vr_shard **listed = malloc((all + 1) * sizeof *listed);
    if (listed == NULL) return VRAM_NO_HOST_MEMORY;
    *count = 0;
    for (uint32_t i = 0; i < all; i++) {
        struct vr_shard *shard = device->shards[i];
        if (shard->owner == NULL && !shard->idle && has_free_block(shard)) listed[(*count)++] = shard;
    }
    qsort(listed, *count, sizeof *listed, by_stream);
    *shards = listed;
    return VRAM_OK;
}

// --- facts of a device ---------------------------------------------------------------------------------------------------------------

struct vr_cu_allocation_prop vr_device_allocation_prop(const struct vr_device *device) {
    return (struct vr_cu_allocation_prop){
        .type = VR_CU_MEM_ALLOCATION_TYPE_PINNED,
        .requested_handle_types = device->handle_types,
        .location = {.type = VR_CU_MEM_LOCATION_TYPE_DEVICE, .id = (int32_t)device->ordinal},
        .gpu_direct_rdma_capable = device->rdma,
    };
}

// The product is exact enough: the nearest double of a byte count below 2^53, rounded to the nearest byte.
uint64_t vr_limit_of_fraction(uint64_t total_bytes, double fraction) {
    return fraction >= 1.0 ? VR_UNLIMITED : (uint64_t)((double)total_bytes * fraction + 0.5);
}

struct vr_device *vr_device_with_context(struct vram_allocator *allocator, uint64_t context) {
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *candidate = vr_device_if_used(allocator, i);
        if (candidate != NULL && candidate->context == context) return candidate;
    }
    return NULL;
}
