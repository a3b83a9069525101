// block.h: the record of a block, and the tables that blocks, segments and recorded uses live in.
//
// A block is a piece of a segment. 32-bit indices (0 = none) name the records in a reserved array that never moves, so a record takes 64
// bytes and a link 4. After a split or a merge, the record at the lowest address remains. The first record of a segment therefore stays the
// same for the segment's whole life.
#ifndef VR_CORE_BLOCK_H
#define VR_CORE_BLOCK_H

#include <stdatomic.h>

#include "base/base.h"
#include "os/os.h"

// A block's state. Transitions: HOLE -> FREE (map) -> ALLOCATED (malloc) -> [AT_FRONT | PENDING] -> FREE -> HOLE (unmap).
enum vr_state {
    VR_UNUSED,    // the record is in a free list, or represents a segment (segments.h)
    VR_FREE,      // in its pool's index
    VR_ALLOCATED, // in use by the client
    VR_PENDING,   // freed by the client, waiting for fences
    VR_AT_FRONT,  // freed by the client; its merge is postponed (front.h): at most one per pool
    VR_HOLE,      // unmapped address range of an expandable segment, in its pool's set of holes
    VR_VACANT,    // free in a vacant segment; in no index
};

// Returns whether snapshots show the block as free memory.
VR_INLINE bool vr_is_cached(uint8_t state) { return state == VR_FREE || state == VR_VACANT; }

// Values of vr_block.expandable; 0 outside expandable segments. A SLOT belongs to a source with slots and has no neighbours. While a
// chain's memory is released, all its blocks are VACANT.
enum { VR_EXPANDABLE_CHAIN = 1, VR_EXPANDABLE_SLOT = 2, VR_EXPANDABLE_VACANT = 3 };

// The unions hold what the block's state needs: tree links while it is in the index or among the holes, `held` while it is allocated or
// pending. For the runs of holes see hole_runs.h.
struct vr_block {
    uint64_t address;
    uint64_t size; // bytes, a multiple of 512
    union {
        uint64_t requested; // bytes the client asked for; meaningless while free
        uint64_t age;       // in the index: orders blocks of equal size, before the address does
        struct {
            uint32_t longest, last; // of a hole: bounds for the runs that begin in its subtree (hole_runs.h)
        };
    };
    uint32_t previous; // neighbours in the same segment, by address; 0 at the ends. For a slot: its number
    uint32_t next;
    uint32_t segment;
    _Atomic uint16_t shard; // vram_free() reads it without a lock (release, acquire); the device's lock guards the rest
    uint16_t bin;           // in the index (index.h)
    union {
        uint32_t child[2]; // of a tree: the smaller and the larger child; of a list: the previous and the next block (index.h)
        struct {
            uint32_t uses;    // first recorded use by another stream
            uint32_t pending; // fences not yet passed
        } held;
    };
    union {
        uint32_t age_base; // the pool's search clock when the block became free (garbage collection)
        uint32_t joined;   // of a hole: bound for the part of its subtree that continues an earlier run
    };
    uint8_t state;      // enum vr_state
    uint8_t small;      // enum vr_pool_kind: which pool of its shard
    uint8_t expandable; // enum VR_EXPANDABLE_*; if not 0, the block is not counted as inactive_split
    union {
        uint8_t marks; // 0 while the block is free; an allocated block with any bit set takes the slow path of vram_free()
        struct {
            uint8_t oversize : 1; // counted in oversize_allocations: it was not below max_split_size when it was allocated
            uint8_t lent : 1;     // a private pool lent it to a request of the default pools
            uint8_t of_graph : 1; // it is lent, and a graph may write to it when it is launched (lending.h)
        };
    };
    union {
        struct {
            uint32_t stack; // while not free: the stack of the allocating call; 0: unknown
            uint32_t words; // the client's name for it; 0: none
        };
        struct {             // in a tree
            uint32_t parent; // 0 at the root
            uint32_t priority;
        };
        uint64_t labels; // stack and words together; meaningless while free
    };
};
_Static_assert(sizeof(struct vr_block) == 64, "one cache line");

// One reservation of device memory: a cudaMalloc segment, or the address range of an expandable one.
struct vr_segment {
    uint64_t address;
    uint64_t size;   // cudaMalloc segment: its bytes; expandable segment: the reserved address range
    uint64_t mapped; // bytes backed by memory; == size unless expandable
    uint64_t away;   // bytes of `mapped` that were returned to the driver while the segment is vacant; sources with slots count their own
    uint64_t page_size; // expandable only
    uint64_t *pages;    // expandable only: the physical handle of each page, 0 = not mapped
    const struct vr_source_ops *source;
    struct vr_exported *exported; // expandable only: what each page exports to other processes; NULL before the first export
    uint64_t counter;             // registration number, process-wide: older segments have smaller ones
    uint32_t shard;
    uint32_t device;
    uint32_t first; // the block at the segment's base; 0 while the entry is unused
    uint32_t place; // the record that represents it in the device's tree (segments.h)
    uint32_t next;  // neighbours in the list of its pool
    uint32_t previous;
    uint8_t small;
    uint8_t expandable;
    uint8_t oversize;  // counted in oversize_segments: it was not below max_split_size when it was created
    uint8_t vacant;    // its memory was released (source_ops.h, vacate)
    uint8_t uncertain; // while vacant: the driver kept mappings, so no device may be given access
    // These three belong to the verifier.
    uint8_t front;      // a redzone precedes the first block
    uint8_t poisoned;   // bytes outside of live requests hold the poison
    uint8_t unverified; // graphs may write to it, or its bytes were lost in a sleep: redzones are not checked
    uint32_t stack;     // the stack of the call that created it, or first mapped it; 0: unknown
};

// The segments of a private pool, or of all default pools of a device, in the order of their arrival.
struct vr_segment_list {
    uint32_t first, last; // 0: empty
};

// A use of a live block by a stream other than the block's own. The uses of a block form a list, newest first. They also form a tree by the
// bits of the stream's hash, lowest bit first, so that a block used by thousands of streams finds one of them at once. The newest use is a
// leaf, the oldest the root.
struct vr_use {
    uint64_t stream;
    uint32_t next; // the use recorded before this one
    uint32_t oldest;
    uint32_t child[2];
    bool captured; // recorded during a capture, and over when it ends, because captured streams must have joined by then
};

// A reserved array that grows by touching pages. Item 0 is never handed out. `mutex` (a leaf lock) guards taking and returning items; an
// item in use belongs to its taker.
struct vr_slab {
    struct vr_mutex mutex;
    unsigned char *items;
    size_t item_bytes;
    uint32_t capacity;
    bool cut;              // capacity is less than was requested
    _Atomic uint32_t used; // items ever handed out, plus one
    uint32_t *spare;       // stack of returned items
    size_t spare_count;
    size_t spare_capacity;
};

// Reserves room for up to `capacity` items, or fewer (at least 1024) if address space is short. NO_HOST_MEMORY.
enum vram_status vr_slab_init(struct vr_slab *slab, size_t item_bytes, uint32_t capacity);
void vr_slab_release(struct vr_slab *slab);
// Takes `count` items into ids, or none. LIMIT if the table is full; NO_HOST_MEMORY if it is full because fewer items than requested could
// be reserved.
enum vram_status vr_slab_take(struct vr_slab *slab, uint32_t count, uint32_t *ids);
// Return one item, or several. They cannot fail: if the stack of spare items cannot grow, the items are not handed out again.
void vr_slab_give(struct vr_slab *slab, uint32_t id);
void vr_slab_give_many(struct vr_slab *slab, uint32_t count, const uint32_t *ids);

#endif
