// record.h: records of the allocator's events for a listener (history, replay, tests).
#ifndef VR_CORE_RECORD_H
#define VR_CORE_RECORD_H

#include <stdatomic.h>

#include "base/base.h"
#include "vram/allocator.h"

// The events of allocator.md §records. The values follow enum vr_action of the model where both exist. The core does not include the model;
// the history translates.
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
    uint64_t sequence;   // total order over all shards of the device; 0 if the listener numbers records itself
    uint64_t address;    // OOM: the driver's free bytes
    uint64_t size_bytes; // block records: requested; segment records: the segment's or range's; OOM: the rounded request
    uint64_t stream;
    struct vram_pool_id pool;
    uint32_t device;
    enum vr_record_action action;
    uint32_t stack; // of the current call, else of the block or segment; 0: none
    uint32_t kept;  // the stack of the block or segment; 0: none
    uint32_t words; // the client's name for the block: a number that only the listener can resolve
    bool vacant;    // SEGMENT_MAP, SEGMENT_UNMAP: the memory came back or went away, and the blocks stay; address 0: for a whole pool
    bool completed; // FREE_REQUESTED: also completes the free; no FREE_COMPLETED follows (only for listeners with `pairs`)
};

// Called under the device's lock: must be quick and must not call the allocator.
typedef void (*vr_recorder)(const struct vr_record *record, void *user);

// Which calls capture their stack (allocator.md §records). Each level includes the previous ones.
enum vr_level { VR_LEVEL_NEVER, VR_LEVEL_STATE, VR_LEVEL_ALLOC, VR_LEVEL_ALL };

// A listener. Must live until the allocator is destroyed, or until no other thread can be in a call on it.
struct vr_listener {
    vr_recorder record;
    // Captures the caller's stack without its `skip` innermost frames, for a call of this level. Returns its number, or 0. Called without
    // locks. May be NULL.
    uint32_t (*gather)(uint32_t skip, enum vr_level need, void *user);
    void *user;
    bool numbered;          // wants sequence numbers
    bool pairs;             // accepts both halves of a free in one record
    bool foreign;           // understands stacks that are clients' contexts (foreign_stacks.h)
    _Atomic uint32_t level; // enum vr_level; NEVER without `gather`
};

// Attaches the allocator's only listener; NULL detaches it. `devices`: bit n for device n. Any thread. Events after the call go only to the
// new listener.
void vr_allocator_set_listener(struct vram_allocator *allocator, const struct vr_listener *listener, uint64_t devices);
// Attaches a plain function instead. Must not be called while other threads use the allocator.
void vr_allocator_set_recorder(struct vram_allocator *allocator, vr_recorder recorder, void *user);

// The stack of the calling thread's current call.
extern _Thread_local uint32_t vr_current_stack;

#endif
