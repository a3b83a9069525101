// Devices: their locks, their context, facts about them.
#include "core/device.h"

// Tries between which the processor pauses FIRST_PAUSES times, twice as often, ... up to MOST_PAUSES, and how many of the longest come
// before the system is asked for another thread. A pause takes 10 to 50 ns.
enum { FIRST_PAUSES = 64, MOST_PAUSES = 256, LONG_WAITS_BEFORE_YIELD = 4, FEW_AWAKE = 4 };

void vr_shard_add_awake(struct vr_shard *shard) {
    struct vr_shards *shards = &shard->device->shards;
    shards->awake[shards->awake_count] = shard;
    shards->counters[shards->awake_count++] = &shard->counters;
}

// Takes the lock of a shard that rests. False when it does not rest any more.
static bool wake(struct vr_shard *shard) {
    struct vr_device *device = shard->device;
    vr_mutex_lock(&device->mutex);
    const bool rests = atomic_load_explicit(&shard->lock, memory_order_relaxed) == VR_SHARD_RESTS;
    if (rests) {
        atomic_store_explicit(&shard->lock, VR_SHARD_LOCKED, memory_order_relaxed);
        vr_shard_add_awake(shard);
        vr_totals_wake(&device->stats.totals, &shard->counters);
    }
    vr_mutex_unlock(&device->mutex);
    return rests;
}

// In a loop that waits for another processor: this one does less meanwhile.
static void pause_processor(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile(
        "isb" ::
            : "memory"); // "yield" does nothing on processors without threads of their own; this takes about as long as a pause
#endif
}

// Who waits looks seldom, and ever more so: the lock's line, and the blocks behind it, stay with the thread that works on them, which does
// many calls in the time in which a line goes to the other processor and back. A first look after less than the time of a hundred calls
// finds the lock open between two of them, and takes it away: two threads on one stream then need 29 ns a call instead of 20.
void vr_shard_lock_contended(struct vr_shard *shard) {
    for (unsigned pauses = FIRST_PAUSES, long_waits = 0;;) {
        const uint32_t state = atomic_load_explicit(&shard->lock, memory_order_relaxed);
        if (state == VR_SHARD_OPEN && vr_shard_try_lock(shard)) return;
        if (state == VR_SHARD_RESTS) {
            if (wake(shard)) return;
            continue;
        }
        for (unsigned i = 0; i < pauses; i++) pause_processor();
        if (pauses < MOST_PAUSES) {
            pauses *= 2;
        } else if (++long_waits >= LONG_WAITS_BEFORE_YIELD) {
            vr_os_yield();
        }
    }
}

void vr_device_lock(struct vr_device *device) {
    vr_mutex_lock(&device->mutex);
    vr_device_lock_shards(device);
}

void vr_device_lock_shards(struct vr_device *device) {
    for (uint32_t i = 0; i < device->shards.awake_count; i++) {
        struct vr_shard *shard = device->shards.awake[i];
        vr_shard_lock(shard);
        for (unsigned p = 0; p < VR_POOLS; p++) {
            if (shard->pool[p].last != 0) vr_pool_settle(shard, p); // a pool that nobody used is not written to
        }
    }
}

struct vr_totals *vr_device_gather(struct vr_device *device) {
    struct vr_totals *totals = &device->stats.totals;
    if (!totals->gathered) vr_totals_gather(totals, device->shards.counters, device->shards.awake_count);
    return totals;
}

// Under all locks: a shard that rests is awake, and locked, from now on. Its sums are known where all are.
static void wake_locked(struct vr_shard *shard) {
    if (atomic_load_explicit(&shard->lock, memory_order_relaxed) != VR_SHARD_RESTS) return;
    atomic_store_explicit(&shard->lock, VR_SHARD_LOCKED, memory_order_relaxed);
    vr_shard_add_awake(shard);
    struct vr_totals *totals = &shard->device->stats.totals;
    if (!totals->gathered) vr_totals_wake(totals, &shard->counters);
}

// Who has a shard's lock never waits for the mutex, so that who has the mutex may wait for any shard's lock.
void vr_shard_lock_awake(struct vr_shard *shard) {
    if (atomic_load_explicit(&shard->lock, memory_order_relaxed) == VR_SHARD_RESTS) {
        wake_locked(shard);
    } else {
        vr_shard_lock(shard);
    }
}

bool vr_device_lock_beside(struct vr_shard *shard) {
    if (VR_LIKELY(vr_mutex_try_lock(&shard->device->mutex))) return true;
    vr_shard_unlock(shard);
    vr_mutex_lock(&shard->device->mutex);
    vr_shard_lock_awake(shard);
    return false;
}

void vr_device_book(struct vr_shard *shard, unsigned kind, const struct vr_delta *delta, int64_t pending, int64_t pending_bytes) {
    struct vr_device *device = shard->device;
    if (!device->stats.totals.gathered) {
        wake_locked(shard);
        if (vr_totals_book(&device->stats.totals, &shard->counters, kind, delta, pending, pending_bytes)) return;
    }
    vr_totals_apply(vr_device_gather(device), &shard->counters, kind, delta, pending, pending_bytes);
    // It is at work: it gets the allowance.
    wake_locked(shard);
    atomic_store_explicit(&device->shards.rich, shard, memory_order_relaxed);
    atomic_store_explicit(&device->shards.paired, shard, memory_order_relaxed);
}

