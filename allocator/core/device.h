// device.h: creates, locks and configures devices and their shards.
#ifndef VR_CORE_DEVICE_H
#define VR_CORE_DEVICE_H

#include "core/pool.h"

// Gets the device, and sets it up at its first use. INVALID_ARGUMENT for an ordinal that does not exist; DRIVER; NO_HOST_MEMORY.
enum vram_status vr_device_get(struct vram_allocator *allocator, uint32_t ordinal, struct vr_device **device);
// Sets up the device of a stream, if needed, so that fences can be recorded there. Call it without locks. DRIVER, NO_HOST_MEMORY.
enum vram_status vr_ensure_stream_device(struct vram_allocator *allocator, uint64_t stream);
// Returns the device in use with this primary context, or NULL. Any thread.
struct vr_device *vr_device_with_context(struct vram_allocator *allocator, uint64_t context);
// Waits for all fences of a device before it is destroyed.
void vr_wait_at_end(struct vr_device *device);
// Returns all memory to the driver and frees the device. No other thread may use it any more.
void vr_device_release(struct vr_device *device);

// --- locks --------------------------------------------------------------------------------------------------------------------------

// Takes the device's mutex, then its lock, and settles the front. For code that allocates from the driver or returns memory to it, changes
// more of the device than its blocks, or reads all of it. A thread that waits for the mutex sleeps.
void vr_device_lock(struct vr_device *device);
void vr_device_unlock(struct vr_device *device);
// Does the rest of vr_device_lock() for a thread that has the mutex already.
void vr_device_lock_rest(struct vr_device *device);

// --- contexts -----------------------------------------------------------------------------------------------------------------------

// Remembers the thread's previous context. vr_context_enter() makes the device's context current, vr_context_leave() restores the previous
// one.
struct vr_context_guard {
    struct vram_driver *driver;
    uint64_t previous;
    int capture_mode; // the thread's mode, changed during captures so that the allocator's calls do not invalidate them
    bool changed;
    bool relaxed;
};
enum vram_status vr_context_enter(struct vr_device *device, struct vr_context_guard *guard);
// Like vr_context_enter(), but retries while the driver refuses, for work that cannot be postponed. Returns false if the driver refuses
// every time.
bool vr_context_insist(struct vr_device *device, struct vr_context_guard *guard);
// Keeps calls of this thread from invalidating captures that are under way. vr_context_enter() calls it.
void vr_context_relax(const struct vr_device *device, struct vr_context_guard *guard);
// Does vr_device_lock() after vr_context_enter(), and relaxes the thread's capture mode if a capture began in between.
void vr_device_lock_guarded(struct vr_device *device, struct vr_context_guard *guard);
void vr_context_leave(struct vr_context_guard *guard);

// --- the rest -----------------------------------------------------------------------------------------------------------------------

// Sets or clears one gate bit. Under the device's lock, except that VR_GATE_CAPTURE may be set without a lock.
void vr_device_gate(struct vr_device *device, uint32_t bit, bool on);

// Attaches the allocator's listener to the device. Under the device's locks, or before other threads see the device.
void vr_device_listen(struct vr_device *device);
// Attaches it to all devices in use. Under the allocator's mutex.
void vr_allocator_listen_locked(struct vram_allocator *allocator);

// Returns the properties with which physical memory of this device is requested.
struct vr_cu_allocation_prop vr_device_allocation_prop(const struct vr_device *device);
// Returns that fraction of total_bytes, to the nearest byte; VR_UNLIMITED if fraction is 1 or more.
uint64_t vr_limit_of_fraction(uint64_t total_bytes, double fraction);

// Lists the devices with access to memory of this device: itself first, then its peers. *count is at most VRAM_MAX_DEVICES.
void vr_access_list(const struct vr_device *device, struct vr_cu_access_desc *list, uint64_t *count);
VR_INLINE struct vr_cu_access_desc vr_access_of(uint32_t ordinal) {
    return (struct vr_cu_access_desc){{VR_CU_MEM_LOCATION_TYPE_DEVICE, (int32_t)ordinal}, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

// Converts the result of a driver call that does not allocate.
enum vram_status vr_driver_status(vr_cu_result result);

// Returns whether the result says that the stream was destroyed. It accepts no more work, but its previous work may still run.
VR_INLINE bool vr_stream_is_gone(vr_cu_result result) {
    return result == VR_CU_INVALID_HANDLE || result == VR_CU_INVALID_CONTEXT || result == VR_CU_CONTEXT_IS_DESTROYED;
}

// --- shards -------------------------------------------------------------------------------------------------------------------------

// Returns the offset of a shard in its reserved memory. Neighbouring shards start at different offsets within a page: with the same offset,
// the hot fields of more than a dozen shards would evict each other from the processor's cache.
enum { VR_SHARD_OFFSETS = 32, VR_SHARD_STEP = 576, VR_SHARD_BYTES = sizeof(struct vr_shard) + VR_SHARD_OFFSETS * VR_SHARD_STEP };
VR_INLINE size_t vr_shard_offset(uint32_t index) { return (size_t)(index % VR_SHARD_OFFSETS) * VR_SHARD_STEP; }

// Gets the shard of a stream, and creates it at its first use. LIMIT beyond VR_SHARDS_PER_DEVICE streams; NO_HOST_MEMORY.
enum vram_status vr_shard_make(struct vr_device *device, uint64_t stream, struct vr_shard **shard);
VR_INLINE enum vram_status vr_shard_get(struct vr_device *device, uint64_t stream, struct vr_shard **shard) {
    *shard = vr_shard_find(device, stream);
    return VR_LIKELY(*shard != NULL) ? VRAM_OK : vr_shard_make(device, stream, shard);
}
// Returns the pool's shard for a stream, or NULL if it does not exist yet. Under the device's lock.
struct vr_shard *vr_shard_find_in_pool(const struct vram_pool *pool, uint64_t stream);
// Gets the pool's shard for a stream, and creates it at its first use. With the whole device locked.
enum vram_status vr_shard_of_pool(struct vram_pool *pool, uint64_t stream, struct vr_shard **shard);

// Lists the shards of the default pools by stream: those with a free block or, if only_releasable, those whose memory a release may return
// (vr_shard.may_release). The caller frees *shards. Under all locks. NO_HOST_MEMORY.
enum vram_status vr_device_shards_by_stream(const struct vr_device *device, bool only_releasable, struct vr_shard ***shards, size_t *count);

// Applies the options to the device. Under all locks, or before other threads see the device.
void vr_device_apply_options(struct vr_device *device, const struct vr_options *options);
// Applies the pool's own options to its shards. Under all locks.
void vr_pool_apply_options(const struct vram_pool *pool);

// --- blocks by address -----------------------------------------------------------------------------------------------------------

// Returns the allocated block that starts at `address`, with the lock (alone) of its device, *shard's, taken. If no block starts there,
// returns 0 and takes no lock.
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
// Like vr_find_and_lock(), but locks the whole device.
uint32_t vr_find_and_lock_device(struct vram_allocator *allocator, uint64_t address, struct vr_device **device);

#endif
