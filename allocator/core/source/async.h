// async.h: a device's state for backend:cudaMallocAsync. Every block comes from the driver's own pool, which is the cache
// (allocator.md §the-drivers-cache). The raw table has the blocks. Guarded by all locks of the device, so that the driver sees requests and
// frees in the order of the tables.
#ifndef VR_CORE_SOURCE_ASYNC_H
#define VR_CORE_SOURCE_ASYNC_H

#include "base/base.h"

// A stream, and the driver's id of the capture that it serves; 0: outside captures.
struct vr_unifier {
    uint64_t stream;
    uint64_t capture;
};

struct vr_async {
    uint64_t driver_pool;
    struct vr_unifier *unifiers; // own streams that free blocks used by several streams
    size_t unifier_count, unifiers_capacity;
    struct vr_unifier *joins; // streams on which a block was freed during a capture
    size_t join_count, joins_capacity;
    size_t postponed_count;
    uint64_t postponed_changes; // the allocator's capture_changes at the last pass over all postponed blocks
};

#endif
