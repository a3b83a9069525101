// segments.h: the books of a device's segments: which there are, by address, and what they hold from the driver. All under all locks of
// the device.
#ifndef VR_CORE_SEGMENTS_H
#define VR_CORE_SEGMENTS_H

#include "base/stat.h"
#include "core/block.h"
#include "driver/driver.h"

struct vr_device;
struct vr_shard;
struct vram_pool;

typedef vr_cu_result vr_give_back_call(struct vram_driver *driver, uint64_t handle, uint64_t size);

// Something that goes back to the driver. What that refuses is an orphan: tried again at the next release and at the end.
struct vr_driver_memory {
    vr_give_back_call *give_back; // of the source that owns it
    uint64_t handle;              // or address, or event
    uint64_t size;
};

enum { VR_FORGOTTEN_AT_ONCE = 64 };

// The segments of a device: a tree by address of records (block.h) that have an address and a segment, and are no blocks.
struct vr_segment_books {
    uint32_t root;
    struct vr_segment_list defaults;     // those of the default pools
    uint32_t gone[VR_FORGOTTEN_AT_ONCE]; // forgotten, to be given back together
    uint32_t gone_count;
    bool forgetting;   // between vr_segments_forget_many() and vr_segments_forgotten()
    uint64_t least[2]; // by enum vr_pool_kind: the size of the smallest segment there ever was; 0: none
    struct vr_driver_memory *orphans;
    size_t orphan_count;
    size_t orphans_capacity;
};

// Enters a segment with its first block record, which is in no index. The facts: address, size, mapped, source and what the source needs.
// NO_HOST_MEMORY, LIMIT.
enum vram_status vr_segment_register(struct vr_shard *shard, bool small, const struct vr_segment *facts, uint32_t *segment);
// The reverse: the segment has one block, in no index.
void vr_segment_forget(struct vr_shard *shard, uint32_t segment);
// What is forgotten between these two goes back to the table of segments many at once.
void vr_segments_forget_many(struct vr_device *device);
void vr_segments_forgotten(struct vr_device *device);
// The segment at the lowest address, and the one after another one; 0: there is none. Under the device's mutex.
uint32_t vr_segment_first(const struct vr_device *device);
uint32_t vr_segment_after(const struct vr_device *device, uint32_t segment);
// The same of a private pool (NULL: of all default pools), in no order that means anything: 0 for the first one.
uint32_t vr_segment_of_pool_after(const struct vr_device *device, const struct vram_pool *pool, uint32_t segment);
// The segment belongs to another shard of the device from now on. Its blocks are the caller's matter.
void vr_segment_move(struct vr_device *device, uint32_t segment, const struct vr_shard *to);
// The block of any state, hole or not, that contains the address; 0 if no segment of the device does.
uint32_t vr_block_containing(const struct vr_device *device, uint64_t address);
// Books reserved bytes of the device and of the shard's private pool; both signs.
void vr_reserved_add(struct vr_shard *shard, bool small, int64_t bytes);
// Bytes of the large pool go from one shard to another one of the device: their private pools' books alone change.
void vr_reserved_move(struct vr_shard *from, struct vr_shard *to, int64_t bytes);
enum vram_stat_pool vr_stat_view(bool small);

// Gives memory back to the driver. DRIVER: it would not take it; it is remembered.
enum vram_status vr_give_back(struct vr_device *device, const struct vr_driver_memory *memory);
// Tries again to give orphans back, in the order in which they were refused: those of one kind, or (NULL) all.
void vr_orphans_retry(struct vr_device *device, vr_give_back_call *only);
// Frees the books themselves: the records are the allocator's. At the end only.
void vr_segments_release(struct vr_segment_books *segments);

#endif
