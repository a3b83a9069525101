// captures.h: captures of CUDA graphs under way, and frees that they put off. All under all locks of the device.
#ifndef VR_CORE_CAPTURE_CAPTURES_H
#define VR_CORE_CAPTURE_CAPTURES_H

#include "core/block.h"
#include "core/capture/past.h"

struct vr_device;
struct vram_allocator;
struct vram_pool;

// A capture under way.
struct vr_capture {
    struct vram_pool *pool; // holds a reference; NULL: only marked, its memory goes where routes say
    uint64_t stream;        // where it was begun; 0: not known
    uint64_t thread;        // who began it
    bool others;            // the driver was not asked to begin it by us, and is not asked to end it
};

// A block that was freed in a capture although other streams used it. It waits for the end of all captures, or, where it has markers,
// for the moment when the captured graph shows that every one of them lies before what its own stream does next.
struct vr_deferred {
    uint32_t block;
    uint32_t blocker; // of those that were looked at: 1 + the place of the stream that captured then
    uint64_t stream;  // the block's own
    uint64_t serial;
    uint64_t *markers; // graph nodes; NULL: wait for the end
    size_t marker_count;
    size_t passed;                                                        // so many of them, the first ones, lie there
    struct vr_deferred *previous, *next;                                  // in the order of their frees
    enum vr_chain { VR_CHAIN_NONE, VR_CHAIN_FRESH, VR_CHAIN_NODE } chain; // of its stream's past: which it is in (past.h)
    struct vr_deferred *before, *after;                                   // there
    struct vr_deferred *chains;                                           // of the first one of a chain that is due: the next such chain
};

// A stream whose capture keeps frees waiting: one question answers for all of them.
struct vr_blocker {
    uint64_t stream;
    size_t count;  // deferred blocks; 0: the place is free
    bool captures; // as it answered last
};

// Of a device. Guarded by all its locks.
struct vr_captures {
    struct vr_capture *items; // into pools of this device
    size_t count;
    size_t items_capacity;
    struct vr_deferred *first_deferred, *last_deferred;
    struct vr_deferred *unlooked; // all before it were looked at and have a blocker; NULL: all have
    size_t deferred_count;
    uint64_t serial;
    struct vr_deferred **ready; // room for those that a request finds over
    size_t ready_capacity;
    struct vr_blocker *blockers;
    size_t blocker_count;
    size_t blockers_capacity;
    struct vr_pasts pasts; // of streams that asked for blocks whose frees were put off
    bool mark_ended;       // with blocks deferred, which the end of its route settles where that comes after the mark's
};

// Whether the stream is capturing now, or may be: the driver gave no answer. Asks the driver only while a capture is known on some device.
bool vr_is_capturing(const struct vr_device *device, uint64_t stream);
// The same, asking the driver always: a capture that nobody told us of.
bool vr_stream_is_capturing(const struct vr_device *device, uint64_t stream);
// Whether the driver says that the stream is capturing. Asks it only while a capture is known on some device.
bool vr_surely_captures(const struct vr_device *device, uint64_t stream);
// The driver's id of the capture that a stream takes part in; 0 for none.
uint64_t vr_capture_id(const struct vr_device *device, uint64_t stream);
// Whether a known capture concerns the device: it goes into one of its pools, or one of its streams takes part. Nothing goes back to the
// driver then.
bool vr_device_captures(const struct vr_device *device);
// Whether a request on `stream` is one in a capture, by the rules of the version that the allocator follows: then no event is looked at for
// it, and nothing goes back to the driver.
bool vr_request_captures(const struct vr_device *device, uint64_t stream);
// Whether the host may wait for the stream, which would spoil a capture that it takes part in or that a default stream waits for. Asks the
// driver only while a capture is known.
bool vr_may_wait_for(const struct vr_device *device, uint64_t stream);
// Counts a capture in (without any lock, before it begins) or out, on all devices.
void vr_capture_count(struct vram_allocator *allocator, bool begins);
// Sets the gate bit of captures on or off, as is right now.
void vr_capture_gate(struct vr_device *device);
// Whether both streams take part in one capture.
bool vr_same_capture(const struct vr_device *device, uint64_t stream, uint64_t other);
// Whether this thread began a capture on the device that has not ended.
bool vr_thread_captures(const struct vr_device *device);
// Whether a stream that the block was used on captures, known or not: a fence on it would be a node of the graph. *stream (may be NULL) is
// that one, the newest, then.
bool vr_use_captures(const struct vr_device *device, const struct vr_block *block, uint64_t *stream);
// Whether the free of a block with uses must be put off: this thread captures, or one of the streams concerned does.
bool vr_must_defer(const struct vr_device *device, const struct vr_block *block);

// Puts the free of a pending block with uses off. NO_HOST_MEMORY leaves everything as it was.
enum vram_status vr_defer(struct vr_device *device, uint32_t block);
// No known capture is under way any more: completes deferred blocks, or fences the uses that were recorded outside a capture. Those with
// a stream that captures all the same wait on.
enum vram_status vr_deferred_convert(struct vr_device *device);
// The same for blocks of one pool.
enum vram_status vr_deferred_convert_pool(struct vr_device *device, const struct vram_pool *pool);
// graph_capture_record_stream_reuse: completes the deferred blocks of `stream` whose markers all lie before what it does next.
enum vram_status vr_deferred_reuse(struct vr_device *device, uint64_t stream);
// Whether the block's free was put off.
bool vr_is_deferred(const struct vr_device *device, uint32_t block);
// Frees the lists. At the end only.
void vr_captures_release(struct vr_captures *captures);

#endif
