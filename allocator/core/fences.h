// fences.h: uses of blocks on other streams, and the fences that keep a freed block pending until those streams have passed. Within a
// stream, fences complete in the order of their recording. Streams are polled in the order of their first use.
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
    struct vr_device *event_device; // the device whose event pool gets the event back
    uint32_t block;
};

// The fences recorded on one stream, oldest first, in a ring buffer.
struct vr_fence_queue {
    uint64_t stream;
    struct vr_fence *fences;
    size_t capacity; // 0 or a power of two
    size_t head;
    size_t count;
};

// Idle events, for reuse. The mutex (a leaf lock) is needed only with several devices, because a block's fences may be on another device's
// streams.
struct vr_events {
    struct vr_mutex mutex;
    uint64_t *idle;
    size_t count;
    size_t idle_capacity;
};

// Up to this many queues are searched linearly.
enum { VR_FEW_QUEUES = 8 };

// The fences of a device. Guarded by its lock, except `events`.
struct vr_fences {
    struct vr_fence_queue *queues; // in order of first use; only the last may be empty, and may then be renamed for another stream
    size_t count;
    size_t queues_capacity;
    struct vr_map places; // stream -> 1 + index of its queue; empty while there are at most VR_FEW_QUEUES
    uint64_t looked_at;   // the driver's progress at the last poll of all queues; 0: unknown
    struct vr_events events;
};

// Adds `stream` to the uses of an allocated block. Repeated calls change nothing. captured: recorded during a capture. Under the device's
// lock. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_uses_add(struct vram_allocator *allocator, struct vr_block *block, uint64_t stream, bool captured);
// Like vr_uses_add(), for a list of uses (0: empty). Takes the record from the list `spare` if it has one (NULL: none).
enum vram_status vr_uses_enter(struct vram_allocator *allocator, uint32_t *uses, uint64_t stream, bool captured, uint32_t *spare);
// Forgets all uses of a block.
void vr_uses_clear(struct vram_allocator *allocator, struct vr_block *block);

// Records a fence on every stream that used the block, sets block->held.pending to their number, and forgets the uses. On failure records
// nothing and keeps the uses. *gone (may be NULL): whether it failed because a stream was destroyed. Under the device's lock. DRIVER,
// NO_HOST_MEMORY.
enum vram_status vr_fences_record(struct vr_device *device, uint32_t block, bool *gone);
// Waits until all devices are idle, and forgets the block's uses: for streams on which no fence can be recorded. Must not be called during
// a capture, which the wait would invalidate. Under the device's lock. DRIVER.
enum vram_status vr_uses_wait(struct vram_allocator *allocator, struct vr_block *block);
// Makes the stream `after` wait for the work that `before` has now. If one of them was destroyed, the host waits for all devices instead.
// Must not be called while a capture is under way. Under all locks, with the context current. DRIVER.
enum vram_status vr_streams_order(struct vr_device *device, uint64_t before, uint64_t after);
// Records an event on the stream. *event: 0 if the stream was destroyed or belongs to another device. The stream must not be capturing.
// DRIVER.
enum vram_status vr_event_at(struct vr_device *device, uint64_t stream, uint64_t *event);
enum vram_status vr_event_passed(struct vr_device *device, uint64_t event, bool *passed);
void vr_event_return(struct vr_device *device, uint64_t event);
// Makes the block's own stream wait for the streams that used the block, and forgets these uses. The block can then be reused at once, in
// its stream's order. Must not be called while a capture concerns the device. On failure (DRIVER) the remaining uses stay. Under all locks,
// with the context current.
enum vram_status vr_uses_order(struct vr_device *device, struct vr_block *block);
// Polls each stream's fences, oldest first, up to the first one that is pending. Completes the blocks with no fence left. The context need
// not be current: if the driver needs one, sets *all to false and stops. all NULL: the context is current. Under the device's lock. DRIVER
// if a query fails.
enum vram_status vr_fences_poll(struct vr_device *device, bool *all);
// Waits for every fence (num_sync_all_streams + 1) and completes all blocks. Under all locks, so that the caller can release the memory
// before another thread takes it.
enum vram_status vr_fences_wait(struct vr_device *device);
// Waits for the fences of one private pool's blocks only.
enum vram_status vr_fences_wait_pool(struct vr_device *device, const struct vram_pool *pool);

// For each pending block of the pool, makes its own stream wait for its fences, and completes the block: its reuse is then in its stream's
// order. Must not be called during a capture, because the wait would become part of it. On failure (DRIVER) the remaining blocks stay
// pending. Under all locks, with the context current.
enum vram_status vr_fences_order_pool(struct vr_device *device, const struct vram_pool *pool);

// Returns whether any fence is pending. Under the device's mutex.
bool vr_fences_wait_for_any(const struct vr_fences *fences);
// Returns whether each queue is found by its stream, and none but the last is empty. Under all locks.
bool vr_fences_check(const struct vr_fences *fences);

void vr_fences_init(struct vr_device *device);
// Destroys idle events and fences when the device is destroyed.
void vr_fences_release(struct vr_device *device);

#endif
