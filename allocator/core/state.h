// state.h: the live state. An allocator has devices, a device has a shard per stream, and a shard has two pools.
//
//   allocator ── tables of blocks, segments and recorded uses; address map; option string; observers
//     └─ device ── lock; driver context, limit, statistics; one struct for each file with state per device: segments, fences, ...
//          └─ shard (device, stream) ── block records
//               └─ pool (large, small) ── index of free blocks, holes
//
// One lock guards each device. Driver calls longer than a query also need the device's mutex, taken first: device.h.
#ifndef VR_CORE_STATE_H
#define VR_CORE_STATE_H

#include "config/options.h"
#include "core/address_map.h"
#include "core/capture/captures.h"
#include "core/capture/private.h"
#include "core/capture/routes.h"
#include "core/event_listener.h"
#include "core/extension.h"
#include "core/fences.h"
#include "core/index.h"
#include "core/source/raw.h"
#include "core/record.h"
#include "core/segments.h"
#include "core/share/imports.h"
#include "core/source/async.h"
#include "core/statistics.h"
#include "driver/driver.h"

// Lock ranks: a thread takes locks in ascending order only.
enum vr_lock_rank {
    VR_RANK_ALLOCATOR, // vram_allocator.mutex: creation of devices, options, observers
    VR_RANK_DRIVER,    // vr_device.mutex: allocating from the driver and returning memory to it
    VR_RANK_DEVICE,    // vr_device.lock: the whole state of the device
    VR_RANK_LEAF,      // vr_imports.mutex, vr_slab.mutex, vr_address_map.mutex, vr_raw.mutex, vr_events.mutex, vr_classes.mutex
};

enum {
    VR_MAX_SHARDS = 65536, // limited by the width of vr_block.shard
    VR_SHARD_SLOT_BITS = 14,
    VR_SHARD_SLOTS = 1 << VR_SHARD_SLOT_BITS,
    VR_SHARDS_PER_DEVICE = VR_SHARD_SLOTS / 2,
    VR_MAX_CALLBACKS = 16
};

// The malloc and free that may repeat: front.h. Zeroed: no pair is open.
struct vr_open_pair {
    uint32_t block;       // 0: no pair is open
    bool back;            // the block was freed (VR_AT_FRONT), and its merge is postponed
    bool listed;          // it is in the device's list
    uint64_t size_bytes;  // of the request it served
    struct vr_pool *next; // in the device's list
};

// The free memory of one stream and size class.
struct vr_pool {
    uint32_t holes; // root of a tree by address
    struct vr_open_pair pair;
    struct vr_index index; // last, because it is large: a pool that is hardly used touches few pages
};

struct vr_sleeper;

// First member of a source's data for a shard or a device (source/source_ops.h). A NULL pointer means no data.
struct vr_source_kept {
    const struct vr_source_ops *source;
};

struct vr_shard {
    uint32_t number; // in the allocator's array
    uint64_t stream;
    struct vr_device *device;
    struct vram_pool *owner;            // NULL: the device's default pools
    const struct vr_source_ops *source; // the source its pools grow from
    bool expandable;                    // the source's bit
    bool idle;                          // its private pool was destroyed; the shard waits for reuse
    bool whole;                         // blocks are handed out whole (no_split)
    bool vacant;                        // its pool's memory was released, and the free blocks are in no index
    bool lends;                         // it lent blocks, so that launches wait for its stream (capture/lending.h)
    bool may_release;                   // releases visit this shard: since the last one, a block became free or could not be released
    uint32_t spare_count;
    uint32_t spare[64];  // unused block records
    uint32_t spare_uses; // unused records of uses, a list
    struct vr_pool pool[VR_POOLS];
    struct vr_source_kept *kept;
};

// Bits of vr_device.gate: conditions that affect every request.
enum {
    VR_GATE_FENCES = 1,
    VR_GATE_COLLECT = 2,
    VR_GATE_RAW = 4,
    VR_GATE_ROUTES = 8,
    VR_GATE_CAPTURE = 16,
    VR_GATE_LISTENER = 32,
    VR_GATE_NUMBERS = 64,
    VR_GATE_ALIGNED = 128, // a request may split off memory below its block too, which is booked separately (allocator.md §splitting)
    VR_GATE_VERIFY = 256   // requests and frees go through the verifier (verifier.h)
};

// A device's listener, and the sequence number of its next record.
struct vr_listening {
    _Atomic(const struct vr_listener *) listener; // not NULL if VR_GATE_LISTENER is set; also read without a lock, to capture a stack
    _Atomic uint64_t sequence;
};

