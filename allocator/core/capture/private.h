// private.h: private pools inside the allocator: their life.
#ifndef VR_CORE_CAPTURE_PRIVATE_H
#define VR_CORE_CAPTURE_PRIVATE_H

#include "base/hash.h"
#include "base/stat.h"
#include "config/options.h"
#include "core/block.h"
#include "core/extension.h"
#include "vram/pool.h"
#include "vram/sleep.h"

struct vr_device;
struct vr_shard;
struct vr_sleeper;

// A private pool of one device. Everything in it is guarded by all locks of the device, but for what never changes (id, options).
struct vram_pool {
    struct vr_device *device;
    struct vram_pool_id id;
    struct vram_pool_options options;
    uint32_t references;                 // 0: freeable
    uint32_t segments;                   // cudaMalloc segments, and expandable ones with anything mapped
    struct vr_segment_list all_segments; // of these, and those with nothing mapped
    bool captured;                       // a graph knows its addresses
    char tag[VRAM_TAG_BYTES];            // guarded as the rest
    struct vr_shard **shards;            // by ascending stream
    size_t shard_count;
    size_t shards_capacity;
    struct vram_stat reserved[VRAM_STAT_POOLS];
    struct vr_extensions extensions;   // of rooms above
    struct vram_pool *next, *previous; // in the device's list
    struct vr_known_pool *known;       // by its id
    struct vr_sleeper *sleeper;        // that has its memory; NULL: it is awake
    bool counted;                      // it held something from the driver, or one of its id did
};

// What is known of an id: the pool that has it, or what one that is gone held: statistics that stay, as in PyTorch.
struct vr_known_pool {
    struct vram_pool_id id;
    struct vram_pool *pool;                     // NULL: it is gone
    struct vram_stat reserved[VRAM_STAT_POOLS]; // of one that is gone
    struct vr_known_pool *next;                 // with another id of the same key
};
struct vr_known_pools {
    struct vr_map by_key; // key of the id -> the first of its pools
    size_t count;
};
// All of them, in no order: begin with NULL and *at = 0; NULL at the end.
struct vr_known_pool *vr_known_pool_after(const struct vr_known_pools *known, const struct vr_known_pool *last, size_t *at);

// The pool with this id, held or not; NULL: there is none. Under all locks.
struct vram_pool *vr_private_by_id(const struct vr_device *device, struct vram_pool_id id);
// A new pool, which goes on with the statistics of one that had its id. INVALID_ARGUMENT: a pool has it. NO_HOST_MEMORY. Under all locks.
enum vram_status vr_private_enlist(struct vram_pool *pool);

// share_live_pools: whether a pool that is held gives its free memory back, and lends it; not one of graphs, which know its addresses.
VR_INLINE bool vr_private_is_shared(const struct vram_pool *pool, const struct vr_options *options) {
    return options->share_live_pools && !pool->captured && !pool->options.for_graph;
}

// A graph may know addresses of the pool from now on. Under all locks.
void vr_private_mark_captured(struct vram_pool *pool);

// References, under all locks. Dropping the last makes the pool freeable.
void vr_private_retain(struct vram_pool *pool);
void vr_private_drop(struct vram_pool *pool);

// Ends the pools of the device that nobody holds and that hold nothing. Under all locks.
void vr_private_bury(struct vr_device *device);
// The same where only this one can have died (of paged memory all are looked at: pages may be handed over now that could not be before).
void vr_private_bury_one(struct vram_pool *pool);
// Frees the structs of all pools. At the end only.
void vr_private_release_all(struct vr_device *device);

#endif
