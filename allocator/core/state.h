// state.h: the live state: an allocator has devices, a device has a shard per stream, a shard has two pools.
//
//   allocator ── tables of blocks, segments, recorded uses; address map; option string; observers
//     └─ device ── lock; driver context, limit, statistics; a struct of each file that keeps something for it: segments, fences, ...
//          └─ shard (device, stream) ── block records
//               └─ pool (large, small) ── index of free blocks, holes
//
// One lock guards all of a device. Who needs the driver for longer than a question takes the device's mutex first: device.h.
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
#include "core/raw.h"
#include "core/record.h"
#include "core/segments.h"
#include "core/share/imports.h"
#include "core/source/async.h"
#include "core/statistics.h"
#include "driver/driver.h"

// Lock ranks: a thread takes them in ascending order only.
enum vr_lock_rank {
    VR_RANK_ALLOCATOR, // vram_allocator.mutex: devices made, options, observers
    VR_RANK_DRIVER,    // vr_device.mutex: who may ask the driver for memory and give it back
    VR_RANK_DEVICE,    // vr_device.lock: all that the device has
    VR_RANK_LEAF,      // vr_imports.mutex, vr_slab.mutex, vr_address_map.mutex, vr_raw.mutex, vr_events.mutex, vr_classes.mutex
};

enum {
    VR_MAX_SHARDS = 65536, // vr_block.shard holds no more
    VR_SHARD_SLOT_BITS = 14,
    VR_SHARD_SLOTS = 1 << VR_SHARD_SLOT_BITS,
    VR_SHARDS_PER_DEVICE = VR_SHARD_SLOTS / 2,
    VR_MAX_CALLBACKS = 16
};

// The malloc and its free that may repeat: front.h. All-zero: none is open.
struct vr_open_pair {
    uint32_t block;       // 0: none is open
    bool back;            // the block was freed, and its merge is left undone: its state is VR_AT_FRONT
    bool listed;          // among those of the device
    uint64_t size_bytes;  // of the request that it answered
    struct vr_pool *next; // of the list
};

// Free memory of one stream and size class.
struct vr_pool {
    uint32_t holes; // tree by address
    struct vr_open_pair pair;
    struct vr_index index; // last, and large: a pool that is hardly used touches few pages
};

struct vr_sleeper;

// What a source keeps for a shard or a device begins with this; NULL: it keeps nothing (source/source_ops.h).
struct vr_source_kept {
    const struct vr_source_ops *source;
};

struct vr_shard {
    uint32_t number; // in the allocator's array
    uint64_t stream;
    struct vr_device *device;
    struct vram_pool *owner;            // NULL: the device's default pools
    const struct vr_source_ops *source; // by which its pools grow
    bool expandable;                    // the source's bit
    bool idle;                          // its private pool is gone; waits for another
    bool whole;                         // blocks are handed out whole (no_split)
    bool vacant;                        // the memory of its pool is away: what is free in it is in no index
    bool may_release;                   // a release looks here: a block became free since the last one, or one could not go then
    uint32_t spare_count;
    uint32_t spare[64];  // block records that are not in use
    uint32_t spare_uses; // recorded uses that are not in use, a list
    struct vr_pool pool[VR_POOLS];
    struct vr_source_kept *kept;
};

// What is in force of that which concerns every request. Bits of vr_device.gate.
enum {
    VR_GATE_FENCES = 1,
    VR_GATE_COLLECT = 2,
    VR_GATE_RAW = 4,
    VR_GATE_ROUTES = 8,
    VR_GATE_CAPTURE = 16,
    VR_GATE_LISTENER = 32,
    VR_GATE_NUMBERS = 64,
    VR_GATE_ALIGNED = 128, // a request may split a block below itself, too, which is counted by itself (allocator.md §splitting)
    VR_GATE_VERIFY = 256   // requests and frees go through the verifier (verifier.h)
};

// A listener of a device, and the number of what it was told last.
struct vr_listening {
    _Atomic(const struct vr_listener *) listener; // VR_GATE_LISTENER is set where it is not NULL; read without a lock to take a stack
    _Atomic uint64_t sequence;
};

// How physical memory is asked for, by sources that map pages.
struct vr_physical {
    uint64_t granularity; // 0 where virtual memory management is missing
    int32_t handle_types; // that it is asked for with, so that it can be shared
    bool rdma;            // it can be registered with network cards
};

