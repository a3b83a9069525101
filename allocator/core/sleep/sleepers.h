// sleepers.h: pools that sleep (vram/sleep.h), inside the allocator. Call all of it under all locks of the device, with its context current
// for functions that call the driver.
//
// A pool sleeps as a whole, with all its segments. Its free blocks are in no index, so the fast path finds none, and the slow path sees
// that the pool sleeps. Meanwhile, blocks of chains are VR_EXPANDABLE_VACANT, so that a freed block merges with vacant ones (its inactive
// splits are not counted); free blocks are VR_VACANT. Slots of paged memory keep their state, because vr_paged_find() checks
// vr_shard.vacant.
#ifndef VR_CORE_SLEEP_SLEEPERS_H
#define VR_CORE_SLEEP_SLEEPERS_H

#include "core/device.h"
#include "core/source/source_ops.h"
#include "vram/sleep.h"

// Saved bytes of a live block: the copy of [address, address + size) is at `host`.
struct vr_kept_run {
    uint64_t address, size;
    uint64_t host;
};

struct vr_kept_bytes {
    struct vr_kept_run *runs; // by ascending address
    size_t run_count, runs_capacity;
    struct vr_pinned_chunks chunks;
};

struct vr_sleeper {
    struct vram_pool *pool; // NULL: the default pools
    enum vram_sleep_level level;
    bool wakes;
    uint64_t away; // while it wakes: bytes of device memory it needs
    struct vr_kept_bytes kept;
    struct vr_sleeper *next, *previous; // in the device's list
};

// Ranges of live bytes, by ascending address.
struct vr_live_ranges {
    struct vr_live_range {
        uint64_t address, size;
        uint32_t segment;
    } * items;
    size_t count, items_capacity;
    uint64_t bytes;
};

// Returns the sleeper of this pool (NULL: of the default pools), or NULL if the pool is awake.
struct vr_sleeper *vr_sleeper_of(const struct vr_device *device, const struct vram_pool *pool);
// Checks that all segments can sleep, and saves their contents if the level requires it. Returns the statuses of vram_sleep(). A failure
// changes nothing.
enum vram_status vr_sleeper_prepare(struct vr_device *device, uint64_t stream, struct vr_sleeper *sleeper, struct vram_error *error);
// Puts the pool to sleep. The device owns the sleeper from now on.
void vr_sleeper_begin(struct vr_device *device, struct vr_sleeper *sleeper, struct vram_sleep_result *result);
// Returns the bytes of device memory it needs to wake.
uint64_t vr_sleeper_away(const struct vr_device *device, const struct vr_sleeper *sleeper);
// Returns the bytes of its live blocks.
uint64_t vr_sleeper_live(const struct vr_device *device, const struct vr_sleeper *sleeper);
// Removes segments of a sleeping pool that have no live block.
void vr_sleeper_trim(struct vr_sleeper *sleeper, struct vr_device *device);
// Adds the sleeper to the device's list, which is newest first.
void vr_sleeper_add(struct vr_device *device, struct vr_sleeper *sleeper);
// Removes the sleeper from the device and frees its saved contents.
void vr_sleeper_end(struct vr_device *device, struct vr_sleeper *sleeper);
// Marks the shards of a pool (NULL: of the default pools) as asleep or awake.
void vr_sleeper_set_shards(struct vr_device *device, const struct vram_pool *pool, bool asleep);
// Reports the sleep or wake of the whole pool to the listener.
void vr_sleeper_notify(struct vr_device *device, const struct vram_pool *pool, bool asleep, uint64_t bytes);
// Lists the ranges whose contents must be saved. NO_HOST_MEMORY.
enum vram_status vr_sleeper_ranges(const struct vr_device *device, const struct vr_sleeper *sleeper, struct vr_live_ranges *ranges);

// Wakes all the sleepers, or none. The default pools wake together with the pools that lent them blocks. Returns the statuses of
// vram_wake(). *error may be NULL.
enum vram_status vr_sleepers_wake(struct vr_device *device, struct vr_sleeper *const *sleepers, size_t count,
                                  struct vram_sleep_result *result, struct vram_error *error);

// --- sleeping_blocks.c: blocks of sleeping segments -----------------------------------------------------------------------------------

// Put the blocks of a segment to sleep, and wake them. The shard's pools must be settled.
void vr_blocks_fall_asleep(struct vr_device *device, struct vr_segment *segment);
void vr_blocks_wake(struct vr_device *device, struct vr_segment *segment);
// Turns the free pages of a sleeping expandable segment into holes. Removes a segment without live blocks. Without host memory, changes
// nothing.
void vr_asleep_trim(struct vr_device *device, uint32_t segment);
// Adds the live blocks of a segment to the ranges; with `whole` also its free memory. NO_HOST_MEMORY.
enum vram_status vr_live_ranges_add(const struct vr_device *device, uint32_t segment, bool whole, struct vr_live_ranges *ranges);

// --- falling_asleep.c: blocks lent to requests of the default pools ---------------------------------------------------------------------

// Checks whether the pool may sleep although it lent blocks. `borrower` is the sleeper, present or future, of the default pools; NULL: they
// stay awake. UNSUPPORTED, with an explanation in *error.
enum vram_status vr_lent_check(const struct vr_device *device, const struct vr_sleeper *sleeper, const struct vr_sleeper *borrower,
                               struct vram_error *error);
// Returns whether the sleeper's pool has lent a live block.
bool vr_has_lent(const struct vr_device *device, const struct vr_sleeper *sleeper);

// --- kept_bytes.c: saved contents on the host -------------------------------------------------------------------------------------------

// Create and destroy a stream for the copies.
enum vram_status vr_copy_stream_open(struct vr_device *device, uint64_t *stream);
void vr_copy_stream_close(struct vr_device *device, uint64_t stream);
// Copies the ranges to pinned memory, and waits for the copies. Pinned memory is allocated piece by piece while copies run. Saves nothing
// on failure. DRIVER, NO_HOST_MEMORY.
enum vram_status vr_kept_save(struct vr_device *device, uint64_t stream, const struct vr_live_ranges *ranges, struct vr_kept_bytes *kept);
// Provides memory for the saved parts of `range`, and queues the copies back into it. *next: the first run that may matter, initially 0;
// call it for ranges by ascending address. Adds the bytes to *copied.
enum vram_status vr_kept_restore(struct vr_device *device, uint64_t stream, const struct vr_kept_bytes *kept, size_t *next,
                                 const struct vr_live_range *range, uint64_t *copied);
// Keeps the pinned memory for the next sleeper: allocating it takes several times as long as the copy, and freeing it twice as long.
void vr_kept_release(struct vr_device *device, struct vr_kept_bytes *kept);
// Returns the kept pinned memory to the driver.
void vr_pinned_trim(struct vr_device *device);
uint64_t vr_pinned_bytes(const struct vr_pinned_chunks *chunks);

// Provides memory for a range of a segment.
VR_INLINE enum vram_status vr_populate(struct vr_device *device, uint32_t segment, uint64_t address, uint64_t size) {
    struct vr_segment *item = vr_segment_at(device->allocator, segment);
    return item->source->populate(device, item, address, size);
}

#endif
