// recorded_pools.h: the private pools of one device's recording, and which of them each event is of (replay.md §pools).
#ifndef VR_REPLAY_RECORDED_POOLS_H
#define VR_REPLAY_RECORDED_POOLS_H

#include "model/model.h"
#include "vram/allocator.h"

// The event's pool is not recorded, and neither is anything that it could be told from.
#define VR_POOL_UNKNOWN UINT32_MAX

// Where a pool's memory was seen to come from.
enum vr_pool_memory { VR_POOL_SEGMENTS = 1, VR_POOL_EXPANDABLE = 2 };

// Pools are numbered; 0 is the default pools. A recording without private pools has no other number, and no table of events.
//
// An event is of the pool that its pool id says; where it has none, of the pool of the segment that held its address at that moment,
// as far as the final picture tells. A segment that was given back inside the history by an event without a pool id could have been
// of any pool: its events are unknown.
struct vr_pools {
    struct vram_pool_id *ids; // ascending; ids[0] is (0, 0)
    size_t count;             // at least 1
    uint32_t *of_event;       // by event: number or VR_POOL_UNKNOWN; NULL: every event is of the default pools
    size_t *used;             // by pool: one past its last alloc event, 0 if none
    uint8_t *memory;          // by pool: enum vr_pool_memory bits of what it was seen to have
    uint64_t unknown_events;
    uint64_t unknown_allocations; // of these, alloc events
};

// A segment of the final picture, for vr_pools_find().
struct vr_pool_segment {
    uint64_t address;
    uint64_t size;
    uint64_t stream;
    struct vram_pool_id id;
    bool expandable;
};

// Numbers the pools and attributes the events. The segments are those of the device. BAD_INPUT for more pools than a replay can hold;
// NO_HOST_MEMORY. vr_pools_release() also after a failure.
enum vram_status vr_pools_find(struct vr_pools *pools, const struct vr_history *history, const struct vr_pool_segment *segments,
                               size_t segment_count, struct vram_error *error);
void vr_pools_release(struct vr_pools *pools);
// The number of a pool that was found; 0 for any other id.
uint32_t vr_pools_number(const struct vr_pools *pools, struct vram_pool_id id);

#endif