// The shards of a device. Append-only: slots is read without a lock; the rest is guarded by the device's mutex.
struct vr_shards {
    _Atomic(struct vr_shard *) *slots; // of the default pools: open addressing by stream
    struct vr_shard **items;
    struct vr_shard **defaults; // of the default pools
    uint32_t default_count;
    _Atomic uint32_t count;
    size_t items_capacity, defaults_capacity;
    struct vr_shard **idle; // of pools that are gone
    size_t idle_count;
    size_t idle_capacity;
};

// Pinned memory for the bytes of vacant memory.
struct vr_pinned_chunks {
    struct vr_pinned_chunk {
        uint64_t host, size;
    } * items;
    size_t count, items_capacity;
};

// The open pairs of a device: front.h.
struct vr_front {
    struct vr_pool *listed;  // those that may have one
    struct vr_pool *counted; // the one whose pair is counted here, and not booked: by the statistics its block is out; NULL: none
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
    _Atomic uint64_t peers; // bit d: device d may reach the memory; changed under all locks
    // All below, but for what says otherwise: guarded by the mutex and the lock together, and read under either.
    uint64_t limit_bytes; // VR_UNLIMITED: none
    bool divisions;       // some rounding divisor, or a padding, is in force
    struct vr_options options;
    uint32_t clock[VR_POOLS]; // searches made while garbage collection is on
    struct vr_listening listening;
    struct vr_segment_books segments;
    struct vr_fences fences;
    struct vram_pool *pools;     // private pools with references or segments, the newest first
    uint32_t unheld_pools;       // of these, without references
    struct vr_known_pools known; // by their ids
    struct vr_routes routes;
    struct vr_captures captures;
    struct vr_async async;
    struct vr_shards shards;
    struct vr_source_kept *kept;
    struct vr_sleeper *vacant;          // pools whose memory is away, the newest first
    struct vr_sleeper *vacant_defaults; // of these, that of the default pools
    struct vr_pinned_chunks spare_chunks;
};

// Streams with a class name, in no order. Leaf lock: asked while a segment is made.
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
    uint32_t pytorch;                     // VR_PYTORCH(), whose rules hold: set as the backend is
    const struct vr_backend_ops *backend; // set when the allocator is made, for good, so that it is read without a lock
    _Atomic uint64_t pools_made[2];       // ids given out: for graphs, for users
    _Atomic uint32_t captures;            // known to be under way, on all devices; their streams may belong to any
    _Atomic uint64_t capture_changes;     // how often one of them began or ended
    struct vr_mutex mutex;
    int device_count;
    bool without_threads; // nothing is made ahead unless the program does it itself: the same every time
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
    uint64_t listened_devices;                // bit per ordinal
    uint64_t left_contexts[VRAM_MAX_DEVICES]; // of devices that are not open: retained all the same; 0: not
    struct vr_client_listener *client;        // made with the first vram_set_event_listener(), for good
    struct vr_listener recorder;              // of vr_allocator_set_recorder()
    struct vr_observer *observers;
    size_t observer_count;
    size_t observers_capacity;
    struct vr_callback callbacks[VR_MAX_CALLBACKS];
    _Atomic uint32_t callback_count;
    struct vr_extensions extensions; // of rooms above; attached under the mutex
};

// --- the way to each ---------------------------------------------------------------------------------------------------------------------

// NULL if it was never used. Any thread.
VR_INLINE struct vr_device *vr_device_if_used(struct vram_allocator *allocator, uint32_t ordinal) {
    return ordinal < VRAM_MAX_DEVICES ? atomic_load_explicit(&allocator->devices[ordinal], memory_order_acquire) : NULL;
}
// Where the search for a stream's shard begins. By the handle as the driver gave it: no file says what that is, and a replay has streams of
// its own. So no secret is needed, and one multiplication spreads handles that rise evenly (the golden ratio in 64 bits).
#define VR_SHARD_HOME(stream) ((size_t)(((stream)*0x9e3779b97f4a7c15u) >> (64 - VR_SHARD_SLOT_BITS)))
// The shard of a stream in the default pools; NULL: it is not made yet. Any thread.
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
// The source of a block's segment.
VR_INLINE const struct vr_source_ops *vr_block_source(const struct vram_allocator *allocator, const struct vr_block *block) {
    return vr_segment_at(allocator, block->segment)->source;
}
VR_INLINE struct vr_use *vr_use_at(const struct vram_allocator *allocator, uint32_t use) {
    return (struct vr_use *)(void *)allocator->uses.items + use;
}
VR_INLINE struct vr_shard *vr_shard_of(const struct vram_allocator *allocator, const struct vr_block *block) {
    return allocator->shards[atomic_load_explicit(&block->shard, memory_order_acquire)];
}

