// backend.h: who keeps the cache of an allocator: blocks and index of this room (native), or the driver's own pool
// (backend:cudaMallocAsync). Chosen once per allocator. Routes, captures, statistics, listeners and reports are the same for both.
#ifndef VR_CORE_SOURCE_BACKEND_H
#define VR_CORE_SOURCE_BACKEND_H

#include "core/state.h"

struct vr_backend_ops {
    // Whether there are segments, blocks and an index: private pools can have functions of their own and checkpoints, and a block can be
    // had at an address. Without, no request is looked for in the cache (VR_GATE_RAW).
    bool has_blocks;
    // Before a device is seen by others. UNSUPPORTED, DRIVER. NULL: nothing to do.
    enum vram_status (*open)(struct vr_device *device);
    // At the end, before the device's memory goes back, without locks. NULL: nothing to do.
    void (*close)(struct vr_device *device);
    // What the fast way could not serve, while caching is on, with a report when it fails. Without locks. pool: NULL for whatever the
    // routes say.
    enum vram_status (*malloc)(struct vr_shard *shard, struct vram_pool *pool, uint64_t size_bytes, uint64_t *address);
    // The free of a block of the raw table that is this backend's. Without locks. INVALID_POINTER: it is not; DRIVER (it is still the
    // client's then). NULL: none is.
    enum vram_status (*free)(struct vram_allocator *allocator, uint64_t address);
    // vram_record_stream() for such a block. Without locks. INVALID_POINTER; LIMIT, NO_HOST_MEMORY. NULL: they need no fence.
    enum vram_status (*record_stream)(struct vram_allocator *allocator, uint64_t address, uint64_t stream);

    // Under all locks of the device, with its context current:
    // Gives back what is cached.
    enum vram_status (*trim)(struct vr_device *device);
    // Brings the statistics up to date; needs no context. NULL: they are.
    void (*refresh)(struct vr_device *device);
    // Before the capture that began on `stream` ends. NULL: nothing to do.
    void (*before_capture_end)(struct vr_device *device, uint64_t stream);
    // Whether the state is what the statistics say; needs no context. MISMATCH.
    enum vram_status (*check)(const struct vr_device *device, struct vram_error *error);
};

extern const struct vr_backend_ops vr_backend_native;
extern const struct vr_backend_ops vr_backend_async;

// Parts of the native one: slow.c and invariants.c.
enum vram_status vr_native_malloc(struct vr_shard *shard, struct vram_pool *pool, uint64_t size_bytes, uint64_t *address);
enum vram_status vr_native_check(const struct vr_device *device, struct vram_error *error);

#endif
