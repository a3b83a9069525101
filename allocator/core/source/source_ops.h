// source_ops.h: the interface through which pools get memory. A source is a table of operations: a shard has the source it grows from, and
// a segment the source it came from. Blocks, index, fences and statistics do not know which source it is. The tables of this folder, and
// the choice among them, are at the end.
//
// Call all of it under all locks of the device, with its context current. Driver calls are made under the locks on purpose: a segment must
// be registered before another thread can decide to request one too. The option release_lock_on_cudamalloc drops the locks around
// cuMemAlloc for users who prefer that.
#ifndef VR_CORE_SOURCE_SOURCE_OPS_H
#define VR_CORE_SOURCE_SOURCE_OPS_H

#include "core/state.h"

// How other processes can share a block of this source.
enum vr_sharing { VR_SHARING_NONE, VR_SHARING_SEGMENT, VR_SHARING_PAGES };

struct vr_held_bytes {
    uint64_t there[VR_POOLS], away[VR_POOLS];
};
typedef enum vram_status (*vr_slot_visitor)(uint32_t block, void *user);

struct vr_source_ops {
    const char *name;
    // Its segments are address ranges that are mapped page by page. They have holes, their free pieces are not inactive splits, and
    // requests prefer the pieces that do not use up room to grow. Shards, segments and blocks have a copy of this flag, so that the hot
    // path need not read this table.
    bool expandable;
    // Its blocks are slots (VR_EXPANDABLE_SLOT), which have no neighbours. The chain of each segment is a single hole of the segment's
    // length.
    bool has_slots;
    enum vr_sharing sharing;

    // Gets memory for a request of `rounded` bytes. *block is large enough, free and in no index. OUT_OF_MEMORY if the driver is out of
    // memory; DRIVER; NO_HOST_MEMORY; LIMIT. Memory that a failed call has mapped stays as free memory.
    enum vram_status (*grow)(struct vr_shard *shard, bool small, uint64_t rounded, uint32_t *block);
    // Returns the free block that grow() would take whole, without calling the driver, when max_split_size_mb keeps the cache from using
    // it; 0 if there is none. NULL: there never is one.
    uint32_t (*ready)(const struct vr_shard *shard, bool small, uint64_t rounded);
    // Returns whether a free block, in the index, can be returned to the driver. NULL: any block can, as far as it covers whole pages.
    bool (*returnable)(const struct vr_block *block);
    // Returns such a block to the driver. DRIVER if the driver refuses; if the memory is already out of the tables by then, returning it is
    // retried later.
    enum vram_status (*give_back)(struct vr_shard *shard, uint32_t block);
    // Removes a segment without memory. NULL: the source has no such segments.
    void (*abandon)(struct vr_shard *shard, uint32_t segment);
    // Returns a segment's memory when the device is closed, even with live blocks. Updates no tables.
    void (*drop)(struct vr_device *device, struct vr_segment *segment);
    // Gives `peer` access to the segment. DRIVER. NULL: access follows the contexts.
    enum vram_status (*allow)(struct vr_device *device, const struct vr_segment *segment, uint32_t peer);
    // For sources that share pages of different sizes: returns the handle of the page mapped at an address, the start of its mapping (a
    // multiple of segment->page_size), and its size. 0 if no page is mapped there. NULL: segment->pages has the pages, all of page_size.
    uint64_t (*page_at)(const struct vr_device *device, const struct vr_segment *segment, uint64_t address, uint64_t *base, uint64_t *size);
    // For sources with slots: allocate a free slot, and free one. Under the device's lock alone.
    void (*take_slot)(struct vr_shard *shard, uint32_t block);
    void (*give_slot)(struct vr_shard *shard, uint32_t block);
    // The operations down to `close` are for sources with data of their own for shards and devices (struct vr_source_kept), else NULL. The
    // functions below call them, under all locks unless they say otherwise. ready_slot() returns the block of a free slot of this size by
    // the fast path, under the device's lock alone, or 0. recall_slots() makes all free slots of this size visible to the fast path.
    uint32_t (*ready_slot)(const struct vr_shard *shard, uint64_t rounded);
    void (*recall_slots)(struct vr_shard *shard, uint64_t rounded);
    // Returns whether the device's free memory cannot serve the request.
    bool (*must_grow)(struct vr_shard *shard, uint64_t rounded);
    // Does all postponed work, so that the tables show where the bytes are. NO_HOST_MEMORY.
    enum vram_status (*settle)(struct vr_device *device);
    // Return free memory to the driver: at least `enough` bytes if there are as many; the free memory of a pool. DRIVER if the driver
    // refuses some.
    enum vram_status (*give_back_free)(struct vr_device *device, uint64_t enough);
    enum vram_status (*give_back_of_pool)(struct vram_pool *pool);
    // hand_over(): moves the free memory of a pool without references to the default pools. park(): ends the shard of a pool, and keeps
    // what the next pool can reuse.
    void (*hand_over)(struct vram_pool *pool);
    void (*park)(struct vr_shard *shard);
    // count_free() adds the free bytes, and raises *largest to the longest free range. count_held() counts the memory of a pool (NULL: of
    // all), separately for memory released by sleep. each_slot() calls visit() for each live slot of a pool (NULL: of all) until it fails.
    void (*count_free)(struct vr_device *device, uint64_t *bytes, uint64_t *largest);
    void (*count_held)(const struct vr_device *device, const struct vram_pool *only, struct vr_held_bytes *held);
    enum vram_status (*each_slot)(const struct vr_device *device, const struct vram_pool *only, vr_slot_visitor visit, void *user);
    // Checks the source's invariants, recomputed from the live blocks. MISMATCH, NO_HOST_MEMORY.
    enum vram_status (*check_device)(struct vr_device *device, struct vram_error *error);
    // end_threads() ends the source's threads when the device is closed. Called without locks. close() frees the tables, after the segments
    // were dropped.
    void (*end_threads)(struct vr_device *device);
    void (*close)(struct vr_device *device);