// Whether a block that the address map names is allocated there, in this shard. The map may name a block that was handed out at the address
// once, and is something else now: only under the lock of the shard's device can that be seen.
VR_INLINE bool vr_is_allocated_at(const struct vr_block *item, uint64_t address, const struct vr_shard *shard) {
    return VR_LIKELY(item->state == VR_ALLOCATED && item->address == address &&
                     atomic_load_explicit(&item->shard, memory_order_relaxed) == shard->number);
}
// Whether a capture is known to be under way, on whatever device.
VR_INLINE bool vr_any_captures(const struct vr_device *device) {
    return atomic_load_explicit(&device->allocator->captures, memory_order_acquire) != 0;
}

// --- the device's lock -------------------------------------------------------------------------------------------------------------------

// It guards all that the device has. It is held for a short time: by a call that the cache serves, which asks the driver at most whether an
// event has passed. Who waits for it spins. device.h takes the mutex before it.
VR_NOINLINE void vr_device_lock_contended(struct vr_device *device);
VR_INLINE void vr_device_lock_short(struct vr_device *device) {
    if (VR_UNLIKELY(atomic_exchange_explicit(&device->lock, 1, memory_order_acquire) != 0)) vr_device_lock_contended(device);
}
VR_INLINE void vr_device_unlock_short(struct vr_device *device) { atomic_store_explicit(&device->lock, 0, memory_order_release); }
// What a function says of the locks that it is called with is checked where it begins (level 2: the builds of the sanitizers).
#define VR_ASSERT_LOCKED(device) assert(VRAM_CHECK < 2 || atomic_load_explicit(&(device)->lock, memory_order_relaxed) != 0)
// With the device's mutex and its lock.
bool vr_device_has_all_locks(const struct vr_device *device);
#define VR_ASSERT_ALL_LOCKED(device) assert(VRAM_CHECK < 2 || vr_device_has_all_locks(device))
// In functions of the policy: nothing is counted that is not booked (front.h).
#define VR_ASSERT_SETTLED(device)                                                                                                          \
    assert(VRAM_CHECK < 2 || (atomic_load_explicit(&(device)->lock, memory_order_relaxed) != 0 && (device)->front.counted == NULL))

// --- listeners ---------------------------------------------------------------------------------------------------------------------------

// Whether a listener is attached. Under the mutex or the lock of the device. VR_GATE_LISTENER has the same value.
VR_INLINE bool vr_has_listener(const struct vr_device *device) {
    return (atomic_load_explicit(&device->gate, memory_order_relaxed) & VR_GATE_LISTENER) != 0;
}

// Whether calls of this kind take their stack now.
VR_INLINE bool vr_takes_stack(const struct vr_device *device, enum vr_level need) {
    const struct vr_listener *listener = atomic_load_explicit(&device->listening.listener, memory_order_acquire);
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
// Memory of a range went away, or came back. segment NULL: that of a whole pool.
VR_NOINLINE void vr_notify_vacant_now(struct vr_shard *shard, bool vacant, const struct vr_segment *segment, uint64_t address,
                                      uint64_t size_bytes);
// A block that lies outside of the pools is a segment of its own, which comes before it and goes after it. Under the device's locks.
VR_NOINLINE void vr_notify_raw_now(struct vr_device *device, enum vr_record_action action, const struct vr_raw_block *block);
VR_NOINLINE void vr_notify_now(struct vr_device *device, enum vr_record_action action, uint64_t address, uint64_t size_bytes,
                               uint64_t stream);

// Both halves of a free that waits for nothing; the block keeps no context of a client any more.
VR_NOINLINE void vr_notify_freed(struct vr_shard *shard, struct vr_block *block);
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
