// captures.h: CUDA graph captures in progress, and the frees that they defer. Call everything under all locks of the device unless noted.
#ifndef VR_CORE_CAPTURE_CAPTURES_H
#define VR_CORE_CAPTURE_CAPTURES_H

#include "core/block.h"
#include "core/capture/past.h"

struct vr_device;
struct vram_allocator;
struct vram_pool;

// A capture in progress.
struct vr_capture {
    struct vram_pool *pool; // holds a reference; NULL: a mark only, routes choose the pool
    uint64_t stream;        // the capture's origin stream; 0: unknown
    uint64_t thread;        // the thread that began it
    bool others;            // begun and ended in the driver by the caller, not by vram
};

// A block freed during a capture while other streams used it. Its free completes when all captures have ended. With markers it completes
// earlier: once all of them precede the next node of the block's own stream in the captured graph.
struct vr_deferred {
    uint32_t block;
    uint32_t blocker; // 1 + index in blockers[] of the stream found capturing; 0: not examined, or none
    uint64_t stream;  // the block's own stream
    uint64_t serial;
    uint64_t *markers; // graph nodes; NULL: wait until all captures have ended
    size_t marker_count;
    size_t passed;                       // the number of leading markers known to precede the stream's next node
    struct vr_deferred *previous, *next; // in order of free
    enum vr_chain { VR_CHAIN_NONE, VR_CHAIN_FRESH, VR_CHAIN_NODE } chain; // the chain of its stream's past that contains it (past.h)
    struct vr_deferred *before, *after;                                   // neighbors in that chain
    struct vr_deferred *chains;                                           // in the first member of a due chain: the next due chain
};

// A stream whose capture blocks deferred frees. One query to the driver answers for all of them.
struct vr_blocker {
    uint64_t stream;
    size_t count;  // deferred blocks; 0: the slot is unused
    bool captures; // the driver's latest answer
};

// A device's captures. Guarded by all locks of the device.
struct vr_captures {
    struct vr_capture *items; // captures into this device's pools
    size_t count;
    size_t items_capacity;
    struct vr_deferred *first_deferred, *last_deferred;
    struct vr_deferred *unlooked; // the first one not examined; all before it have a blocker. NULL: all are examined
    size_t deferred_count;
    uint64_t serial;
    struct vr_deferred **ready; // scratch array for frees that a request completes
    size_t ready_capacity;
    struct vr_blocker *blockers;
    size_t blocker_count;
    size_t blockers_capacity;
    struct vr_pasts pasts; // of the streams that vr_deferred_reuse() was called for
    bool mark_ended;       // a mark ended with blocks deferred; the end of its route, if later, completes them
};

// Returns whether the stream is capturing. Returns true if the query fails, except for a default stream and a destroyed one. Queries the
// driver only while a capture is known on some device.
bool vr_is_capturing(const struct vr_device *device, uint64_t stream);
// Like vr_is_capturing(), but always queries the driver, to find captures that vram was not notified of.
bool vr_stream_is_capturing(const struct vr_device *device, uint64_t stream);
// Returns whether the driver reports the stream as capturing. Queries it only while a capture is known on some device.
bool vr_surely_captures(const struct vr_device *device, uint64_t stream);
// Returns the driver's id of the capture that the stream takes part in, or 0 if it takes part in none.
uint64_t vr_capture_id(const struct vr_device *device, uint64_t stream);
// Returns whether a known capture affects the device: it allocates from one of the device's pools, or one of the device's streams takes
// part. Nothing is returned to the driver while one does.
bool vr_device_captures(const struct vr_device *device);
// Returns whether a request on `stream` belongs to a capture, by the rules of the PyTorch version that the allocator follows. Such a
// request polls no events and returns nothing to the driver.
bool vr_request_captures(const struct vr_device *device, uint64_t stream);
// Returns whether the host may wait for the stream without invalidating a capture that the stream takes part in, or that a default stream
// waits for. Queries the driver only while a capture is known.
bool vr_may_wait_for(const struct vr_device *device, uint64_t stream);
// Increments (begins) or decrements the number of captures, for all devices. Call it without any lock before a capture begins.
void vr_capture_count(struct vram_allocator *allocator, bool begins);
// Sets or clears VR_GATE_CAPTURE to match the current state.
void vr_capture_gate(struct vr_device *device);
// Returns whether both streams take part in the same capture.
bool vr_same_capture(const struct vr_device *device, uint64_t stream, uint64_t other);
// Returns whether this thread began a capture into a pool of this device that has not ended.
bool vr_thread_captures(const struct vr_device *device);
// Returns whether a stream that used the block is capturing, in a known capture or not; a fence on it would become a node of the graph. If
// so, stores the stream of the newest such use in *stream (stream may be NULL).
bool vr_use_captures(const struct vr_device *device, const struct vr_block *block, uint64_t *stream);
// Returns whether the free of a block with uses must be deferred: this thread captures, or one of the block's streams does.
bool vr_must_defer(const struct vr_device *device, const struct vr_block *block);

// Defers the free of an allocated block with uses. NO_HOST_MEMORY leaves everything unchanged.
enum vram_status vr_defer(struct vr_device *device, uint32_t block);
// Call it when no known capture is in progress. Completes deferred blocks, or fences their uses recorded outside a capture. A block stays
// deferred while a stream that used it is still capturing.
enum vram_status vr_deferred_convert(struct vr_device *device);
// Like vr_deferred_convert(), for the blocks of one pool.
enum vram_status vr_deferred_convert_pool(struct vr_device *device, const struct vram_pool *pool);
// Implements graph_capture_record_stream_reuse: completes the deferred blocks of `stream` whose markers all precede its next node.
enum vram_status vr_deferred_reuse(struct vr_device *device, uint64_t stream);
// Returns whether the block's free is deferred.
bool vr_is_deferred(const struct vr_device *device, uint32_t block);
// Frees the lists. Call it only when the allocator is destroyed.
void vr_captures_release(struct vr_captures *captures);

#endif
