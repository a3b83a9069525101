// segments.h: a device's segments by address, and the driver memory they own. Call all of it under all locks of the device.
#ifndef VR_CORE_SEGMENTS_H
#define VR_CORE_SEGMENTS_H

#include "base/stat.h"
#include "core/block.h"
#include "driver/driver.h"

struct vr_device;
struct vr_shard;
struct vram_pool;

typedef vr_cu_result vr_give_back_call(struct vram_driver *driver, uint64_t handle, uint64_t size);

// Memory to return to the driver. If the driver refuses, it becomes an orphan: retried at the next release and at the end.
struct vr_driver_memory {
    vr_give_back_call *give_back; // the function of its source that frees it
    uint64_t handle;              // or an address, or an event
    uint64_t size;
};

enum { VR_FORGOTTEN_AT_ONCE = 64 };

// A device's segments. The tree orders them by address: its nodes are block records (block.h) with an address and a segment that are not
// blocks.
struct vr_segment_books {
    uint32_t root;
    struct vr_segment_list defaults;     // segments of the default pools
    uint32_t gone[VR_FORGOTTEN_AT_ONCE]; // forgotten segments, to be returned to the table together
    uint32_t gone_count;
    bool forgetting;   // between vr_segments_forget_many() and vr_segments_forgotten()
    uint64_t least[2]; // by enum vr_pool_kind: size of the smallest segment there ever was; 0: none
    struct vr_driver_memory *orphans;
    size_t orphan_count;
    size_t orphans_capacity;
};

// Enters a segment and its first block record, which is in no index. The caller fills in `facts`: address, size, mapped, source, and the
// source's own fields. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_segment_register(struct vr_shard *shard, bool small, const struct vr_segment *facts, uint32_t *segment);
// Removes a segment, which must have only one block, in no index.
void vr_segment_forget(struct vr_shard *shard, uint32_t segment);
// Between these two calls, removed segments are collected and returned to the table in batches.
void vr_segments_forget_many(struct vr_device *device);
void vr_segments_forgotten(struct vr_device *device);
// Return the segment at the lowest address, and the next one by address; 0 if there is none. Under the device's mutex.
uint32_t vr_segment_first(const struct vr_device *device);
uint32_t vr_segment_after(const struct vr_device *device, uint32_t segment);
// Returns the next segment of a private pool (NULL: of all default pools) after `segment` (0: the first one), or 0. In unspecified order.
uint32_t vr_segment_of_pool_after(const struct vr_device *device, const struct vram_pool *pool, uint32_t segment);
// Moves the segment to another shard of the device. The caller moves its blocks. No counter changes: either both shards belong to the same
// pool, or the segment's bytes are counted with its pages, which have their own pools (vr_reserved_move()).
void vr_segment_move(struct vr_device *device, uint32_t segment, const struct vr_shard *to);
// Returns the block, in any state including VR_HOLE, that contains the address, or 0 if no segment of the device does.
uint32_t vr_block_containing(const struct vr_device *device, uint64_t address);
// Adds reserved bytes (positive or negative) to the counters of the device and of the shard's private pool.
void vr_reserved_add(struct vr_shard *shard, bool small, int64_t bytes);
// Moves bytes of the large pool from one shard to another of the device: only the counters of their private pools change.
void vr_reserved_move(struct vr_shard *from, struct vr_shard *to, int64_t bytes);
enum vram_stat_pool vr_stat_view(bool small);

// Returns memory to the driver. On failure (DRIVER) keeps it as an orphan.
enum vram_status vr_give_back(struct vr_device *device, const struct vr_driver_memory *memory);
// Retries the orphans with this function, or (NULL) all, in the order in which they became orphans.
void vr_orphans_retry(struct vr_device *device, vr_give_back_call *only);
// Frees the tables. The records belong to the allocator. At the end only.
void vr_segments_release(struct vr_segment_books *segments);

#endif
