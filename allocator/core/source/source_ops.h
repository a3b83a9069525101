// source_ops.h: the seam at which pools get memory. A source is a table of operations: a shard has the one by which it grows, a segment
// the one that it came from. Blocks, index, fences and statistics do not know which. The tables of this folder, and the choice among them,
// are at the end.
//
// All of it runs under all locks of the device, with its context current. Driver calls are made under the locks on purpose: a segment
// must be in the books before anybody else can decide to ask for one too. The option release_lock_on_cudamalloc drops the locks around
// cuMemAlloc for those who prefer that.
#ifndef VR_CORE_SOURCE_SOURCE_OPS_H
#define VR_CORE_SOURCE_SOURCE_OPS_H

#include "core/state.h"

// As what other processes may have a block of this source.
enum vr_sharing { VR_SHARING_NONE, VR_SHARING_SEGMENT, VR_SHARING_PAGES };

struct vr_held_bytes {
    uint64_t there[VR_POOLS], away[VR_POOLS];
};
typedef enum vram_status (*vr_slot_visitor)(uint32_t block, void *user);

struct vr_source_ops {
    const char *name;
    // Its segments are ranges of addresses that are mapped page by page: they have holes, their free pieces are no inactive splits, and a
    // request prefers those that do not use up room to grow. Shards, segments and blocks have a copy of this bit, so that the hot path
    // reads it without a look at this table.
    bool expandable;
    // Its blocks are slots (VR_EXPANDABLE_SLOT), which have no neighbours: the chain of its segments is one hole, as long as they are.
    bool has_slots;
    enum vr_sharing sharing;

    // Memory for a request of `rounded` bytes: *block is large enough, free and in no index. OUT_OF_MEMORY when the driver says so; DRIVER;
    // NO_HOST_MEMORY; LIMIT. What a failed call mapped on the way stays as free memory.
    enum vram_status (*grow)(struct vr_shard *shard, bool small, uint64_t rounded, uint32_t *block);
    // The free block that grow() would take whole, without asking the driver: the cache refuses it, by max_split_size_mb. 0: none. NULL:
    // never any.
    uint32_t (*ready)(const struct vr_shard *shard, bool small, uint64_t rounded);
    // Whether a free block, in the index, can go back to the driver. NULL: any, as far as it covers whole pages.
    bool (*returnable)(const struct vr_block *block);
    // Gives such a block back. DRIVER when the driver refuses: what left the books then is tried again later.
    enum vram_status (*give_back)(struct vr_shard *shard, uint32_t block);
    // Gives up a segment behind which there is no memory. NULL: there are none.
    void (*abandon)(struct vr_shard *shard, uint32_t segment);
    // At the end: gives a segment's memory back, whatever lives in it. The books are not kept.
    void (*drop)(struct vr_device *device, struct vr_segment *segment);
    // Lets `peer` reach the segment. DRIVER. NULL: the memory follows the contexts.
    enum vram_status (*allow)(struct vr_device *device, const struct vr_segment *segment, uint32_t peer);
    // Of sources that share pages which differ in size: the handle of the page that is mapped at an address, where the mapping begins (in
    // multiples of segment->page_size) and how long it is; 0: none. NULL: segment->pages, which are all of page_size.
    uint64_t (*page_at)(const struct vr_device *device, const struct vr_segment *segment, uint64_t address, uint64_t *base, uint64_t *size);
    // Of sources with slots: a free one is handed out; one is free again. Under the device's lock alone.
    void (*take_slot)(struct vr_shard *shard, uint32_t block);
    void (*give_slot)(struct vr_shard *shard, uint32_t block);
    // Of sources that keep something of their own for shards and devices (struct vr_source_kept), else NULL; called by the functions below,
    // under all locks but for what says otherwise. Free slots of this size: the block of one, by the fast way, under the device's lock
    // alone (0: none); all of them, so that the fast way finds them.
    uint32_t (*ready_slot)(const struct vr_shard *shard, uint64_t rounded);
    void (*recall_slots)(struct vr_shard *shard, uint64_t rounded);
    // Whether a request could not be served by what the device has free.
    bool (*must_grow)(struct vr_shard *shard, uint64_t rounded);
    // What is put off is done: books say where the bytes are. NO_HOST_MEMORY.
    enum vram_status (*settle)(struct vr_device *device);
    // Gives free memory back to the driver, until `enough` bytes are; the free memory of a pool. DRIVER when it refuses some.
    enum vram_status (*give_back_free)(struct vr_device *device, uint64_t enough);
    enum vram_status (*give_back_of_pool)(struct vram_pool *pool);
    // The pool has no holder any more: its free memory goes to the default pools. The shard of a pool ends: what the next one can use
    // stays.
    void (*hand_over)(struct vram_pool *pool);
    void (*park)(struct vr_shard *shard);
    // Adds free bytes, and the longest free range; bytes of memory of a pool (NULL: of all), of those that are away apart; calls visit()
    // for each live slot of a pool (NULL: of all) until it fails.
    void (*count_free)(struct vr_device *device, uint64_t *bytes, uint64_t *largest);
    void (*count_held)(const struct vr_device *device, const struct vram_pool *only, struct vr_held_bytes *held);
    enum vram_status (*each_slot)(const struct vr_device *device, const struct vram_pool *only, vr_slot_visitor visit, void *user);
    // What must hold, found from the live blocks. MISMATCH, NO_HOST_MEMORY.
    enum vram_status (*check_device)(struct vr_device *device, struct vram_error *error);
    // At the end, without any lock: threads end. After the segments were dropped: the books are freed.
    void (*end_threads)(struct vr_device *device);
    void (*close)(struct vr_device *device);

