// record.h: what the allocator does, as records for whoever listens (history, replay, tests).
#ifndef VR_CORE_RECORD_H
#define VR_CORE_RECORD_H

#include <stdatomic.h>

#include "base/base.h"
#include "vram/allocator.h"

// The events of allocator.md §records. Values are those of enum vr_action in the model's order where both exist; core does
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
    VR_RECORD_SNAPSHOT,
    VR_RECORD_ANNOTATE,
    VR_RECORD_COUNT
};

struct vr_record {
    uint64_t sequence;   // total order over all shards of the device; 0 for a listener that keeps an order of its own
    uint64_t address;    // OOM: the driver's free bytes
    uint64_t size_bytes; // block records: requested; segment records: the segment's or range's; OOM: the rounded request
    uint64_t stream;
    struct vram_pool_id pool;
    uint32_t device;
    enum vr_record_action action;
    uint32_t stack; // of the call that is under way, else of the block or segment; 0: none
    uint32_t kept;  // the stack of the block or segment; 0: none
    uint32_t words; // the client's name of the block: a number that only the listener understands
    bool vacant;    // SEGMENT_MAP, SEGMENT_UNMAP: the memory came back or went away, and the blocks stay; address 0: of a whole pool
    bool completed; // FREE_REQUESTED: the block is free at once; FREE_COMPLETED is not told of its own (listeners that take pairs)
};

// Called under the device's lock: must be quick and must not call the allocator.
typedef void (*vr_recorder)(const struct vr_record *record, void *user);

// Which calls take their stack (allocator.md §records); each level includes those before.
enum vr_level { VR_LEVEL_NEVER, VR_LEVEL_STATE, VR_LEVEL_ALLOC, VR_LEVEL_ALL };

// Who listens. Lives until the allocator is destroyed, or until no other thread can be in a call on it.
struct vr_listener {
    vr_recorder record;
    // Takes the stack of the caller without its `skip` innermost frames, for a call of this level, and gives its number, 0 for none.
    // Without any lock. May be NULL.
    uint32_t (*gather)(uint32_t skip, enum vr_level need, void *user);
    void *user;
    bool numbered;          // wants sequence numbers
    bool pairs;             // takes both halves of a free in one record
    bool foreign;           // knows stacks that are clients' contexts (foreign_stacks.h)
    _Atomic uint32_t level; // enum vr_level; NEVER without gather
};

// One listener per allocator; NULL detaches. `devices`: bit n for device n. Any thread; what happens after the call is told to the new one
// only.
void vr_allocator_set_listener(struct vram_allocator *allocator, const struct vr_listener *listener, uint64_t devices);
// The same for a plain function. Not while other threads use the allocator.
void vr_allocator_set_recorder(struct vram_allocator *allocator, vr_recorder recorder, void *user);

// The stack of the calling thread's call that is under way.
extern _Thread_local uint32_t vr_current_stack;

#endif
