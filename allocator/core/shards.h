// shards.h: the shards of a device: found by stream, made at their first use.
#ifndef VR_CORE_SHARDS_H
#define VR_CORE_SHARDS_H

#include "core/device.h"

// Where a device's shard of this index stands in its reserved memory. Each begins in other lines of the processor's cache than its
// neighbours: at the same place of a page what is looked at of more than a dozen would drive one another out.
enum { VR_SHARD_OFFSETS = 32, VR_SHARD_STEP = 576, VR_SHARD_BYTES = sizeof(struct vr_shard) + VR_SHARD_OFFSETS * VR_SHARD_STEP };
VR_INLINE size_t vr_shard_offset(uint32_t index) { return (size_t)(index % VR_SHARD_OFFSETS) * VR_SHARD_STEP; }

// The shard of a stream, made at its first use. LIMIT beyond VR_SHARDS_PER_DEVICE streams; NO_HOST_MEMORY.
enum vram_status vr_shard_make(struct vr_device *device, uint64_t stream, struct vr_shard **shard);
// The shard of a private pool; NULL: it is not made yet. Under the device's lock.
struct vr_shard *vr_shard_find_in_pool(const struct vram_pool *pool, uint64_t stream);
// The same, made at its first use. With the whole device locked.
enum vram_status vr_shard_of_pool(struct vram_pool *pool, uint64_t stream, struct vr_shard **shard);
// Where the search for a stream's shard begins. By the handle as the driver gave it: no file says what that is, a replay has streams of its
// own. So no secret is needed, and one multiplication spreads handles that rise evenly (the golden ratio in 64 bits).
VR_INLINE size_t vr_shard_home(uint64_t stream) { return (size_t)((stream * 0x9e3779b97f4a7c15u) >> (64 - VR_SHARD_SLOT_BITS)); }
VR_INLINE struct vr_shard *vr_shard_find(const struct vr_device *device, uint64_t stream) {
    for (size_t at = vr_shard_home(stream);; at = (at + 1) % VR_SHARD_SLOTS) {
        struct vr_shard *shard = atomic_load_explicit(&device->shards.slots[at], memory_order_acquire);
        if (shard == NULL || shard->stream == stream) return shard;
    }
}
VR_INLINE enum vram_status vr_shard_get(struct vr_device *device, uint64_t stream, struct vr_shard **shard) {
    *shard = vr_shard_find(device, stream);
    return VR_LIKELY(*shard != NULL) ? VRAM_OK : vr_shard_make(device, stream, shard);
}

// The shards of the default pools that have a free block, or one that may go back (`returns`), ordered by stream. The caller frees *shards.
// Under all locks. NO_HOST_MEMORY.
enum vram_status vr_device_shards_by_stream(const struct vr_device *device, bool only_releasable, struct vr_shard ***shards, size_t *count);

// Takes the options into force. Under all locks (or before the device is seen by others).
void vr_device_apply_options(struct vr_device *device, const struct vr_options *options);
// The pool's own options to its shards. Under all locks.
void vr_pool_apply_options(const struct vram_pool *pool);

#endif