    // What pictures show of a segment, where that is not its chain: blocks in the order of their addresses, which the caller frees, with
    // FREE ones and holes between. NO_HOST_MEMORY.
    enum vram_status (*blocks)(const struct vr_device *device, const struct vr_segment *segment, struct vr_block **blocks, size_t *count);
    // What must hold for a segment of this source, apart from its blocks. MISMATCH. NULL: nothing.
    enum vram_status (*check)(const struct vram_allocator *allocator, const struct vr_segment *segment, struct vram_error *error);

    // Of sources whose segments come and go whole, by the functions below: asks for `size` bytes, and gives them back. The latter has seen
    // to it that what is refused is tried again (vr_give_back()).
    vr_cu_result (*take)(struct vr_shard *shard, uint64_t size, uint64_t *address);
    enum vram_status (*give)(struct vr_shard *shard, uint64_t address, uint64_t size);

    // Of sources whose segments can sleep (sleep/sleepers.h), else NULL. Takes the memory from behind all addresses of the segment, books
    // and tells it. Nothing fails: what the driver keeps is as it was, and is counted in *held.
    void (*vacate)(struct vr_device *device, struct vr_segment *segment, uint64_t *held);
    // Makes sure that memory stands behind [address, address + size), where there are no holes. OUT_OF_MEMORY; DRIVER. What a failed call
    // made on the way stays until vacate().
    enum vram_status (*populate)(struct vr_device *device, struct vr_segment *segment, uint64_t address, uint64_t size);
};

// Whether this free block spans a segment that comes and goes whole, and can go now.
VR_INLINE bool vr_source_takes_back_whole(const struct vr_source_ops *source, const struct vr_block *block) {
    return !source->expandable && (source->returnable == NULL || source->returnable(block));
}

// --- what sources keep for shards and devices: sources.c -----------------------------------------------------------------------------

// The operations above, of the source that keeps something here; nothing happens where none does.
void vr_source_recall_slots(struct vr_shard *shard, uint64_t rounded);
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

// --- memory that is away: core/sleep ---------------------------------------------------------------------------------------------------