// How sources that map pages request physical memory.
struct vr_physical {
    uint64_t granularity; // 0 without virtual memory management
    int32_t handle_types; // requested for every allocation, so that it can be shared
    bool rdma;            // it can be registered with network cards
};

// The shards of a device. Append-only: `slots` is read without a lock; the device's mutex guards the rest.
struct vr_shards {
    _Atomic(struct vr_shard *) *slots; // shards of the default pools: open addressing by stream
    struct vr_shard **items;
    struct vr_shard **defaults; // shards of the default pools, in order of creation
    uint32_t default_count;
    _Atomic uint32_t count;
    size_t items_capacity, defaults_capacity;
    struct vr_shard **idle; // shards of destroyed pools
    size_t idle_count;
    size_t idle_capacity;
};

// Pinned memory for the contents of vacant memory.
struct vr_pinned_chunks {
    struct vr_pinned_chunk {
        uint64_t host, size;
    } * items;
    size_t count, items_capacity;
};

// The open pairs of a device: front.h.
struct vr_front {
    struct vr_pool *listed;  // pools that may have an open pair
    struct vr_pool *counted; // the pool whose pair is counted here instead of booked; in the statistics, its block is allocated; NULL: none
    uint64_t frees;          // how often that block was freed since
};

struct vr_device {
    struct vram_allocator *allocator;
    uint32_t ordinal;
    _Atomic uint32_t gate;
    struct vr_mutex mutex;
    _Atomic uint32_t lock; // 0: open
    struct vr_front front;
    struct vr_device_stats stats;
    uint64_t context;
    uint64_t total_bytes;
    struct vr_physical physical;
    _Atomic uint64_t peers; // bit d: device d can access the memory; changed under all locks
    // The members below are guarded by the mutex and the lock together, and read under either, unless they say otherwise.
    uint64_t limit_bytes; // VR_UNLIMITED: no limit
    bool divisions;       // a rounding divisor or a padding is set
    struct vr_options options;
    uint32_t clock[VR_POOLS]; // number of searches while garbage collection is on
    struct vr_listening listening;
    struct vr_segment_books segments;
    struct vr_fences fences;
    struct vram_pool *pools;     // private pools with references or segments, newest first
    uint32_t unheld_pools;       // number of `pools` without references
    struct vr_known_pools known; // private pools by their ids
    struct vr_routes routes;
    struct vr_captures captures;
    struct vr_async async;
    struct vr_shards shards;
    struct vr_source_kept *kept;
    struct vr_sleeper *vacant;          // pools whose memory was released, newest first
    struct vr_sleeper *vacant_defaults; // the member of `vacant` for the default pools
    struct vr_pinned_chunks spare_chunks;
};

// The streams with a class name, unordered. The mutex is a leaf lock, because names are looked up while a segment is made.
struct vr_classes {
    struct vr_mutex mutex;
    struct vr_stream_class {
        uint64_t stream;
        char name[VR_CLASS_NAME];
    } * items;
    size_t count;
    size_t items_capacity;
};

struct vr_observer {
    vram_oom_observer function;
    void *user;
};

struct vr_callback {
    vram_free_callback function;
    void *user;
};

struct vr_verifier;

struct vram_allocator {
    struct vram_driver *driver;
    bool owns_driver;
    struct vr_verifier *verifier;         // set before any device is opened, for good; NULL: the option verify is off
    uint64_t front_redzone;               // bytes in front of each segment of cuMemAlloc and each raw block: the verifier's, else 0
    uint32_t pytorch;                     // VR_PYTORCH(): the version whose rules apply; fixed like the backend
    const struct vr_backend_ops *backend; // fixed at creation, so that it can be read without a lock
    _Atomic uint64_t pools_made[2];       // ids given out: [0] for graphs, [1] for users
    _Atomic uint32_t captures;            // captures known to be under way, on all devices; their streams may belong to any device
    _Atomic uint64_t capture_changes;     // counts captures that began or ended
    struct vr_mutex mutex;
    int device_count;
    bool without_threads; // no thread allocates ahead, so that a replay is the same every time
    _Atomic(struct vr_device *) devices[VRAM_MAX_DEVICES];
    enum vr_order order; // fixed at creation
    struct vr_index_arena arena;
    struct vr_slab blocks;
    struct vr_slab segments;
    struct vr_slab uses;
    struct vr_address_map addresses;
    struct vr_raw raw;
    struct vr_classes classes;
    struct vr_imports imports;
    _Atomic uint32_t shard_count;
    struct vr_shard **shards; // append-only, in reserved address space
    _Atomic bool caching;
    _Atomic uint64_t known_streams[64]; // hints, by hash: streams whose device is set up; they save driver calls
    // The members below are guarded by `mutex`.
    struct vr_options options;
    char *conf;
    const struct vr_listener *listener;
    uint64_t listened_devices;                // bit per ordinal
    uint64_t left_contexts[VRAM_MAX_DEVICES]; // contexts retained although their device could not be set up; 0: none
    struct vr_client_listener *client;        // created by the first vram_set_event_listener(), kept for good
    struct vr_listener recorder;              // for vr_allocator_set_recorder()
    struct vr_observer *observers;
    size_t observer_count;
    size_t observers_capacity;
    struct vr_callback callbacks[VR_MAX_CALLBACKS];
    _Atomic uint32_t callback_count;
    struct vr_extensions extensions; // of higher layers; attached under the mutex
};

