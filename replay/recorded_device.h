// recorded_device.h: one device of a recording as the replay sees it: its events, its final segments, the settings it ran with, its private
// pools.
#ifndef VR_REPLAY_RECORDED_DEVICE_H
#define VR_REPLAY_RECORDED_DEVICE_H

#include "base/text.h"
#include "config/options.h"
#include "config/recorded_options.h"
#include "core/size_rules.h"
#include "model/model.h"
#include "vram/allocator.h"

// ---- The private pools of one device's recording, and which of them each event is of (replay.md §pools).

// The event's pool is not recorded, and neither is anything that it could be told from.
#define VR_POOL_UNKNOWN UINT32_MAX

// Where a pool's memory was seen to come from.
enum vr_pool_memory { VR_POOL_SEGMENTS = 1, VR_POOL_EXPANDABLE = 2 };

// Pools are numbered; 0 is the default pools. A recording without private pools has no other number, and no table of events.
//
// An event is of the pool that its pool id says; without one, of the pool of the segment that held its address at that moment,
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

// ---- One device of a recording as the replay sees it: its events, its final segments, the settings it ran with.

struct vr_recorded_device {
    const struct vr_model *model;     // borrowed
    const struct vr_history *history; // of the device; an empty one where the recording has none
    const struct vr_options *options; // the settings recorded, borrowed
    uint32_t device;
    uint32_t *segments; // rows of the device's final segments, ascending by address
    size_t segment_count;
    struct vr_pools pools;
    bool *no_split;    // by pool: its blocks are handed out whole, as far as the final picture tells; NULL: none
    bool leave_out;    // events of unknown pools are passed over; otherwise they count as of the default pools
    uint64_t *streams; // distinct, ascending, of segments and events
    size_t stream_count;
    struct vr_hindsight *hindsight; // what earlier replays told, and where this one notes more; NULL: nothing is known
    uint64_t capacity_bytes;        // the device's memory, which expandable segments reserve address space by; 0: as much as there can be
};

// The devices that have events or segments, ascending; pinned host memory, which has rules of its own, is none. *devices is given to the
// caller: free().
enum vram_status vr_recorded_device_devices(const struct vr_model *model, uint32_t **devices, size_t *count);
// Borrows the model and the options. BAD_INPUT for a history of 2^32 - 2 events and more, or of too many pools.
// vr_recorded_device_release().
enum vram_status vr_recorded_device_init(struct vr_recorded_device *recorded, const struct vr_model *model,
                                         const struct vr_options *options, uint32_t device, struct vram_error *error);
void vr_recorded_device_release(struct vr_recorded_device *recorded);
// The number of the event's pool.
VR_INLINE uint32_t vr_recorded_device_pool(const struct vr_recorded_device *recorded, size_t event) {
    const uint32_t pool = recorded->pools.of_event == NULL ? 0 : recorded->pools.of_event[event];
    return pool == VR_POOL_UNKNOWN ? 0 : pool;
}
// Whether a pool gets its memory from functions of its own (NCCL's, say): it has ordinary segments although the settings say expandable
// ones. Where they do not, such a pool is like any other.
bool vr_recorded_device_has_functions(const struct vr_recorded_device *recorded, uint32_t pool);
// The number of the pool of a row of the model's segments.
uint32_t vr_recorded_device_segment_pool(const struct vr_recorded_device *recorded, uint32_t row);
// What an expandable segment maps at once: a multiple of the 2 MiB that a device maps at least.
VR_INLINE uint64_t vr_recorded_device_page(const struct vr_options *options, bool small) {
    return small ? 2 * VR_MIB : vr_round_up(vr_large_segment(options), 2 * VR_MIB);
}
// Whether the event is to be passed over because its pool is not known.
VR_INLINE bool vr_recorded_device_leaves_out(const struct vr_recorded_device *recorded, size_t event) {
    return recorded->leave_out && recorded->pools.of_event != NULL && recorded->pools.of_event[event] == VR_POOL_UNKNOWN;
}
// Whether the action says anything about memory; snapshot, annotate and user_defined do not.
bool vr_action_is_ignored(enum vr_action action);

#endif