// A pool (NULL: the default pools) is vacant when vacate() took its memory. What is free in it is in no index then. These look at
// vr_device.vacant first: where it is NULL no pool is.
bool vr_is_vacant(const struct vr_device *device, const struct vram_pool *pool);
// A request to such a pool: its memory comes back, or ASLEEP. OUT_OF_MEMORY, DRIVER: it stays away.
enum vram_status vr_vacant_request(struct vr_device *device, const struct vram_pool *pool);
// Bytes of device memory that it takes to come back; bytes of live blocks in all vacant pools of the device.
uint64_t vr_vacant_needs(const struct vr_device *device, const struct vram_pool *pool);
uint64_t vr_vacant_live(const struct vr_device *device);
// Gives up segments of the pool in which nothing lives any more.
void vr_vacant_trim(struct vram_pool *pool);
// The pool ends: it is not vacant any more. At the end of the device, after its segments were dropped: no pool is.
void vr_vacant_forget(struct vr_device *device, const struct vram_pool *pool);
void vr_vacant_release(struct vr_device *device);

// --- segments that come and go whole: whole_segments.c -------------------------------------------------------------------------------

// grow(), returnable(), give_back() and drop() of such sources.
enum vram_status vr_whole_grow(struct vr_shard *shard, bool small, uint64_t rounded, uint32_t *block);
bool vr_whole_returnable(const struct vr_block *block);
enum vram_status vr_whole_give_back(struct vr_shard *shard, uint32_t block);
void vr_whole_drop(struct vr_device *device, struct vr_segment *segment);
// Takes a segment out of the statistics, with what of it is away.
void vr_whole_count_gone(struct vr_shard *shard, const struct vr_segment *segment);
#define VR_WHOLE_SEGMENTS .grow = vr_whole_grow, .returnable = vr_whole_returnable, .give_back = vr_whole_give_back, .drop = vr_whole_drop
// A segment of exactly this size from this source, which may be another than the shard's. Otherwise as grow().
enum vram_status vr_whole_make(struct vr_shard *shard, const struct vr_source_ops *source, bool small, uint64_t segment_bytes,
                               uint32_t *block);

// --- expandable segments: expandable.c -----------------------------------------------------------------------------------------------

// Reserves address space: one hole. *segment its number.
enum vram_status vr_expandable_reserve(struct vr_shard *shard, bool small, uint64_t reserve_bytes, uint32_t *segment);
// Maps pages anywhere inside a hole: [address, address + size), page aligned. What lies below stays a hole. The free block that they end up
// in is in the index.
enum vram_status vr_expandable_map_at(struct vr_shard *shard, uint32_t hole, uint64_t address, uint64_t size);

// Into the pool's set of holes (hole_runs.h), joined with the holes next to it. Returns the joined hole.
uint32_t vr_hole_join(struct vr_shard *shard, uint32_t hole);
// Cuts [low, high) out of a free block that is in no index; what is before and after goes back into the index. Two spare records.
uint32_t vr_cut_out(struct vr_shard *shard, uint32_t block, uint64_t low, uint64_t high);
// Give a reservation, a physical allocation or a mapping back; what the driver refuses is tried again later, in this order, so that a range
// goes after the mapping in it. vr_drop_mapping(): whether it is gone.
void vr_drop_range(struct vr_device *device, uint64_t address, uint64_t size);
void vr_drop_handle(struct vr_device *device, uint64_t handle);
bool vr_drop_mapping(struct vr_device *device, uint64_t address, uint64_t size);
// Tries again now: a mapping that was kept may be where the next one goes.
void vr_orphaned_mappings_retry(struct vr_device *device);

// --- which there are: sources.c ------------------------------------------------------------------------------------------------------

extern const struct vr_source_ops vr_source_cu_mem_alloc;
extern const struct vr_source_ops vr_source_user_functions;
extern const struct vr_source_ops vr_source_expandable;
extern const struct vr_source_ops vr_source_sleepable;
extern const struct vr_source_ops vr_source_paged;
extern const struct vr_source_ops vr_source_paged_small;

// By which a shard of this private pool (NULL: of the default pools) grows under the device's options.
const struct vr_source_ops *vr_source_of(const struct vr_device *device, const struct vram_pool *owner);

#endif
