// async.h: what a device keeps for backend:cudaMallocAsync: every block is one of the driver's own pool, which is the cache
// (allocator.md §the-drivers-cache). The blocks are in the raw table. Guarded by all locks of the device: the driver must see requests and
// frees in the order of the books.
#ifndef VR_CORE_SOURCE_ASYNC_H
#define VR_CORE_SOURCE_ASYNC_H

#include "base/base.h"

// A stream, and the driver's id of the capture that it serves; 0: none.
struct vr_unifier {
    uint64_t stream;
    uint64_t capture;
};

struct vr_async {
    uint64_t driver_pool;
    struct vr_unifier *unifiers; // streams of ours that free what several streams used
    size_t unifier_count, unifiers_capacity;
    struct vr_unifier *joins; // streams on which a capture freed something
    size_t join_count, joins_capacity;
    size_t postponed_count;
    uint64_t postponed_changes; // the allocator's capture_changes when the driver was last asked about all of them
};

#endif
