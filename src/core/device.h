// device.h: devices and shards, and the two ways to lock them.
#ifndef VR_CORE_DEVICE_H
#define VR_CORE_DEVICE_H

#include "core/pool.h"

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
// Gives everything back to the driver and frees the device. No other thread may use it any more.
void vr_device_release(struct vr_device *device);

// The shard of a stream, made at its first use. LIMIT beyond VR_SHARDS_PER_DEVICE streams; NO_HOST_MEMORY.
enum vram_status vr_shard_make(struct vr_device *device, uint64_t stream, struct vr_shard **shard);
// The shard of a private pool, made at its first use. Under all locks; the shard is locked with them.
enum vram_status vr_shard_of_pool(struct vram_pool *pool, uint64_t stream, struct vr_shard **shard);
VR_INLINE struct vr_shard *vr_shard_find(const struct vr_device *device, uint64_t stream) {
    for (uint32_t at = (uint32_t)vr_mix64(stream) % VR_SHARD_SLOTS;; at = (at + 1) % VR_SHARD_SLOTS) {
        struct vr_shard *shard = atomic_load_explicit(&device->slots[at], memory_order_acquire);
        if (shard == NULL || shard->stream == stream) return shard;
    }
}
VR_INLINE enum vram_status vr_shard_get(struct vr_device *device, uint64_t stream, struct vr_shard **shard) {
    *shard = vr_shard_find(device, stream);
    return VR_LIKELY(*shard != NULL) ? VRAM_OK : vr_shard_make(device, stream, shard);
}

VR_NOINLINE void vr_shard_lock_contended(struct vr_shard *shard);
VR_INLINE void vr_shard_lock(struct vr_shard *shard) {
    uint32_t expected = VR_SHARD_OPEN;
    if (VR_UNLIKELY(
            !atomic_compare_exchange_strong_explicit(&shard->lock, &expected, VR_SHARD_LOCKED, memory_order_acquire, memory_order_relaxed)))
        vr_shard_lock_contended(shard);
}
VR_INLINE void vr_shard_unlock(struct vr_shard *shard) { atomic_store_explicit(&shard->lock, VR_SHARD_OPEN, memory_order_release); }

// Takes all locks of the device, settles every pool and gathers the totals; gives them back after sharing out the slack. Between the
// two everything of the device may be read and changed. The device's context is current in between where `context` is asked for.
void vr_device_lock(struct vr_device *device);
void vr_device_unlock(struct vr_device *device);

// Makes the device's context current for this thread and remembers the one that was; leaves it as it was.
struct vr_context_guard {
    struct vram_driver *driver;
    uint64_t previous;
    int capture_mode; // of the thread, where captures are under way: calls of ours must not invalidate them
    bool changed;
    bool relaxed;
};
enum vram_status vr_context_enter(struct vr_device *device, struct vr_context_guard *guard);
// vr_device_lock() after vr_context_enter(): a capture that began in between makes the thread's mode relaxed, too.
void vr_device_lock_guarded(struct vr_device *device, struct vr_context_guard *guard);
void vr_context_leave(struct vr_context_guard *guard);

// Takes the options into force. Under all locks (or before the device is seen by others).
void vr_device_apply_options(struct vr_device *device, const struct vr_options *options);
// Sets one gate bit on or off. Under all locks; VR_GATE_CAPTURE is also set on without any.
void vr_device_gate(struct vr_device *device, uint32_t bit, bool on);

// Takes the allocator's listener over. Under all locks (or before the device is seen by others).
void vr_device_listen(struct vr_device *device);

// The shards of the default pools that have a free block, ordered by stream. The caller frees *shards. Under all locks. NO_HOST_MEMORY.
enum vram_status vr_device_shards_by_stream(const struct vr_device *device, struct vr_shard ***shards, size_t *count);

// What physical memory of this device is asked for with.
struct vr_cu_allocation_prop vr_device_allocation_prop(const struct vr_device *device);
// fraction of total_bytes to the nearest byte; VR_UNLIMITED for 1 and more.
uint64_t vr_limit_of_fraction(uint64_t total_bytes, double fraction);

// Status of a driver result outside the allocation calls.
VR_INLINE enum vram_status vr_driver_status(vr_cu_result result) { return result == VR_CU_SUCCESS ? VRAM_OK : VRAM_DRIVER; }

#endif