// Whether the shard handed anything out, or took anything back, since the last time it was asked.
static bool is_in_use(struct vr_shard *shard) {
    const struct vr_counters *counters = &shard->counters;
    int64_t operations = 0;
    for (unsigned p = 0; p < VR_POOLS; p++)
        operations += 2 * counters->increased[p][VR_F_COUNT] - vr_counters_current(counters, p, VR_F_COUNT);
    const bool changed = operations != shard->operations;
    shard->operations = operations;
    return changed;
}

// Lets shards rest that nobody used, where they are not few, and those that belong to nobody. The rich one stays, and gets what they had.
static void lay_to_rest(struct vr_device *device, struct vr_shard *rich) {
    struct vr_totals *totals = &device->stats.totals;
    const uint32_t count = device->shards.awake_count;
    if (count <= FEW_AWAKE && device->shards.idle_count == 0) return;
    device->shards.awake_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct vr_shard *shard = device->shards.awake[i];
        if (shard == rich || (!shard->idle && (is_in_use(shard) || count <= FEW_AWAKE))) {
            vr_shard_add_awake(shard);
            continue;
        }
        if (!totals->gathered) {
            vr_counters_take_over(&rich->counters, &shard->counters, true);
            vr_totals_rest(totals, &shard->counters);
        }
        atomic_store_explicit(&shard->lock, VR_SHARD_RESTS, memory_order_release);
    }
}

void vr_device_unlock(struct vr_device *device) {
    struct vr_shards *shards = &device->shards;
    struct vr_totals *totals = &device->stats.totals;
    struct vr_shard *rich = atomic_load_explicit(&shards->rich, memory_order_relaxed);
    if (rich == NULL && shards->awake_count != 0) {
        rich = shards->awake[0];
        atomic_store_explicit(&shards->rich, rich, memory_order_relaxed);
    }
    lay_to_rest(device, rich);
    if (totals->gathered) vr_totals_share(totals, shards->counters, shards->awake_count, rich != NULL ? &rich->counters : NULL);
    for (uint32_t i = shards->awake_count; i-- > 0;) vr_shard_unlock(shards->awake[i]);
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

bool vr_context_insist(struct vr_device *device, struct vr_context_guard *guard) {
    for (int tries = 0; tries < VR_CU_TRIES; tries++)
        if (vr_context_enter(device, guard) == VRAM_OK) return true;
    return false;
}

void vr_device_lock_guarded(struct vr_device *device, struct vr_context_guard *guard) {
    vr_device_lock(device);
    relax(device, guard);
}

void vr_context_leave(struct vr_context_guard *guard) {
    // Nothing can be done about a failure: the thread keeps the device's context, or the relaxed mode.
    if (guard->relaxed) VR_CU_INSIST(guard->driver, thread_exchange_capture_mode, &guard->capture_mode);
    if (guard->changed) VR_CU_INSIST(guard->driver, ctx_set_current, guard->previous);
}

void vr_device_gate(struct vr_device *device, uint32_t bit, bool on) {
    if (vr_is_single_threaded()) {
        const uint32_t gate = atomic_load_explicit(&device->gate, memory_order_relaxed);
        atomic_store_explicit(&device->gate, on ? gate | bit : gate & ~bit, memory_order_relaxed);
    } else if (on) {
        atomic_fetch_or_explicit(&device->gate, bit, memory_order_acq_rel);
    } else {
        atomic_fetch_and_explicit(&device->gate, ~bit, memory_order_acq_rel);
    }
}

// --- facts of a device ---------------------------------------------------------------------------------------------------------------

struct vr_cu_allocation_prop vr_device_allocation_prop(const struct vr_device *device) {
    return (struct vr_cu_allocation_prop){
        .type = VR_CU_MEM_ALLOCATION_TYPE_PINNED,
        .requested_handle_types = device->physical.handle_types,
        .location = {.type = VR_CU_MEM_LOCATION_TYPE_DEVICE, .id = (int32_t)device->ordinal},
        .gpu_direct_rdma_capable = device->physical.rdma,
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

void vr_access_list(const struct vr_device *device, struct vr_cu_access_desc *list, uint64_t *count) {
    const uint64_t peers = atomic_load_explicit(&device->peers, memory_order_relaxed);
    list[0] = vr_access_of(device->ordinal);
    *count = 1;
    for (uint32_t peer = 0; peer < VRAM_MAX_DEVICES; peer++)
        if ((peers >> peer & 1) != 0) list[(*count)++] = vr_access_of(peer);
}

// --- blocks by address -----------------------------------------------------------------------------------------------------------------

uint32_t vr_find_and_lock_device(struct vram_allocator *allocator, uint64_t address, struct vr_device **device) {
    const uint32_t block = vr_address_map_find(&allocator->addresses, address);
    if (block == 0) return 0;
    const struct vr_block *item = vr_block_at(allocator, block);
    *device = allocator->shards[atomic_load_explicit(&item->shard, memory_order_acquire)]->device;
    vr_device_lock(*device);
    if (vr_shard_of(allocator, item)->device == *device && item->state == VR_ALLOCATED && item->address == address) return block;
    vr_device_unlock(*device);
    return 0;
}
