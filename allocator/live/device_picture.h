// device_picture.h: a copy of the state of a device's memory, made under its locks.
#ifndef VR_LIVE_DEVICE_PICTURE_H
#define VR_LIVE_DEVICE_PICTURE_H

#include "core/state.h"

struct vr_picture_block {
    uint64_t address;
    uint64_t size;
    uint64_t requested; // 0 for a free block
    uint32_t stack;
    uint32_t words;
    uint8_t state; // VR_FREE, VR_ALLOCATED, VR_PENDING
};

// A cudaMalloc segment, one mapped run of an expandable segment, or a block outside the pools, which is a segment by itself.
struct vr_picture_segment {
    uint64_t address;
    uint64_t size;
    uint64_t stream;
    uint64_t counter;
    struct vram_pool_id pool;
    uint32_t stack;
    bool small;
    bool expandable;
    bool vacant;        // its memory was released; its addresses stay
    size_t first_block; // index in blocks; the next segment's first_block ends it
};

struct vr_picture {
    struct vr_picture_segment *segments; // by ascending address
    size_t segment_count, segments_capacity;
    struct vr_picture_block *blocks;
    size_t block_count, blocks_capacity;
    uint64_t active_bytes;
};

// Copies the state of the device, or of one pool if `only` is not NULL, into an empty picture. Then calls `at` (may be NULL), still under
// the locks. Call vr_picture_release() afterwards, even on failure. NO_HOST_MEMORY.
enum vram_status vr_picture_take(struct vr_device *device, const struct vram_pool *only, struct vr_picture *picture,
                                 void (*at)(struct vr_device *device, const struct vr_picture *picture, void *user), void *user);
void vr_picture_release(struct vr_picture *picture);

#endif