// --- the way to each ---------------------------------------------------------------------------------------------------------------------

// Returns the device, or NULL if it was never used. Any thread.
VR_INLINE struct vr_device *vr_device_if_used(struct vram_allocator *allocator, uint32_t ordinal) {
    return ordinal < VRAM_MAX_DEVICES ? atomic_load_explicit(&allocator->devices[ordinal], memory_order_acquire) : NULL;
}
// Where the search for a stream's shard begins, by the handle from the driver. Handles never come from a file, and a replay has streams of
// its own, so this needs no secret. One multiplication (by the golden ratio in 64 bits) spreads evenly rising handles.
#define VR_SHARD_HOME(stream) ((size_t)(((stream)*0x9e3779b97f4a7c15u) >> (64 - VR_SHARD_SLOT_BITS)))
// Returns the stream's shard in the default pools, or NULL if it does not exist yet. Any thread.
VR_INLINE struct vr_shard *vr_shard_find(const struct vr_device *device, uint64_t stream) {
    for (size_t at = VR_SHARD_HOME(stream);; at = (at + 1) % VR_SHARD_SLOTS) {
        struct vr_shard *shard = atomic_load_explicit(&device->shards.slots[at], memory_order_acquire);
        if (shard == NULL || shard->stream == stream) return shard;
    }
}
VR_INLINE struct vr_block *vr_block_at(const struct vram_allocator *allocator, uint32_t block) { return &allocator->arena.blocks[block]; }
VR_INLINE struct vr_segment *vr_segment_at(const struct vram_allocator *allocator, uint32_t segment) {
    return (struct vr_segment *)(void *)allocator->segments.items + segment;
}
// Returns the source of a block's segment.
VR_INLINE const struct vr_source_ops *vr_block_source(const struct vram_allocator *allocator, const struct vr_block *block) {
    return vr_segment_at(allocator, block->segment)->source;
}
VR_INLINE struct vr_use *vr_use_at(const struct vram_allocator *allocator, uint32_t use) {
    return (struct vr_use *)(void *)allocator->uses.items + use;
}
VR_INLINE struct vr_shard *vr_shard_of(const struct vram_allocator *allocator, const struct vr_block *block) {
    return allocator->shards[atomic_load_explicit(&block->shard, memory_order_acquire)];
}

// Returns whether a block from the address map is allocated at this address, in this shard. The map may return a stale block, which was
// handed out at the address earlier. Only under the lock of the shard's device is the result certain.
VR_INLINE bool vr_is_allocated_at(const struct vr_block *item, uint64_t address, const struct vr_shard *shard) {
    return VR_LIKELY(item->state == VR_ALLOCATED && item->address == address &&
                     atomic_load_explicit(&item->shard, memory_order_relaxed) == shard->number);
}
// Returns whether a capture is known to be under way on any device.
VR_INLINE bool vr_any_captures(const struct vr_device *device) {
    return atomic_load_explicit(&device->allocator->captures, memory_order_acquire) != 0;
}

// --- the device's lock -------------------------------------------------------------------------------------------------------------------

// The lock guards the whole state of the device, and is held briefly: a call that the cache serves makes at most driver calls that query an
// event. Waiting threads spin. device.h takes the mutex before it.
VR_NOINLINE void vr_device_lock_contended(struct vr_device *device);
VR_INLINE void vr_device_lock_short(struct vr_device *device) {
    if (VR_UNLIKELY(atomic_exchange_explicit(&device->lock, 1, memory_order_acquire) != 0)) vr_device_lock_contended(device);
}
VR_INLINE void vr_device_unlock_short(struct vr_device *device) { atomic_store_explicit(&device->lock, 0, memory_order_release); }
// At level 2 (sanitizer builds), functions assert that they are called with the locks they need.
#define VR_ASSERT_LOCKED(device) assert(VRAM_CHECK < 2 || atomic_load_explicit(&(device)->lock, memory_order_relaxed) != 0)
// Returns whether both the device's mutex and its lock are held.
bool vr_device_has_all_locks(const struct vr_device *device);
#define VR_ASSERT_ALL_LOCKED(device) assert(VRAM_CHECK < 2 || vr_device_has_all_locks(device))
// For functions of the policy: the lock is held, and the front has booked everything (front.h).
#define VR_ASSERT_SETTLED(device)                                                                                                          \
    assert(VRAM_CHECK < 2 || (atomic_load_explicit(&(device)->lock, memory_order_relaxed) != 0 && (device)->front.counted == NULL))