    // For segments that snapshots do not show as their chain: gets the blocks by address, with FREE blocks and holes between them. The
    // caller frees *blocks. NO_HOST_MEMORY.
    enum vram_status (*blocks)(const struct vr_device *device, const struct vr_segment *segment, struct vr_block **blocks, size_t *count);
    // Checks the invariants of a segment of this source, except its blocks. MISMATCH. NULL: there are none.
    enum vram_status (*check)(const struct vram_allocator *allocator, const struct vr_segment *segment, struct vram_error *error);

    // For sources of whole segments, used by the functions below: request `size` bytes from the driver, and return them. give() ensures
    // that a refused return is retried (vr_give_back()).
    vr_cu_result (*take)(struct vr_shard *shard, uint64_t size, uint64_t *address);
    enum vram_status (*give)(struct vr_shard *shard, uint64_t address, uint64_t size);

    // For sources whose segments can sleep (sleep/sleepers.h), else NULL. Removes the memory behind all addresses of the segment, and
    // updates counters and listener. Cannot fail: memory that the driver keeps stays as it was, and is counted in *held.
    void (*vacate)(struct vr_device *device, struct vr_segment *segment, uint64_t *held);
    // Provides memory for [address, address + size), which contains no holes. OUT_OF_MEMORY; DRIVER. Memory provided by a failed call stays
    // until vacate().
    enum vram_status (*populate)(struct vr_device *device, struct vr_segment *segment, uint64_t address, uint64_t size);
};

// Returns whether this free block spans a whole segment of its source and can be returned now.
VR_INLINE bool vr_source_takes_back_whole(const struct vr_source_ops *source, const struct vr_block *block) {
    return !source->expandable && (source->returnable == NULL || source->returnable(block));
}

// --- data of sources for shards and devices: sources.c ----------------------------------------------------------------------------------

// These call the operations above of the source that has data here. Without such a source they do nothing.
bool vr_source_must_grow(struct vr_shard *shard, uint64_t rounded); // true
enum vram_status vr_source_settle(struct vr_device *device);
enum vram_status vr_source_give_back_free(struct vr_device *device, uint64_t enough);
enum vram_status vr_source_give_back_of_pool(struct vram_pool *pool);
void vr_source_hand_over(struct vram_pool *pool);
void vr_source_park(struct vr_shard *shard);
void vr_source_count_free(struct vr_device *device, uint64_t *bytes, uint64_t *largest);
void vr_source_count_held(const struct vr_device *device, const struct vram_pool *only, struct vr_held_bytes *held);
enum vram_status vr_source_each_slot(const struct vr_device *device, const struct vram_pool *only, vr_slot_visitor visit, void *user);
enum vram_status vr_source_check_device(struct vr_device *device, struct vram_error *error);
void vr_source_end_threads(struct vr_device *device);
void vr_source_close(struct vr_device *device);

