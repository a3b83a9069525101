// recorded_device.h: one device of a recording, as replays need it: its events, final segments, settings and private pools.
#ifndef VR_REPLAY_RECORDED_DEVICE_H
#define VR_REPLAY_RECORDED_DEVICE_H

#include "base/text.h"
#include "config/options.h"
#include "config/recorded_options.h"
#include "config/size_rules.h"
#include "model/model.h"
#include "vram/allocator.h"

// ---- The private pools of one device's recording, and the pool of each event (replay.md §pools).

// The event's pool is not recorded and cannot be inferred.
#define VR_POOL_UNKNOWN UINT32_MAX

// The observed sources of a pool's memory.
enum vr_pool_memory { VR_POOL_SEGMENTS = 1, VR_POOL_EXPANDABLE = 2 };

// Pools are numbered; 0 means the default pools. A recording without private pools has no other number, and no table of events.
//
// An event's pool is that of its pool id; without a pool id, it is the pool of the segment that had its address at that moment, as far as
// the final state shows. A segment released in the history by an event without a pool id could be of any pool: its events are unknown.
struct vr_pools {
    struct vram_pool_id *ids; // ascending; ids[0] is (0, 0)
    size_t count;             // at least 1
    uint32_t *of_event;       // by event: number or VR_POOL_UNKNOWN; NULL: every event belongs to the default pools
    size_t *used;             // by pool: one past its last alloc event; 0 if absent
    uint8_t *memory;          // by pool: enum vr_pool_memory bits observed
    uint64_t unknown_events;
    uint64_t unknown_allocations; // of these, alloc events
};

// A segment of the final state, for vr_pools_find().
struct vr_pool_segment {
    uint64_t address;
    uint64_t size;
    uint64_t stream;
    struct vram_pool_id id;
    bool expandable;
};

// ---- One device of a recording, as replays need it: its events, final segments and settings.

struct vr_recorded_device {
    const struct vr_model *model;     // borrowed
    const struct vr_history *history; // of the device; empty if absent
    const struct vr_options *options; // recorded settings, borrowed
    uint32_t device;
    uint32_t *segments; // rows of the device's final segments, ascending by address
    size_t segment_count;
    struct vr_pools pools;
    bool *no_split;    // by pool: it never splits blocks, as far as the recording shows; NULL: no such pool
    bool leave_out;    // skip events of unknown pools; otherwise they count as the default pools'
    uint64_t *streams; // of segments and events; distinct, ascending
    size_t stream_count;
    struct vr_hindsight *hindsight; // facts from earlier replays, to which this one adds; NULL: none
    uint64_t
        capacity_bytes; // the device's memory, which determines the address space that expandable segments reserve; 0: as much as possible
};

// Sets *devices to the devices with events or segments, ascending; excludes pinned host memory, which has other rules. The caller frees
// *devices.
enum vram_status vr_recorded_device_devices(const struct vr_model *model, uint32_t **devices, size_t *count);
// Borrows the model and the options. BAD_INPUT for a history of 2^32 - 2 or more events, or with too many pools. Release by
// vr_recorded_device_release().
enum vram_status vr_recorded_device_init(struct vr_recorded_device *recorded, const struct vr_model *model,
                                         const struct vr_options *options, uint32_t device, struct vram_error *error);
void vr_recorded_device_release(struct vr_recorded_device *recorded);
// Returns the number of the event's pool.
VR_INLINE uint32_t vr_recorded_device_pool(const struct vr_recorded_device *recorded, size_t event) {
    const uint32_t pool = recorded->pools.of_event == NULL ? 0 : recorded->pools.of_event[event];
    return pool == VR_POOL_UNKNOWN ? 0 : pool;
}
// Returns whether a pool gets its memory from functions of its own (such as NCCL's): it has ordinary segments although the settings say
// expandable ones. With other settings, such a pool is like any other.
bool vr_recorded_device_has_functions(const struct vr_recorded_device *recorded, uint32_t pool);
// Returns the number of the pool of a row in the model's segments.
uint32_t vr_recorded_device_segment_pool(const struct vr_recorded_device *recorded, uint32_t row);
// Returns how much an expandable segment maps at a time: a multiple of 2 MiB, the least that a device maps.
VR_INLINE uint64_t vr_recorded_device_page(const struct vr_options *options, bool small) {
    return small ? 2 * VR_MIB : vr_round_up(vr_large_segment(options), 2 * VR_MIB);
}
// Returns whether to skip the event because its pool is unknown.
VR_INLINE bool vr_recorded_device_leaves_out(const struct vr_recorded_device *recorded, size_t event) {
    return recorded->leave_out && recorded->pools.of_event != NULL && recorded->pools.of_event[event] == VR_POOL_UNKNOWN;
}
// Returns whether the action does not concern memory: snapshot, annotate and user_defined.
bool vr_action_is_ignored(enum vr_action action);

#endif
