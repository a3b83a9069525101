// A device's locks, its context, and facts about it.
#include "core/device.h"
#include "os/single_threaded.h"
#include "core/front.h"

void vr_context_relax(const struct vr_device *device, struct vr_context_guard *guard) {
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
    vr_context_relax(device, guard);
    return VRAM_OK;
}

bool vr_context_insist(struct vr_device *device, struct vr_context_guard *guard) {
    for (int tries = 0; tries < VR_CU_TRIES; tries++)
        if (vr_context_enter(device, guard) == VRAM_OK) return true;
    return false;
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

// --- locks -------------------------------------------------------------------------------------------------------------------------------

// Between tries, a waiting thread pauses FIRST_PAUSES times, then twice as often, up to MOST_PAUSES. After LONG_WAITS_BEFORE_YIELD waits of
// the longest kind it yields to the system. A pause takes 10 to 50 ns.
enum { FIRST_PAUSES = 64, MOST_PAUSES = 256, LONG_WAITS_BEFORE_YIELD = 4 };

// Makes this processor do less while it waits for another one.
static void pause_processor(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile(
        "isb" ::
            : "memory"); // "yield" does nothing on processors without hardware threads; isb takes about as long as a pause on x86
#endif
}

// A waiting thread polls with growing pauses. That leaves the lock's cache line, and the blocks it guards, with the owner, which
// completes many calls in the time a line takes to move to another processor and back. A check after less than a hundred calls' time would
// find the lock open between two calls, and take it from its owner.
void vr_device_lock_contended(struct vr_device *device) {
    for (unsigned pauses = FIRST_PAUSES, long_waits = 0;;) {
        if (atomic_load_explicit(&device->lock, memory_order_relaxed) == 0 &&
            atomic_exchange_explicit(&device->lock, 1, memory_order_acquire) == 0) {
            return;
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
    vr_device_lock_rest(device);
}

void vr_device_lock_rest(struct vr_device *device) {
    vr_device_lock_short(device);
    if (device->front.listed != NULL) vr_front_settle_all(device);
}

void vr_device_unlock(struct vr_device *device) {
    vr_device_unlock_short(device);
    vr_mutex_unlock(&device->mutex);
}

bool vr_device_has_all_locks(const struct vr_device *device) {
    struct vr_mutex *mutex = (struct vr_mutex *)(uintptr_t)&device->mutex;
    const bool was_free = vr_mutex_try_lock(mutex);
    if (was_free) vr_mutex_unlock(mutex);
    return !was_free && atomic_load_explicit(&device->lock, memory_order_relaxed) != 0;
}

void vr_device_lock_guarded(struct vr_device *device, struct vr_context_guard *guard) {
    vr_device_lock(device);
    vr_context_relax(device, guard);
}

uint32_t vr_find_and_lock_device(struct vram_allocator *allocator, uint64_t address, struct vr_device **device) {
    const uint32_t block = vr_address_map_find(&allocator->addresses, address);
    if (block == 0) return 0;
    const struct vr_block *item = vr_block_at(allocator, block);
    const struct vr_shard *shard = vr_shard_of(allocator, item);
    *device = shard->device;
    vr_device_lock(*device);
    if (vr_is_allocated_at(item, address, shard)) return block;
    vr_device_unlock(*device);
    return 0;
}

enum vram_status vr_driver_status(vr_cu_result result) { return result == VR_CU_SUCCESS ? VRAM_OK : VRAM_DRIVER; }

// --- facts of a device ---------------------------------------------------------------------------------------------------------------

struct vr_cu_allocation_prop vr_device_allocation_prop(const struct vr_device *device) {
    return (struct vr_cu_allocation_prop){
        .type = VR_CU_MEM_ALLOCATION_TYPE_PINNED,
        .requested_handle_types = device->physical.handle_types,
        .location = {.type = VR_CU_MEM_LOCATION_TYPE_DEVICE, .id = (int32_t)device->ordinal},
        .gpu_direct_rdma_capable = device->physical.rdma,
    };
}

// The product is exact enough: byte counts stay below 2^53.
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
