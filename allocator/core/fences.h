// fences.h: uses on other streams, and the fences that hold a freed block back until those streams have passed.
//
// Within a stream fences complete in the order they were recorded; streams are looked at in the order of their first use.
#ifndef VR_CORE_FENCES_H
#define VR_CORE_FENCES_H

#include "base/hash.h"
#include "core/block.h"

struct vr_device;
struct vr_shard;
struct vram_pool;
struct vram_allocator;

// A point in a stream that a freed block waits for.
struct vr_fence {
    uint64_t event;
    struct vr_device *event_device; // whose event pool it returns to
    uint32_t block;
};

// The fences recorded on one stream, oldest first, as a ring.
struct vr_fence_queue {
    uint64_t stream;
    struct vr_fence *fences;
    size_t capacity; // 0 or a power of two
    size_t head;
    size_t count;
};

// Events to use again. Leaf lock, where there are several devices: a block's fences may lie on another's streams.
struct vr_events {
    struct vr_mutex mutex;
    uint64_t *idle;
    size_t count;
    size_t idle_capacity;
};

// Up to so many a queue is looked for from the first on.
enum { VR_FEW_QUEUES = 8 };

// Of a device. Guarded by its lock, but for the events.
struct vr_fences {
    struct vr_fence_queue *queues; // in order of first use; the last one may be empty, and is then nobody's but by its name
    size_t count;
    size_t queues_capacity;
    struct vr_map places; // stream -> 1 + its queue's place, while there are more than VR_FEW_QUEUES; else empty
    uint64_t looked_at;   // the driver's progress when all queues were looked at last; 0: not known
    struct vr_events events;
};

// Adds `stream` to the uses of an allocated block; repeated calls change nothing. Under the device's lock. LIMIT, NO_HOST_MEMORY.
// captured: recorded during a capture.
enum vram_status vr_uses_add(struct vram_allocator *allocator, struct vr_block *block, uint64_t stream, bool captured);
// The same of a list of uses (0: empty), with records at hand in the list `spare` (NULL: none).
enum vram_status vr_uses_enter(struct vram_allocator *allocator, uint32_t *uses, uint64_t stream, bool captured, uint32_t *spare);
// Forgets all uses of a block.
void vr_uses_clear(struct vram_allocator *allocator, struct vr_block *block);

// Records a fence on every stream that the block was used on, and forgets the uses; block->held.pending becomes their number. On
// failure nothing is recorded and the uses stay. *gone (may be NULL): DRIVER because a stream was destroyed. Under the
// device's lock.
enum vram_status vr_fences_record(struct vr_device *device, uint32_t block, bool *gone);
// Waits until nothing on any device uses the block, and forgets its uses: for streams that take no fence. Not while a capture is under
// way: it would spoil it. DRIVER. Under all locks.
enum vram_status vr_uses_wait(struct vram_allocator *allocator, struct vr_block *block);
// Lets the stream `after` wait for all that `before` has now; where one of them is gone, the host for everything. Not while a capture is
// under way. DRIVER. Under all locks, context current.
enum vram_status vr_streams_order(struct vr_device *device, uint64_t before, uint64_t after);
// An event at what the stream has now; 0 where there can be none. Not on a stream that captures. DRIVER.
enum vram_status vr_event_at(struct vr_device *device, uint64_t stream, uint64_t *event);
enum vram_status vr_event_passed(struct vr_device *device, uint64_t event, bool *passed);
void vr_event_return(struct vr_device *device, uint64_t event);
// Lets the block's own stream wait for the other ones, and forgets these: then it can be used again at once, in the stream's order. Not
// while a capture concerns the device. On failure (DRIVER) the rest of the uses stay. Under all locks, context current.
enum vram_status vr_uses_order(struct vr_device *device, struct vr_block *block);
// Looks at the oldest fence of each stream, and the ones after it, until one is pending; completes the blocks that have none left.
// DRIVER when a query fails. *all: false where the driver wants a context, which need not be current; NULL: it is. Under the device's lock.
enum vram_status vr_fences_poll(struct vr_device *device, bool *all);
// Waits for every fence (num_sync_all_streams + 1) and completes all blocks. Under all locks: the caller asked to wait, and what
// becomes free must be released before anybody takes it again.
enum vram_status vr_fences_wait(struct vr_device *device);
// The same for the blocks of one private pool alone.
enum vram_status vr_fences_wait_pool(struct vr_device *device, const struct vram_pool *pool);

// The own stream of each block of the pool that waits is made to wait for its fences instead: the blocks are complete, in the order of
// their streams. Not while a capture is under way: a fence would become part of it. DRIVER: the rest waits on. Under all locks, context
// current.
enum vram_status vr_fences_order_pool(struct vr_device *device, const struct vram_pool *pool);

// Whether any fence is pending. Under the device's mutex.
bool vr_fences_wait_for_any(const struct vr_fences *fences);
// Whether each queue is found by its stream, and none is empty but the last. Under all locks.
bool vr_fences_check(const struct vr_fences *fences);

void vr_fences_init(struct vr_device *device);
// Destroys idle events and fences. At the end only.
void vr_fences_release(struct vr_device *device);

#endif