// --- memory released by sleep: core/sleep ----------------------------------------------------------------------------------------------

// A pool (NULL: the default pools) is vacant after vacate() took its memory. Its free blocks are then in no index. These functions check
// vr_device.vacant first: if it is NULL, no pool is vacant.
bool vr_is_vacant(const struct vr_device *device, const struct vram_pool *pool);
// Handles a request to such a pool: brings its memory back, or returns ASLEEP. OUT_OF_MEMORY, DRIVER: the memory stays released.
enum vram_status vr_vacant_request(struct vr_device *device, const struct vram_pool *pool);
// Return the device memory that bringing it back takes, and the bytes of live blocks in all vacant pools of the device.
uint64_t vr_vacant_needs(const struct vr_device *device, const struct vram_pool *pool);
uint64_t vr_vacant_live(const struct vr_device *device);
// Removes the pool's segments that have no live block.
void vr_vacant_trim(struct vram_pool *pool);
// End the vacancy of a pool that is destroyed, or of all pools when the device is closed, after its segments were dropped.
void vr_vacant_forget(struct vr_device *device, const struct vram_pool *pool);
void vr_vacant_release(struct vr_device *device);

// --- whole segments: whole_segments.c -----------------------------------------------------------------------------------------------

// grow(), returnable(), give_back() and drop() for such sources.
enum vram_status vr_whole_grow(struct vr_shard *shard, bool small, uint64_t rounded, uint32_t *block);
bool vr_whole_returnable(const struct vr_block *block);
enum vram_status vr_whole_give_back(struct vr_shard *shard, uint32_t block);
void vr_whole_drop(struct vr_device *device, struct vr_segment *segment);
// Removes a segment from the statistics, including its memory released by sleep.
void vr_whole_count_gone(struct vr_shard *shard, const struct vr_segment *segment);
#define VR_WHOLE_SEGMENTS .grow = vr_whole_grow, .returnable = vr_whole_returnable, .give_back = vr_whole_give_back, .drop = vr_whole_drop
// Like grow(), but makes a segment of exactly this size, from this source, which may differ from the shard's.
enum vram_status vr_whole_make(struct vr_shard *shard, const struct vr_source_ops *source, bool small, uint64_t segment_bytes,
                               uint32_t *block);

// --- expandable segments: expandable.c -----------------------------------------------------------------------------------------------

// Reserves address space as one hole. *segment: the segment's number.
enum vram_status vr_expandable_reserve(struct vr_shard *shard, bool small, uint64_t reserve_bytes, uint32_t *segment);
// Maps pages anywhere inside a hole: [address, address + size), page-aligned. The range below it stays a hole. The resulting free block is
// in the index.
enum vram_status vr_expandable_map_at(struct vr_shard *shard, uint32_t hole, uint64_t address, uint64_t size);

// Adds a hole to the pool's set (hole_runs.h), joined with adjacent holes. Returns the joined hole.
uint32_t vr_hole_join(struct vr_shard *shard, uint32_t hole);
// Cuts [low, high) out of a free block that is in no index. Inserts the parts before and after it into the index. Needs two spare records.
uint32_t vr_cut_out(struct vr_shard *shard, uint32_t block, uint64_t low, uint64_t high);
// Return a reservation, a physical allocation or a mapping to the driver. If the driver refuses, retries later in this order, so that a
// range is freed after the mapping in it. vr_drop_mapping() returns whether the mapping is gone.
void vr_drop_range(struct vr_device *device, uint64_t address, uint64_t size);
void vr_drop_handle(struct vr_device *device, uint64_t handle);
bool vr_drop_mapping(struct vr_device *device, uint64_t address, uint64_t size);
// Retries now, because the next mapping may need the address of a mapping that the driver kept.
void vr_orphaned_mappings_retry(struct vr_device *device);

// --- all sources: sources.c --------------------------------------------------------------------------------------------------------------

extern const struct vr_source_ops vr_source_cu_mem_alloc;
extern const struct vr_source_ops vr_source_user_functions;
extern const struct vr_source_ops vr_source_expandable;
extern const struct vr_source_ops vr_source_sleepable;
extern const struct vr_source_ops vr_source_paged;
extern const struct vr_source_ops vr_source_paged_small;

// Returns the source that a shard of this private pool (NULL: of the default pools) grows from under the device's options.
const struct vr_source_ops *vr_source_of(const struct vr_device *device, const struct vram_pool *owner);

#endif
