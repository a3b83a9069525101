// device.h: devices and shards, and the two ways to lock them.
#ifndef VR_CORE_DEVICE_H
#define VR_CORE_DEVICE_H

#include "core/pool.h"
#include "os/single_threaded.h"

// The device, set up at its first use. INVALID_ARGUMENT for an ordinal the driver has not; DRIVER; NO_HOST_MEMORY.
enum vram_status vr_device_get(struct vram_allocator *allocator, uint32_t ordinal, struct vr_device **device);
// NULL if it was never used. Any thread.
VR_INLINE struct vr_device *vr_device_if_used(struct vram_allocator *allocator, uint32_t ordinal) {
    return ordinal < VRAM_MAX_DEVICES ? atomic_load_explicit(&allocator->devices[ordinal], memory_order_acquire) : NULL;
}
// Makes sure that the device of a stream is set up, so that fences can be recorded there. Without any lock. DRIVER, NO_HOST_MEMORY.
enum vram_status vr_know_stream(struct vram_allocator *allocator, uint64_t stream);
// The used device whose primary context this is; NULL if there is none. Any thread.
struct vr_device *vr_device_with_context(struct vram_allocator *allocator, uint64_t context);
// Waits for all fences of a device that is about to go.
void vr_wait_at_end(struct vr_device *device);
// Gives everything back to the driver and frees the device. No other thread may use it any more.
void vr_device_release(struct vr_device *device);

// The shard rests no more. Under the device's mutex, where nobody else has its lock.
void vr_shard_add_awake(struct vr_shard *shard);

VR_NOINLINE void vr_shard_lock_contended(struct vr_shard *shard);
VR_INLINE bool vr_shard_try_lock(struct vr_shard *shard) {
    uint32_t expected = VR_SHARD_OPEN;
    if (vr_is_single_threaded()) {
        if (VR_UNLIKELY(atomic_load_explicit(&shard->lock, memory_order_relaxed) != VR_SHARD_OPEN)) return false;
        atomic_store_explicit(&shard->lock, VR_SHARD_LOCKED, memory_order_relaxed);
        return true;
    }
    return VR_LIKELY(
        atomic_compare_exchange_strong_explicit(&shard->lock, &expected, VR_SHARD_LOCKED, memory_order_acquire, memory_order_relaxed));
}
VR_INLINE void vr_shard_lock(struct vr_shard *shard) {
    if (!vr_shard_try_lock(shard)) vr_shard_lock_contended(shard);
}
VR_INLINE void vr_shard_unlock(struct vr_shard *shard) { atomic_store_explicit(&shard->lock, VR_SHARD_OPEN, memory_order_release); }

// Takes all locks of the device and settles every pool; gives them back, after sharing out the slack where it was gathered. Between the two
// everything of the device may be read and changed, its sums (device->stats.totals) after vr_device_gather() only.
void vr_device_lock(struct vr_device *device);
void vr_device_unlock(struct vr_device *device);
// The rest of vr_device_lock() for a thread that has the device's mutex, under which nobody else changes what all locks guard.
void vr_device_lock_shards(struct vr_device *device);
// For a thread that has the lock of a shard: takes the device's mutex besides. False where the shard's lock was given back for it, and
// taken again: what was known of the shard may be over. What waits for fences, and the fences, need no more locks than that.
bool vr_device_lock_beside(struct vr_shard *shard);
// Under the mutex: another shard's lock, too. One that rests is awake from now on.
void vr_shard_lock_awake(struct vr_shard *shard);
// Adds up what the shards count, if it is not yet. Under all locks.
struct vr_totals *vr_device_gather(struct vr_device *device);
// Books a change of the shard, which may rest, and raises the peaks. `pending` blocks and bytes start (+) or stop (-) waiting: those that
// start are taken from what is allocated by the same change. Under all locks.
void vr_device_book(struct vr_shard *shard, unsigned kind, const struct vr_delta *delta, int64_t pending, int64_t pending_bytes);

