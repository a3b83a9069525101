// state.h: the live state: an allocator has devices, a device has a shard per stream, a shard has two pools.
//
//   allocator ── tables of blocks, segments, recorded uses; address map; option string; observers
//     └─ device ── driver context, limit, fences, totals and peaks
//          └─ shard (device, stream) ── lock, counters
//               └─ pool (large, small) ── index of free blocks, holes
//
// Placement depends on a shard's own pools only, so its lock orders everything that decides an address. What concerns the whole
// device (a segment made or given back, a fence, a new peak, a picture) runs under all its shards' locks, taken after
// the device's mutex: see device.h. No fast path takes a second lock.
#ifndef VR_CORE_STATE_H
#define VR_CORE_STATE_H

#include "config/options.h"
#include "core/block.h"
#include "core/counters.h"
#include "core/index.h"
#include "core/address_map.h"
#include "core/record.h"
#include "driver/driver.h"
#include "vram/pool.h"

// Lock ranks: a thread takes them in ascending order only.
enum vr_lock_rank {
    VR_RANK_ALLOCATOR, // vr_allocator.mutex: devices made, options, observers
    VR_RANK_DEVICE,    // vr_device.mutex: who may hold all shards
    VR_RANK_SHARD,     // vr_shard.lock: several only by who holds the device's mutex
    VR_RANK_LEAF,      // vr_imports.mutex, vr_slab.mutex, vr_address_map.mutex, vr_raw.mutex, vr_events.mutex, vr_classes.mutex
};

enum { VR_MAX_SHARDS = 65536, VR_SHARD_SLOTS = 16384, VR_SHARDS_PER_DEVICE = VR_SHARD_SLOTS / 2, VR_MAX_CALLBACKS = 16 };

// Free memory of one stream and size class.
//
// Undo invariant: `last` is a block such that nothing happened in this pool since it was handed out; freeing it would restore the
// pool as it was before. So that free only books the statistics and marks the block LAZY (`lazy`), and a malloc of the same rounded
// size takes it again. Anything else that looks at the pool settles first: it merges the block as an ordinary free would have.
struct vr_pool {
    uint32_t holes; // tree by address
    uint32_t last;
    uint32_t lazy;
    uint64_t last_rounded; // the request that `last` answered, rounded
    int64_t last_splits;   // what handing `last` out changed in inactive_split
    int64_t last_split_bytes;
    struct vr_index index; // last, and large: a pool that is hardly used touches few pages
};

// A shard of a private pool, or of none, rests whenever the device's locks are given back: its lock then belongs to the device's mutex, so
// that taking all locks costs as many steps as there are shards in use, not as there are pools. So does, among many, that of a stream which
// was not used since they were given back before. Who needs it wakes it.
enum vr_shard_state { VR_SHARD_OPEN, VR_SHARD_LOCKED, VR_SHARD_RESTS };

struct vr_shard {
    _Alignas(64) _Atomic uint32_t lock; // enum vr_shard_state
    uint32_t number;                    // in the allocator's array
    uint64_t stream;
    struct vr_device *device;
    struct vram_pool *owner; // NULL: the device's default pools
    bool expandable;         // its pools grow by expandable segments
    bool idle;               // its private pool is gone; waits for another
    bool whole;              // blocks are handed out whole (no_split)
    uint32_t spare[64];      // block records at hand
    uint32_t spare_count;
    int64_t handed_out; // blocks handed out, ever, when it was last asked whether the shard is in use
    _Alignas(64) struct vr_counters counters;
    struct vr_pool pool[VR_POOLS];
};

// A point in a stream that a freed block waits for.
struct vr_fence {
    uint64_t event;
    struct vr_device *event_device; // whose event pool it returns to
    uint32_t block;
};

// The fences recorded on one stream, oldest first, as a ring.
struct vr_fence_queue {
    uint64_t stream;
    struct vr_fence *fences;
    size_t capacity; // 0 or a power of two
    size_t head;
    size_t count;
};

struct vr_fences {
    struct vr_fence_queue *queues; // in order of first use
    size_t count;
    size_t capacity;
};

// Events to use again. Leaf lock: a block's fences may lie on another device's streams.
struct vr_events {
    struct vr_mutex mutex;
    uint64_t *idle;
    size_t count;
    size_t capacity;
};