// --- listeners ---------------------------------------------------------------------------------------------------------------------------

// Returns whether a listener is attached. Under the mutex or the lock of the device. VR_GATE_LISTENER has the same value.
VR_INLINE bool vr_has_listener(const struct vr_device *device) {
    return (atomic_load_explicit(&device->gate, memory_order_relaxed) & VR_GATE_LISTENER) != 0;
}

// Returns whether calls of this kind capture their stack now.
VR_INLINE bool vr_takes_stack(const struct vr_device *device, enum vr_level need) {
    const struct vr_listener *listener = atomic_load_explicit(&device->listening.listener, memory_order_acquire);
    return listener != NULL && atomic_load_explicit(&listener->level, memory_order_relaxed) >= (uint32_t)need;
}
// Captures the current call's stack if the level asks for it; otherwise forgets the previous one. Call it without locks, in the function
// that the client called. above: frames between this function's caller and the client's call.
VR_NOINLINE void vr_gather(struct vr_device *device, enum vr_level need, uint32_t above);

// Notify the listener, which must exist, of an event of a block, of a segment or range (NULL for OOM), or of the device. Under the lock
// that guards the changed state.
VR_NOINLINE void vr_notify_block_now(struct vr_shard *shard, enum vr_record_action action, const struct vr_block *block);
VR_NOINLINE void vr_notify_range_now(struct vr_shard *shard, enum vr_record_action action, const struct vr_segment *segment,
                                     uint64_t address, uint64_t size_bytes);
// Reports that the memory of a range went away or came back. segment NULL: the memory of a whole pool.
VR_NOINLINE void vr_notify_vacant_now(struct vr_shard *shard, bool vacant, const struct vr_segment *segment, uint64_t address,
                                      uint64_t size_bytes);
// Reports an event of a block outside the pools. Adds the allocation and the free of its segment, which is the block itself. Under the
// device's locks.
VR_NOINLINE void vr_notify_raw_now(struct vr_device *device, enum vr_record_action action, const struct vr_raw_block *block);
VR_NOINLINE void vr_notify_now(struct vr_device *device, enum vr_record_action action, uint64_t address, uint64_t size_bytes,
                               uint64_t stream);

// Reports both halves of a free that waits for nothing. Drops the block's reference to a client's context.
VR_NOINLINE void vr_notify_freed(struct vr_shard *shard, struct vr_block *block);
// Reports an allocation. The block keeps the current stack.
VR_NOINLINE void vr_notify_hand_out(struct vr_shard *shard, struct vr_block *block);

// The same functions for callers that do not know whether a listener is attached.
VR_INLINE void vr_notify_block(struct vr_shard *shard, enum vr_record_action action, const struct vr_block *block) {
    if (VR_UNLIKELY(vr_has_listener(shard->device))) vr_notify_block_now(shard, action, block);
}
VR_INLINE void vr_notify_range(struct vr_shard *shard, enum vr_record_action action, const struct vr_segment *segment, uint64_t address,
                               uint64_t size_bytes) {
    if (VR_UNLIKELY(vr_has_listener(shard->device))) vr_notify_range_now(shard, action, segment, address, size_bytes);
}
VR_INLINE void vr_notify_vacant(struct vr_shard *shard, bool vacant, const struct vr_segment *segment, uint64_t address,
                                uint64_t size_bytes) {
    if (VR_UNLIKELY(vr_has_listener(shard->device))) vr_notify_vacant_now(shard, vacant, segment, address, size_bytes);
}
VR_INLINE void vr_notify_raw(struct vr_device *device, enum vr_record_action action, const struct vr_raw_block *block) {
    if (VR_UNLIKELY(vr_has_listener(device))) vr_notify_raw_now(device, action, block);
}
VR_INLINE void vr_notify(struct vr_device *device, enum vr_record_action action, uint64_t address, uint64_t size_bytes, uint64_t stream) {
    if (VR_UNLIKELY(vr_has_listener(device))) vr_notify_now(device, action, address, size_bytes, stream);
}

#endif
