// recorded_device.h: one device of a recording as the replay sees it: its events, its final segments, the settings it ran with.
#ifndef VR_REPLAY_RECORDED_DEVICE_H
#define VR_REPLAY_RECORDED_DEVICE_H

#include "base/text.h"
#include "config/options.h"
#include "config/recorded_options.h"
#include "core/size_rules.h"
#include "model/model.h"
#include "replay/recorded_pools.h"
#include "vram/allocator.h"

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
