// device.h: devices and their shards: how they are made, locked, and set.
#ifndef VR_CORE_DEVICE_H
#define VR_CORE_DEVICE_H

#include "core/pool.h"

// The device, set up at its first use. INVALID_ARGUMENT for an ordinal the driver has not; DRIVER; NO_HOST_MEMORY.
enum vram_status vr_device_get(struct vram_allocator *allocator, uint32_t ordinal, struct vr_device **device);
// Makes sure that the device of a stream is set up, so that fences can be recorded there. Without any lock. DRIVER, NO_HOST_MEMORY.
enum vram_status vr_ensure_stream_device(struct vram_allocator *allocator, uint64_t stream);
// The used device whose primary context this is; NULL if there is none. Any thread.
struct vr_device *vr_device_with_context(struct vram_allocator *allocator, uint64_t context);
// Waits for all fences of a device that is about to go.
void vr_wait_at_end(struct vr_device *device);
// Gives everything back to the driver and frees the device. No other thread may use it any more.
void vr_device_release(struct vr_device *device);

// --- locks --------------------------------------------------------------------------------------------------------------------------

// Takes the device's mutex, then its lock, and settles the front: for code that asks the driver for memory or gives it back, changes what
// the device has apart from blocks, or looks at all of it. A thread that waits for the mutex takes no processor time.
void vr_device_lock(struct vr_device *device);
void vr_device_unlock(struct vr_device *device);
// The second half of it, for a thread that has the mutex.
void vr_device_lock_rest(struct vr_device *device);

// --- contexts -----------------------------------------------------------------------------------------------------------------------

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
// Where captures are under way: calls of this thread must not invalidate them. vr_context_enter() does it.
void vr_context_relax(const struct vr_device *device, struct vr_context_guard *guard);
// vr_device_lock() after vr_context_enter(): a capture that began in between makes the thread's mode relaxed, too.
void vr_device_lock_guarded(struct vr_device *device, struct vr_context_guard *guard);
void vr_context_leave(struct vr_context_guard *guard);

// --- the rest -----------------------------------------------------------------------------------------------------------------------

// Sets one gate bit on or off. Under the device's lock; VR_GATE_CAPTURE is also set on without any.
void vr_device_gate(struct vr_device *device, uint32_t bit, bool on);

// Takes the allocator's listener over. Under the device's locks (or before the device is seen by others).
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
enum vram_status vr_driver_status(vr_cu_result result);

// The stream was destroyed: it has no more work, but what it was given may still run.
VR_INLINE bool vr_stream_is_gone(vr_cu_result result) {
    return result == VR_CU_INVALID_HANDLE || result == VR_CU_INVALID_CONTEXT || result == VR_CU_CONTEXT_IS_DESTROYED;
}

// --- shards -------------------------------------------------------------------------------------------------------------------------

// Returns the offset of a shard in its reserved memory. Neighbouring shards start at different offsets within a page: with the same offset,
// the hot fields of more than a dozen shards would evict each other from the processor's cache.
enum { VR_SHARD_OFFSETS = 32, VR_SHARD_STEP = 576, VR_SHARD_BYTES = sizeof(struct vr_shard) + VR_SHARD_OFFSETS * VR_SHARD_STEP };
VR_INLINE size_t vr_shard_offset(uint32_t index) { return (size_t)(index % VR_SHARD_OFFSETS) * VR_SHARD_STEP; }

// The shard of a stream, made at its first use. LIMIT beyond VR_SHARDS_PER_DEVICE streams; NO_HOST_MEMORY.
enum vram_status vr_shard_make(struct vr_device *device, uint64_t stream, struct vr_shard **shard);
VR_INLINE enum vram_status vr_shard_get(struct vr_device *device, uint64_t stream, struct vr_shard **shard) {
    *shard = vr_shard_find(device, stream);
    return VR_LIKELY(*shard != NULL) ? VRAM_OK : vr_shard_make(device, stream, shard);
}
// The shard of a private pool; NULL: it is not made yet. Under the device's lock.
struct vr_shard *vr_shard_find_in_pool(const struct vram_pool *pool, uint64_t stream);
// The same, made at its first use. With the whole device locked.
enum vram_status vr_shard_of_pool(struct vram_pool *pool, uint64_t stream, struct vr_shard **shard);

// The shards of the default pools that have a free block, or one that may go back (`returns`), ordered by stream. The caller frees *shards.
// Under all locks. NO_HOST_MEMORY.
enum vram_status vr_device_shards_by_stream(const struct vr_device *device, bool only_releasable, struct vr_shard ***shards, size_t *count);

// Takes the options into force. Under all locks (or before the device is seen by others).
void vr_device_apply_options(struct vr_device *device, const struct vr_options *options);
// The pool's own options to its shards. Under all locks.
void vr_pool_apply_options(const struct vram_pool *pool);

// --- blocks by address -----------------------------------------------------------------------------------------------------------

// The allocated block that starts at `address`, with its device (that of *shard) locked for a short time; 0, and nothing is locked: there
// is none.
VR_INLINE uint32_t vr_find_and_lock(struct vram_allocator *allocator, uint64_t address, struct vr_shard **shard) {
    const uint32_t block = vr_address_map_find(&allocator->addresses, address);
    if (block == 0) return 0;
    const struct vr_block *item = vr_block_at(allocator, block);
    *shard = vr_shard_of(allocator, item);
    vr_device_lock_short((*shard)->device);
    if (vr_is_allocated_at(item, address, *shard)) return block;
    vr_device_unlock_short((*shard)->device);
    return 0;
}
// The same with the whole device locked.
uint32_t vr_find_and_lock_device(struct vram_allocator *allocator, uint64_t address, struct vr_device **device);

#endif