// Something the driver refused to take back; tried again at the next release and at the end.
struct vr_orphan {
    enum { VR_ORPHAN_MEMORY, VR_ORPHAN_HANDLE, VR_ORPHAN_RANGE } kind;
    uint64_t handle; // or address
    uint64_t size;
};

// Why a malloc must take the slow way before it looks at its pool. Bits of vr_device.gate.
enum { VR_GATE_FENCES = 1, VR_GATE_COLLECT = 2, VR_GATE_RAW = 4, VR_GATE_ROUTES = 8, VR_GATE_CAPTURE = 16, VR_GATE_LISTENER = 32 };

// A private pool of one device. Everything in it is guarded by all locks of the device, but for what never changes (id, options).
struct vram_pool {
    struct vr_device *device;
    struct vram_pool_id id;
    struct vram_pool_options options;
    uint32_t references;      // 0: freeable
    uint32_t segments;        // cudaMalloc segments, and expandable ones with anything mapped
    bool captured;            // a graph knows its addresses
    uint64_t graphs_captured; // src/graph: how many graphs were captured into it; the next one's place in their order
    uint64_t graphs_launched; // the place of the last one launched in the present round, plus one; 0: none yet
    struct vr_shard **shards;
    size_t shard_count;
    size_t shard_capacity;
    struct vram_stat reserved[VRAM_STAT_POOLS];
    struct vram_pool *next; // in the device's list
};

// An open route: requests that it accepts go to its pool, of which it holds a reference.
struct vr_open_route {
    struct vram_pool *pool;
    struct vram_route route;
    uint64_t thread;
};

// A capture under way.
struct vr_capture {
    struct vram_pool *pool; // holds a reference
    uint64_t stream;        // where it was begun
    uint64_t thread;        // who began it
    bool others;            // the driver was not asked to begin it by us, and is not asked to end it
};

// A block that was freed in a capture although other streams used it. It waits for the end of all captures, or, where it has markers,
// for the moment when the captured graph shows that every one of them lies before what its own stream does next.
struct vr_deferred {
    uint32_t block;
    uint64_t *markers; // graph nodes; NULL: wait for the end
    size_t marker_count;
};

// A stream, and the driver's id of the capture that it serves; 0: none.
struct vr_unifier {
    uint64_t stream;
    uint64_t capture;
};

struct vr_device {
    struct vram_allocator *allocator;
    uint32_t ordinal;
    _Atomic uint32_t gate;
    struct vr_mutex mutex;
    uint64_t context;
    uint64_t total_bytes;
    uint64_t granularity;   // of physical memory, 0 where virtual memory management is missing
    int32_t handle_types;   // that physical memory is asked for with, so that it can be shared
    bool rdma;              // physical memory can be registered with network cards
    _Atomic uint64_t peers; // bit d: device d may reach the memory; changed under all locks
    // All below: guarded by mutex and all shards' locks together; read under any one of these.
    uint64_t limit_bytes; // VR_UNLIMITED: none
    bool expandable;      // option on and supported
    bool divisions;       // some rounding divisor is in force
    struct vr_options options;
    _Atomic(const struct vr_listener *) listener; // VR_GATE_LISTENER is set where it is not NULL; read without a lock to take a stack
    _Atomic uint64_t sequence;
    struct vr_fences fences;
    struct vr_orphan *orphans;
    size_t orphan_count;
    size_t orphan_capacity;
    uint32_t *segments; // of the device, by ascending address
    size_t segment_count;
    size_t segment_capacity;
    struct vr_totals totals;
    struct vram_stat segment[VRAM_STAT_POOLS];
    struct vram_stat reserved[VRAM_STAT_POOLS];
    struct vram_stat oversize_allocations;
    struct vram_stat oversize_segments;
    int64_t num_alloc_retries, num_ooms, num_sync_all_streams, num_device_alloc, num_device_free, num_oom_rejections;
    int64_t max_split_at_start;
    struct vram_pool *pools;      // private pools with references or segments
    struct vr_open_route *routes; // oldest first
    size_t route_count;
    size_t route_capacity;
    struct vr_capture *captures; // into pools of this device
    size_t capture_count;
    size_t capture_capacity;
    struct vr_deferred *deferred;
    size_t deferred_count;
    size_t deferred_capacity;
    // backend:cudaMallocAsync
    uint64_t driver_pool;
    struct vr_unifier *unifiers; // streams of ours that free what several streams used
    size_t unifier_count, unifier_capacity;
    struct vr_unifier *joins; // streams on which a capture freed something
    size_t join_count, join_capacity;
    size_t postponed_count;
    uint64_t postponed_changes;    // the allocator's capture_changes when the driver was last asked about all of them
    struct vr_shard **idle_shards; // of pools that are gone
    size_t idle_count;
    size_t idle_capacity;
    uint32_t clock[VR_POOLS]; // searches made while garbage collection is on
    struct vr_events events;
    // Shards: append-only. slots is read without a lock; the rest is guarded by mutex.
    _Atomic(struct vr_shard *) *slots; // open addressing by stream
    struct vr_shard **shards;
    struct vr_shard **awake;       // those that do not rest
    struct vr_counters **counters; // of these
    uint32_t awake_count;
    _Atomic uint32_t shard_count;
    size_t shard_capacity;
};

