// async.h: backend:cudaMallocAsync: every block is one of the driver's own pool, which is the cache (allocator-behaviour 9.1). The
// blocks are in the table of raw.c; routes, captures, statistics, listeners and reports are those of the device. All under all locks of
// the device with its context current, unless it says otherwise: the driver must see requests and frees in the order of the books.
#ifndef VR_CORE_SOURCE_ASYNC_H
#define VR_CORE_SOURCE_ASYNC_H

#include "core/device.h"

VR_INLINE bool vr_is_async(const struct vram_allocator *allocator) { return allocator->async; }

// Finds the device's pool and sets it up: it keeps what it has until it is trimmed, and reuses memory whichever way it can. Before the
// device is seen by others. UNSUPPORTED where the driver has no pools; DRIVER.
enum vram_status vr_async_open(struct vr_device *device);
// Frees every block and returns what the pool holds. At the end only, without locks.
void vr_async_close(struct vr_device *device);

// The whole of malloc, with a report when it fails. Without locks.
enum vram_status vr_async_malloc(struct vr_shard *shard, struct vram_pool *pool, uint64_t size_bytes, uint64_t *address);
// Free of a block of the table that is the driver pool's. Without locks. INVALID_POINTER, DRIVER (it is still the client's then).
enum vram_status vr_async_free(struct vram_allocator *allocator, uint64_t address);
// vram_record_stream(). Without locks. INVALID_POINTER; LIMIT, NO_HOST_MEMORY.
enum vram_status vr_async_record_stream(struct vram_allocator *allocator, uint64_t address, uint64_t stream);

// Does the frees that captures put off, where none is in the way any more. Waits for the device and returns what the pool does not need.
enum vram_status vr_async_trim(struct vr_device *device);
// Brings reserved_bytes up to date.
void vr_async_refresh(struct vr_device *device);
// Before the capture that began on `stream` ends: the streams on which blocks were freed in it join it again. A failure is the driver's to
// tell at the end of the capture.
void vr_async_rejoin(struct vr_device *device, uint64_t stream);
// Whether the statistics are what the table holds.
enum vram_status vr_async_check(const struct vr_device *device, struct vram_error *error);

#endif
