// sleepers.h: pools that sleep (vram/sleep.h), inside the allocator. All under all locks of the device, with its context current where the
// driver is asked.
//
// A pool sleeps as a whole: all its segments do, and whatever is free in it is in no index, so that the fast way finds nothing and the slow
// way sees that the pool sleeps. Blocks of chains are VR_EXPANDABLE_VACANT meanwhile, so that a freed one merges with vacant ones (its
// inactive splits are out of the books); free ones are VR_VACANT. Slots of paged memory stay what they are: vr_paged_find() looks at
// vr_shard.vacant.
#ifndef VR_CORE_SLEEP_SLEEPERS_H
#define VR_CORE_SLEEP_SLEEPERS_H

#include "core/device.h"
#include "core/source/source_ops.h"
#include "vram/sleep.h"

// Bytes of a live block that are kept: [address, address + size) is at `host`.
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
    uint64_t away; // while it wakes: bytes of device memory that it needs
    struct vr_kept_bytes kept;
    struct vr_sleeper *next, *previous; // of the device
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

// The sleeper that has this pool's memory (NULL: the default pools'); NULL: that is awake.
struct vr_sleeper *vr_sleeper_of(const struct vr_device *device, const struct vram_pool *pool);
// Whether all segments can sleep, and their bytes kept, where the level says so. Statuses of vram_sleep(); nothing has changed then.
enum vram_status vr_sleeper_prepare(struct vr_device *device, uint64_t stream, struct vr_sleeper *sleeper, struct vram_error *error);
// Falls asleep; the device has it from now on.
void vr_sleeper_begin(struct vr_device *device, struct vr_sleeper *sleeper, struct vram_sleep_result *result);
// Bytes of device memory that it will need.
uint64_t vr_sleeper_away(const struct vr_device *device, const struct vr_sleeper *sleeper);
// Bytes of its live blocks.
uint64_t vr_sleeper_live(const struct vr_device *device, const struct vr_sleeper *sleeper);
// Gives up segments of a sleeping pool in which nothing lives any more.
void vr_sleeper_trim(struct vr_sleeper *sleeper, struct vr_device *device);
// Gives it to the device, the newest first.
void vr_sleeper_add(struct vr_device *device, struct vr_sleeper *sleeper);
// Takes it out of the device, and what it keeps goes back.
void vr_sleeper_end(struct vr_device *device, struct vr_sleeper *sleeper);
// The shards of a pool (NULL: the default pools) sleep from now on, or do not.
void vr_sleeper_set_shards(struct vr_device *device, const struct vram_pool *pool, bool asleep);
// Tells of the whole pool, for histories.
void vr_sleeper_notify(struct vr_device *device, const struct vram_pool *pool, bool asleep, uint64_t bytes);
// What of it has to be kept. NO_HOST_MEMORY.
enum vram_status vr_sleeper_ranges(const struct vr_device *device, const struct vr_sleeper *sleeper, struct vr_live_ranges *ranges);

// Puts the sleepers' memory back: all of them, or none; with the default pools' also that of pools which lent them blocks. Statuses as
// vram_wake(). *error may be NULL.
enum vram_status vr_sleepers_wake(struct vr_device *device, struct vr_sleeper *const *sleepers, size_t count,
                                  struct vram_sleep_result *result, struct vram_error *error);

// --- sleeping_blocks.c: what becomes of blocks --------------------------------------------------------------------------------------

// The blocks of a segment fall asleep, and wake. The shard's pools are settled.
void vr_blocks_fall_asleep(struct vr_device *device, struct vr_segment *segment);
void vr_blocks_wake(struct vr_device *device, struct vr_segment *segment);
// Turns free pages of an expandable segment that sleeps into holes; where nothing lives in the segment any more it goes. Without host
// memory it stays as it is.
void vr_asleep_trim(struct vr_device *device, uint32_t segment);
// Adds the live blocks of a segment to the ranges; whole: free memory, too. NO_HOST_MEMORY.
enum vram_status vr_live_ranges_add(const struct vr_device *device, uint32_t segment, bool whole, struct vr_live_ranges *ranges);

// --- falling_asleep.c: what pools lent to requests of the default pools ------------------------------------------------------------------

// Whether the pool may sleep although it lent blocks. `borrower` has, or will have, the default pools; NULL: these stay awake. UNSUPPORTED
// with a sentence.
enum vram_status vr_lent_check(const struct vr_device *device, const struct vr_sleeper *sleeper, const struct vr_sleeper *borrower,
                               struct vram_error *error);
// Whether a live block is lent by the sleeper's pool.
bool vr_has_lent(const struct vr_device *device, const struct vr_sleeper *sleeper);

// --- kept_bytes.c: their bytes on the host -----------------------------------------------------------------------------------------------

// A stream of our own for the copies, and its end.
enum vram_status vr_copy_stream_open(struct vr_device *device, uint64_t *stream);
void vr_copy_stream_close(struct vr_device *device, uint64_t stream);
// Copies the ranges to pinned memory, which is asked for piece by piece while copies run, and waits for them. Nothing is kept on failure.
// DRIVER, NO_HOST_MEMORY.
enum vram_status vr_kept_save(struct vr_device *device, uint64_t stream, const struct vr_live_ranges *ranges, struct vr_kept_bytes *kept);
// Queues the copies of what was kept of [address, address + size) into it, after putting memory there. *next is the first run that may
// matter, 0 at the beginning; ranges come by ascending address. *copied grows.
enum vram_status vr_kept_restore(struct vr_device *device, uint64_t stream, const struct vr_kept_bytes *kept, size_t *next,
                                 const struct vr_live_range *range, uint64_t *copied);
// Its pinned memory is at hand for whoever falls asleep next: asking for it takes several times as long as the copy, and giving it back
// twice as long.
void vr_kept_release(struct vr_device *device, struct vr_kept_bytes *kept);
// What is at hand goes back to the driver.
void vr_pinned_trim(struct vr_device *device);
uint64_t vr_pinned_bytes(const struct vr_pinned_chunks *chunks);

// Memory behind a range of a segment.
VR_INLINE enum vram_status vr_populate(struct vr_device *device, uint32_t segment, uint64_t address, uint64_t size) {
    struct vr_segment *item = vr_segment_at(device->allocator, segment);
    return item->source->populate(device, item, address, size);
}

#endif
