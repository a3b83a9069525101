// source_ops.h: where pools get memory from and how it goes back. Two sources: segments by cudaMalloc, and expandable segments whose
// pages are mapped as needed. All under all locks of the device, with its context current.
//
// Driver calls are made under the locks on purpose: a segment must be in the books before anybody else can decide to ask for
// one too. The option release_lock_on_cudamalloc drops the locks around cudaMalloc for those who prefer that.
#ifndef VR_CORE_SOURCE_SOURCE_OPS_H
#define VR_CORE_SOURCE_SOURCE_OPS_H

#include "core/device.h"

// A new segment of segment_bytes by cudaMalloc. *block covers it, is free and in no index. OUT_OF_MEMORY when the driver says so;
// DRIVER; NO_HOST_MEMORY; LIMIT. Nothing is left behind on failure.
enum vram_status vr_segment_make(struct vr_shard *shard, bool small, uint64_t segment_bytes, uint32_t *block);
// Gives a segment's memory back at the end, whatever lives in it; the books are not kept.
void vr_segment_drop(struct vr_shard *shard, uint64_t address, uint64_t size);
// Releases the reservation of an expandable segment in which nothing is mapped.
void vr_expandable_unreserve(struct vr_shard *shard, uint32_t segment);
// Gives the segment of a free block that spans it back to the driver. The block is in its pool's index. Told before the driver
// call. DRIVER when the driver refuses: the segment leaves the books and is tried again later.
enum vram_status vr_segment_free(struct vr_shard *shard, uint32_t block);

// The free block that vr_expandable_grow() takes whole, without mapping anything: the cache refuses it, by max_split_size_mb. 0 if there is
// none.
uint32_t vr_expandable_mapped(const struct vr_shard *shard, bool small, uint64_t rounded);
// Memory for `rounded` bytes in an expandable segment of the shard: *block is large enough, free and in no index. On failure
// what was mapped on the way stays as free memory.
enum vram_status vr_expandable_grow(struct vr_shard *shard, bool small, uint64_t rounded, uint32_t *block);
// Unmaps the whole pages of a free block in the index; what is left of it stays free. The reservation goes when nothing is mapped.
enum vram_status vr_expandable_shrink(struct vr_shard *shard, uint32_t block);
// Reserves address space: one hole. *segment its number.
enum vram_status vr_expandable_reserve(struct vr_shard *shard, bool small, uint64_t reserve_bytes, uint32_t *segment);
// Maps the low `size` bytes (rounded up to pages) of a hole and merges; *block is the free block they end up in, in the index.
enum vram_status vr_expandable_map(struct vr_shard *shard, uint32_t hole, uint64_t size, uint32_t *block);
// The same for pages anywhere inside a hole: [address, address + size), page aligned. What lies below stays a hole.
enum vram_status vr_expandable_map_at(struct vr_shard *shard, uint32_t hole, uint64_t address, uint64_t size);

// Bytes of address space that a new expandable segment of a stream reserves: the option of its class, else the general one, else all;
// capped at 9/8 of the device's memory, in whole pages.
uint64_t vr_expandable_reserve_bytes(const struct vr_device *device, uint64_t stream, uint64_t page_size);

// Shared by both: a segment entry with its first block record, in no index; and the reverse.
enum vram_status vr_segment_register(struct vr_shard *shard, bool small, const struct vr_segment *facts, uint32_t *segment);
void vr_segment_forget(struct vr_shard *shard, uint32_t segment);
// The block of any state, hole or not, that contains the address; 0 if no segment of the device does.
uint32_t vr_block_containing(const struct vr_device *device, uint64_t address);
// Books reserved bytes; both signs.
void vr_reserved_add(struct vr_shard *shard, bool small, int64_t bytes);
VR_INLINE enum vram_stat_pool vr_stat_view(bool small) { return small ? VRAM_STAT_SMALL_POOL : VRAM_STAT_LARGE_POOL; }

// Remembers what the driver would not take back.
void vr_orphan_add(struct vr_device *device, const struct vr_orphan *orphan);
// Tries again to give orphans back.
void vr_orphans_retry(struct vr_device *device);

#endif