// Makes the device's context current for this thread and remembers the one that was; leaves it as it was.
struct vr_context_guard {
    struct vram_driver *driver;
    uint64_t previous;
    int capture_mode; // of the thread, where captures are under way: calls of ours must not invalidate them
    bool changed;
    bool relaxed;
};
enum vram_status vr_context_enter(struct vr_device *device, struct vr_context_guard *guard);
// The same for what nobody can do later, with a driver that refuses asked again; false: it went on refusing.
bool vr_context_insist(struct vr_device *device, struct vr_context_guard *guard);
// vr_device_lock() after vr_context_enter(): a capture that began in between makes the thread's mode relaxed, too.
void vr_device_lock_guarded(struct vr_device *device, struct vr_context_guard *guard);
void vr_context_leave(struct vr_context_guard *guard);

// Sets one gate bit on or off. Under all locks; VR_GATE_CAPTURE is also set on without any.
void vr_device_gate(struct vr_device *device, uint32_t bit, bool on);

// Takes the allocator's listener over. Under all locks (or before the device is seen by others).
void vr_device_listen(struct vr_device *device);
// The same for all devices in use. Under the allocator's mutex.
void vr_allocator_listen_locked(struct vram_allocator *allocator);

// What physical memory of this device is asked for with.
struct vr_cu_allocation_prop vr_device_allocation_prop(const struct vr_device *device);
// fraction of total_bytes to the nearest byte; VR_UNLIMITED for 1 and more.
uint64_t vr_limit_of_fraction(uint64_t total_bytes, double fraction);

// Who may use memory of the device: itself first, then its peers. *count of VRAM_MAX_DEVICES at most.
void vr_access_list(const struct vr_device *device, struct vr_cu_access_desc *list, uint64_t *count);
VR_INLINE struct vr_cu_access_desc vr_access_of(uint32_t ordinal) {
    return (struct vr_cu_access_desc){{VR_CU_MEM_LOCATION_TYPE_DEVICE, (int32_t)ordinal}, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

// Status of a driver result outside the allocation calls.
VR_INLINE enum vram_status vr_driver_status(vr_cu_result result) { return result == VR_CU_SUCCESS ? VRAM_OK : VRAM_DRIVER; }

// The stream was destroyed: it has no more work, but what it was given may still run.
VR_INLINE bool vr_stream_is_gone(vr_cu_result result) {
    return result == VR_CU_INVALID_HANDLE || result == VR_CU_INVALID_CONTEXT || result == VR_CU_CONTEXT_IS_DESTROYED;
}

// --- blocks by address -----------------------------------------------------------------------------------------------------------

// Whether a block that was found by its address, by nobody's lock, is that of this shard now. Under the shard's lock.
VR_INLINE bool vr_is_allocated_at(const struct vr_block *item, uint64_t address, const struct vr_shard *shard) {
    return VR_LIKELY(atomic_load_explicit(&item->shard, memory_order_relaxed) == shard->number && item->state == VR_ALLOCATED &&
                     item->address == address);
}

// The allocated block that starts at `address`, with its shard locked; 0 (and nothing locked) when there is none.
// The slot may name a block that was handed out here once and is something else now: only under its shard's lock can that be told.
VR_INLINE uint32_t vr_find_and_lock(struct vram_allocator *allocator, uint64_t address, struct vr_shard **shard) {
    const uint32_t block = vr_address_map_find(&allocator->addresses, address);
    if (VR_UNLIKELY(block == 0)) return 0;
    const struct vr_block *item = vr_block_at(allocator, block);
    const uint32_t number = atomic_load_explicit(&item->shard, memory_order_acquire);
    struct vr_shard *candidate = allocator->shards[number];
    vr_shard_lock(candidate);
    if (vr_is_allocated_at(item, address, candidate)) {
        *shard = candidate;
        return block;
    }
    vr_shard_unlock(candidate);
    return 0;
}
// The same under all locks of its device (*device); 0 and nothing locked when there is none.
uint32_t vr_find_and_lock_device(struct vram_allocator *allocator, uint64_t address, struct vr_device **device);

#endif
