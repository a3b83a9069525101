// block.h: the record of a block, and the tables that blocks, segments and recorded uses live in.
//
// A block is a piece of a segment. Records are named by 32-bit indices (0 = none) into a reserved array that never moves, so
// that a record costs 64 bytes and a link 4. The record at the lowest address of a split or a merge is the one that stays:
// the first record of a segment is therefore the same for the segment's whole life.
#ifndef VR_CORE_BLOCK_H
#define VR_CORE_BLOCK_H

#include <stdatomic.h>

#include "base/base.h"
#include "os/os.h"

// Where a block is. The transitions: HOLE -> FREE (map) -> ALLOCATED (malloc) -> [AT_FRONT | PENDING] -> FREE -> HOLE (unmap).
enum vr_state {
    VR_UNUSED,    // the record is in a free list, or stands for a segment (segments.h)
    VR_FREE,      // in its pool's index
    VR_ALLOCATED, // the client's
    VR_PENDING,   // freed by the client, waiting for fences
    VR_AT_FRONT,  // freed by the client; its merge is left undone (front.h): at most one per pool
    VR_HOLE,      // unmapped address range of an expandable segment, in its pool's set of holes
    VR_VACANT,    // free in a vacant segment: in no index
};

// Free memory that a picture shows.
VR_INLINE bool vr_is_cached(uint8_t state) { return state == VR_FREE || state == VR_VACANT; }

// vr_block.expandable: 0 outside of expandable segments. A SLOT is a block of a source with slots, which has no neighbours. All blocks of a
// chain are VACANT while its memory is away.
enum { VR_EXPANDABLE_CHAIN = 1, VR_EXPANDABLE_SLOT = 2, VR_EXPANDABLE_VACANT = 3 };

// Links are used by the state that needs them: tree links while in the index or the holes, holders while allocated or pending. Runs of
// holes: hole_runs.h.
struct vr_block {
    uint64_t address;
    uint64_t size; // bytes, a multiple of 512
    union {
        uint64_t requested; // bytes the client asked for; meaningless while free
        uint64_t age;       // in the index: what orders it among equal sizes, before the address
        struct {
            uint32_t longest, last; // of a hole: runs that begin in its tree
        };
    };
    uint32_t previous; // neighbours in the same segment, by address; 0 at the ends. Of a slot its number
    uint32_t next;
    uint32_t segment;
    _Atomic uint16_t shard; // vram_free() reads it without a lock (release, acquire); the device's lock guards the rest
    uint16_t bin;           // in the index (index.h)
    union {
        uint32_t child[2]; // smaller and larger ones, of a tree; those before and after it, of a list (index.h)
        struct {
            uint32_t uses;    // first recorded use by another stream
            uint32_t pending; // fences not yet passed
        } held;
    };
    union {
        uint32_t age_base; // the pool's search clock when the block became free (garbage collection)
        uint32_t joined;   // of a hole: what in its tree goes on a run that began before
    };
    uint8_t state;      // enum vr_state
    uint8_t small;      // enum vr_pool_kind: which pool of its shard
    uint8_t expandable; // part of an expandable segment: not counted as inactive_split
    union {
        uint8_t marks; // 0 while it is free, and of most that are not: a free of any other takes the slow way
        struct {
            uint8_t oversize : 1; // counted in oversize_allocations, as max_split_size was when it was handed out
            uint8_t lent : 1;     // its private pool lent it to a request of the default pools
        };
    };
    union {
        struct {
            uint32_t stack; // where it was handed out, while it is not free; 0: unknown
            uint32_t words; // the name a client wrote on it; 0: none
        };
        struct {             // in a tree
            uint32_t parent; // 0: it is the root
            uint32_t priority;
        };
        uint64_t labels; // stack and words at once; meaningless while free
    };
};
_Static_assert(sizeof(struct vr_block) == 64, "one cache line");

// One reservation of device memory: a cudaMalloc segment, or the address range of an expandable one.
struct vr_segment {
    uint64_t address;
    uint64_t size;      // of a cudaMalloc segment its bytes; of an expandable one the reserved address range
    uint64_t mapped;    // bytes that memory stands behind; == size unless expandable
    uint64_t away;      // of `mapped`, bytes that went back to the driver while the segment is vacant; sources with slots count them there
    uint64_t page_size; // expandable only
    uint64_t *pages;    // expandable only: the physical handle of each page, 0 = not mapped
    const struct vr_source_ops *source;
    struct vr_exported *exported; // expandable only: what other processes may have of each page; NULL before the first export
    uint64_t counter;             // registration order, process-wide: older segments have smaller ones
    uint32_t shard;
    uint32_t device;
    uint32_t first; // the block at the segment's base; 0 while the entry is unused
    uint32_t place; // the record that stands for it in the device's tree (segments.h)
    uint32_t next;  // in the list of its pool, as the next one
    uint32_t previous;
    uint8_t small;
    uint8_t expandable;
    uint8_t oversize;  // counted in oversize_segments, as max_split_size was when it was made
    uint8_t vacant;    // its memory is away (source_ops.h, vacate)
    uint8_t uncertain; // while it is vacant: the driver kept mappings, which no device may be allowed to use
    // Of the verifier:
    uint8_t front;      // a redzone precedes the first block
    uint8_t poisoned;   // bytes outside of live requests hold the poison
    uint8_t unverified; // graphs may write to it, or its bytes were lost in a sleep: redzones are not checked
    uint32_t stack;     // where it was made, or first mapped; 0: unknown
};

// The segments of a private pool, or of all default pools of a device, in the order in which they came there.
struct vr_segment_list {
    uint32_t first, last; // 0: none
};

// A stream that a live block was also used on: a list per block, and all of it a tree by the bits of the stream's hash, from the lowest on,
// so that a block that thousands of streams use finds one of them at once. The newest is a leaf, the oldest the root.
struct vr_use {
    uint64_t stream;
    uint32_t next; // recorded before it
    uint32_t oldest;
    uint32_t child[2];
    bool captured; // recorded during a capture: over when the capture is, because captured streams must have joined
};

// A reserved array that grows by touching pages. Item 0 is never handed out. Taking and giving back is guarded by `mutex`
// (a leaf lock); items in use belong to whoever took them.
struct vr_slab {
    struct vr_mutex mutex;
    unsigned char *items;
    size_t item_bytes;
    uint32_t capacity;
    bool cut;              // it has fewer than were asked for
    _Atomic uint32_t used; // items ever handed out, plus one
    uint32_t *spare;       // stack of items given back
    size_t spare_count;
    size_t spare_capacity;
};

// Reserves room for up to `capacity` items, fewer if the address space is short (at least 1024). NO_HOST_MEMORY.
enum vram_status vr_slab_init(struct vr_slab *slab, size_t item_bytes, uint32_t capacity);
void vr_slab_release(struct vr_slab *slab);
// Takes `count` items into ids. All or nothing. LIMIT when the table is full, NO_HOST_MEMORY where it had been cut.
enum vram_status vr_slab_take(struct vr_slab *slab, uint32_t count, uint32_t *ids);
// Gives one back. Cannot fail: an item that the spare stack has no room for is lost until the table is released.
void vr_slab_give(struct vr_slab *slab, uint32_t id);
void vr_slab_give_many(struct vr_slab *slab, uint32_t count, const uint32_t *ids);

#endif
