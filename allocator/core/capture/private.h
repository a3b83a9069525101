// private.h: the lifetime of private pools inside the allocator.
#ifndef VR_CORE_CAPTURE_PRIVATE_H
#define VR_CORE_CAPTURE_PRIVATE_H

#include "base/hash.h"
#include "base/stat.h"
#include "config/options.h"
#include "core/block.h"
#include "core/capture/lending.h"
#include "core/extension.h"
#include "vram/pool.h"
#include "vram/sleep.h"

struct vr_device;
struct vr_shard;
struct vr_sleeper;

// A private pool of one device. Guarded by all locks of the device, except for `device` and `id`, which never change.
struct vram_pool {
    struct vr_device *device;
    struct vram_pool_id id;
    struct vram_pool_options options;
    uint32_t references;                 // 0: the pool may be freed
    uint32_t segments;                   // cudaMalloc segments, and expandable ones with mapped pages
    struct vr_segment_list all_segments; // including expandable segments with no mapped page
    bool captured;                       // a graph may contain addresses of the pool
    struct vr_lending lending;
    char tag[VRAM_TAG_BYTES];
    struct vr_shard **shards; // by ascending stream
    size_t shard_count;
    size_t shards_capacity;
    struct vram_stat reserved[VRAM_STAT_POOLS];
    struct vr_extensions extensions;   // of higher layers
    struct vram_pool *next, *previous; // in the device's list
    struct vr_known_pool *known;       // by its id
    struct vr_sleeper *sleeper;        // sleeper of its memory; NULL: the pool is awake
    bool counted;                      // this pool, or an earlier one with its id, has held driver memory
};

// An id in use, with its pool, or one of an ended pool, with its statistics. The statistics stay, as in PyTorch.
struct vr_known_pool {
    struct vram_pool_id id;
    struct vram_pool *pool;                     // NULL: the pool has ended
    struct vram_stat reserved[VRAM_STAT_POOLS]; // of a pool that has ended
    struct vr_known_pool *next;                 // has another id with the same key
};
struct vr_known_pools {
    struct vr_map by_key; // key of the id -> the first entry with that key
    size_t count;
};
// Iterates over all entries in unspecified order. Start with last = NULL and *at = 0; returns NULL at the end.
struct vr_known_pool *vr_known_pool_after(const struct vr_known_pools *known, const struct vr_known_pool *last, size_t *at);

// Returns the pool with this id, referenced or not, or NULL. Under all locks.
struct vram_pool *vr_private_by_id(const struct vr_device *device, struct vram_pool_id id);
// Enlists a new pool, which continues the statistics of an ended pool with its id. INVALID_ARGUMENT: another pool has the id.
// NO_HOST_MEMORY. Under all locks.
enum vram_status vr_private_enlist(struct vram_pool *pool);

// Implements share_live_pools: returns whether a referenced pool returns and lends its free memory. A pool used by graphs does not, because
// they contain its addresses.
VR_INLINE bool vr_private_is_shared(const struct vram_pool *pool, const struct vr_options *options) {
    return options->share_live_pools && !pool->captured && !pool->options.for_graph;
}

// Notes that a graph may contain addresses of the pool from now on. Under all locks.
void vr_private_mark_captured(struct vram_pool *pool);

// Add and drop references, under all locks. A pool without references may be freed.
void vr_private_retain(struct vram_pool *pool);
void vr_private_drop(struct vram_pool *pool);

// Frees the device's pools that have neither references nor memory. Under all locks.
void vr_private_bury(struct vr_device *device);
// Like vr_private_bury(), when only this pool can have become unused. If a source has data for the device, checks all pools, because memory
// may now be handed over that could not be before.
void vr_private_bury_one(struct vram_pool *pool);
// Frees the structs of all pools. Call it only when the device is destroyed.
void vr_private_release_all(struct vr_device *device);

#endif