struct vr_raw_block {
    uint64_t address; // 0: empty slot
    uint64_t size;
    uint64_t stream;
    uint32_t device;
    // Of the driver's pool only (async.c).
    bool driver_pool;
    bool postponed;           // freed by the client, waiting for the end of a capture
    uint32_t uses;            // list in the table of uses
    uint32_t stack;           // of the call that asked for it, 0 where nobody listened
    uint64_t capture;         // that it was asked for in, 0: none
    struct vram_pool_id pool; // that the request was routed to
};

// Blocks that went straight to the driver (caching off, or backend:cudaMallocAsync): open addressing by address.
struct vr_raw {
    struct vr_mutex mutex;
    struct vr_raw_block *slots;
    size_t capacity; // 0 or a power of two
    size_t count;
    _Atomic uint32_t any; // whether there ever was one
};

// Streams with a class name, in no order. Leaf lock: asked while a segment is made.
struct vr_classes {
    struct vr_mutex mutex;
    struct vr_stream_class {
        uint64_t stream;
        char name[VR_CLASS_NAME];
    } * items;
    size_t count;
    size_t capacity;
};

// Memory of other processes. Leaf lock, but for driver calls: two imports of the same memory must become one.
struct vr_imports {
    struct vr_mutex mutex;
    struct vr_import_entry **items; // in no order; share_import.c
    size_t count;
    size_t capacity;
};

struct vr_observer {
    vram_oom_observer function;
    void *user;
};

struct vr_callback {
    vram_free_callback function;
    void *user;
};

struct vram_allocator {
    struct vram_driver *driver;
    bool owns_driver;
    bool async; // the backend cudaMallocAsync; set when the allocator is made, for good, so that it is read without a lock
    _Atomic uint64_t pools_made[2];   // ids given out: for graphs, for users
    _Atomic uint32_t captures;        // known to be under way, on all devices; their streams may belong to any
    _Atomic uint64_t capture_changes; // how often one of them began or ended
    struct vr_mutex mutex;
    int device_count;
    _Atomic(struct vr_device *) devices[VRAM_MAX_DEVICES];
    struct vr_index_arena arena;
    struct vr_slab blocks;
    struct vr_slab segments;
    struct vr_slab uses;
    struct vr_address_map addresses;
    struct vr_raw raw;
    struct vr_classes classes;
    struct vr_imports imports;
    _Atomic uint32_t shard_count;
    struct vr_shard **shards; // reserved array, append-only
    _Atomic bool caching;
    _Atomic uint64_t known_streams[64]; // streams whose device is set up, by hash; a hint that saves driver calls
    // Guarded by mutex.
    struct vr_options options;
    char *conf;
    const struct vr_listener *listener;
    uint64_t listened_devices;        // bit per ordinal
    struct vr_listener recorder;      // of vr_allocator_set_recorder()
    _Atomic(void *) history;          // src/live: what records it
    void *environment;                // src/live: what the environment asked for
    struct vr_prometheus *prometheus; // src/live: what writes the statistics; NULL: nothing does
    struct vr_observer *observers;
    size_t observer_count;
    size_t observer_capacity;
    struct vr_callback callbacks[VR_MAX_CALLBACKS];
    _Atomic uint32_t callback_count;
};

