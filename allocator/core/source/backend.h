// backend.h: what caches an allocator's memory: this folder's blocks and index (native), or the driver's own pool
// (backend:cudaMallocAsync). Chosen once per allocator. Routes, captures, statistics, listeners and reports are the same for both.
#ifndef VR_CORE_SOURCE_BACKEND_H
#define VR_CORE_SOURCE_BACKEND_H

#include "core/state.h"

struct vr_backend_ops {
    // Whether there are segments, blocks and an index. Only then can private pools have user functions and checkpoints, and can a block be
    // allocated at a given address. Otherwise no request searches the cache (VR_GATE_RAW).
    bool has_blocks;
    // Sets up a device before other threads see it. UNSUPPORTED, DRIVER. NULL: nothing to do.
    enum vram_status (*open)(struct vr_device *device);
    // Called when a device is closed, before its memory is returned, without locks. NULL: nothing to do.
    void (*close)(struct vr_device *device);
    // Serves what the fast path could not, while caching is on, and reports a failure. Called without locks. pool NULL: the routes choose
    // the pool.
    enum vram_status (*malloc)(struct vr_shard *shard, struct vram_pool *pool, uint64_t size_bytes, uint64_t *address);
    // Frees a block of the raw table that belongs to this backend. Called without locks. INVALID_POINTER if there is no such block. DRIVER:
    // the block stays allocated. NULL: the backend has no such blocks.
    enum vram_status (*free)(struct vram_allocator *allocator, uint64_t address);
    // vram_record_stream() for such a block. Called without locks. INVALID_POINTER; LIMIT, NO_HOST_MEMORY. NULL: the blocks need no fence.
    enum vram_status (*record_stream)(struct vram_allocator *allocator, uint64_t address, uint64_t stream);

    // The members below are called under all locks of the device, with its context current.
    // Returns cached memory to the driver.
    enum vram_status (*trim)(struct vr_device *device);
    // Updates the statistics. Needs no context. NULL: they are always current.
    void (*refresh)(struct vr_device *device);
    // Called before the capture that began on `stream` ends. NULL: nothing to do.
    void (*before_capture_end)(struct vr_device *device, uint64_t stream);
    // Checks the state against the statistics. Needs no context. MISMATCH.
    enum vram_status (*check)(const struct vr_device *device, struct vram_error *error);
};

extern const struct vr_backend_ops vr_backend_native;
extern const struct vr_backend_ops vr_backend_async;

// Parts of the native backend: slow.c and invariants.c.
enum vram_status vr_native_malloc(struct vr_shard *shard, struct vram_pool *pool, uint64_t size_bytes, uint64_t *address);
enum vram_status vr_native_check(const struct vr_device *device, struct vram_error *error);

#endif
