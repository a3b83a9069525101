// record.h: the door through which what the allocator does is told to whoever listens (history, replay, tests).
#ifndef VR_RECORD_H
#define VR_RECORD_H

#include "base/base.h"
#include "vram/allocator.h"

// The events of allocator-behaviour §11.1. Values are those of enum vr_action in the model's order where both exist; core does
// not include the model, history translates.
enum vr_record_action {
    VR_RECORD_ALLOC,
    VR_RECORD_FREE_REQUESTED,
    VR_RECORD_FREE_COMPLETED,
    VR_RECORD_SEGMENT_ALLOC,
    VR_RECORD_SEGMENT_FREE,
    VR_RECORD_SEGMENT_MAP,
    VR_RECORD_SEGMENT_UNMAP,
    VR_RECORD_OOM,
};

struct vr_record {
    uint64_t sequence;   // total order over all shards of the device
    uint64_t address;    // OOM: the driver's free bytes
    uint64_t size_bytes; // block records: requested; segment records: the segment's or range's; OOM: the rounded request
    uint64_t stream;
    uint32_t device;
    enum vr_record_action action;
};

// Called under the lock of the block's shard (or all of them): must be quick and must not call the allocator.
typedef void (*vr_recorder)(const struct vr_record *record, void *user);

// One recorder per allocator; NULL detaches. Not while other threads use the allocator.
void vr_allocator_set_recorder(struct vram_allocator *allocator, vr_recorder recorder, void *user);

#endif