VR_INLINE struct vr_block *vr_block_at(const struct vram_allocator *allocator, uint32_t block) { return &allocator->arena.blocks[block]; }
VR_INLINE struct vr_segment *vr_segment_at(const struct vram_allocator *allocator, uint32_t segment) {
    return (struct vr_segment *)(void *)allocator->segments.items + segment;
}
VR_INLINE struct vr_use *vr_use_at(const struct vram_allocator *allocator, uint32_t use) {
    return (struct vr_use *)(void *)allocator->uses.items + use;
}
VR_INLINE struct vr_shard *vr_shard_of(const struct vram_allocator *allocator, const struct vr_block *block) {
    return allocator->shards[atomic_load_explicit(&block->shard, memory_order_relaxed)];
}

// Whether somebody listens. Under a lock of the device. The gate says the same and is at hand in the hot path.
VR_INLINE bool vr_has_listener(const struct vr_device *device) {
    return (atomic_load_explicit(&device->gate, memory_order_relaxed) & VR_GATE_LISTENER) != 0;
}

// Whether calls of this kind take their stack now.
VR_INLINE bool vr_takes_stack(const struct vr_device *device, enum vr_level need) {
    const struct vr_listener *listener = atomic_load_explicit(&device->listener, memory_order_acquire);
    return listener != NULL && atomic_load_explicit(&listener->level, memory_order_relaxed) >= (uint32_t)need;
}
// Before any lock, in the function that the client called: takes the stack where the level asks for it, forgets an older one otherwise.
// above: frames between this function's caller and the client's call.
VR_NOINLINE void vr_gather(struct vr_device *device, enum vr_level need, uint32_t above);

// Tell the listener, which must be there, what happens to a block, a segment (or a range of one; of no segment, for OOM), or the device.
// Under the lock that guards what is told.
VR_NOINLINE void vr_notify_block_now(struct vr_shard *shard, enum vr_record_action action, const struct vr_block *block);
VR_NOINLINE void vr_notify_range_now(struct vr_shard *shard, enum vr_record_action action, const struct vr_segment *segment,
                                     uint64_t address, uint64_t size_bytes);
// A block that lies outside of the pools is a segment of its own, which comes before it and goes after it. Under the device's locks.
VR_NOINLINE void vr_notify_raw_now(struct vr_device *device, enum vr_record_action action, const struct vr_raw_block *block);
VR_NOINLINE void vr_notify_now(struct vr_device *device, enum vr_record_action action, uint64_t address, uint64_t size_bytes,
                               uint64_t stream);

// Both halves of a free that waits for nothing.
VR_NOINLINE void vr_notify_freed(struct vr_shard *shard, const struct vr_block *block);
// A hand-out: the block keeps the stack from now on.
VR_NOINLINE void vr_notify_hand_out(struct vr_shard *shard, struct vr_block *block);

// The same where nobody may be listening.
VR_INLINE void vr_notify_block(struct vr_shard *shard, enum vr_record_action action, const struct vr_block *block) {
    if (VR_UNLIKELY(vr_has_listener(shard->device))) vr_notify_block_now(shard, action, block);
}
VR_INLINE void vr_notify_range(struct vr_shard *shard, enum vr_record_action action, const struct vr_segment *segment, uint64_t address,
                               uint64_t size_bytes) {
    if (VR_UNLIKELY(vr_has_listener(shard->device))) vr_notify_range_now(shard, action, segment, address, size_bytes);
}
VR_INLINE void vr_notify_raw(struct vr_device *device, enum vr_record_action action, const struct vr_raw_block *block) {
    if (VR_UNLIKELY(vr_has_listener(device))) vr_notify_raw_now(device, action, block);
}
VR_INLINE void vr_notify(struct vr_device *device, enum vr_record_action action, uint64_t address, uint64_t size_bytes, uint64_t stream) {
    if (VR_UNLIKELY(vr_has_listener(device))) vr_notify_now(device, action, address, size_bytes, stream);
}

#endif
