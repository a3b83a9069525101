// serve.h: the steps of malloc and free that the fast way, the slow way and replay share.
#ifndef VR_CORE_SERVE_H
#define VR_CORE_SERVE_H

#include "core/device.h"
#include "core/plain.h"
#include "core/raw.h"
#include "core/shards.h"

// With VRAM_CHECK=3 every call ends by verifying the whole state.
VR_INLINE enum vram_status vr_checked(struct vram_allocator *allocator, enum vram_status status) {
#if VRAM_CHECK >= 3
    struct vram_error error = {.message = ""};
    const enum vram_status state = vram_check(allocator, &error);
    assert(state == VRAM_OK && error.message[0] == '\0');
#else
    (void)allocator;
#endif
    return status;
}

// Books a change of the shard under its lock alone. False when it would be a new peak beyond the allowance and other shards count, too:
// only all locks can say then. The pool's own pair is settled.
VR_NOINLINE bool vr_shard_book_tight(struct vr_shard *shard, unsigned kind, const struct vr_delta *delta);
// first: of the families that can rise.
VR_INLINE bool vr_shard_book(struct vr_shard *shard, unsigned kind, const struct vr_delta *delta, int first) {
    if (VR_LIKELY(vr_counters_fit_from(&shard->counters, kind, delta, first))) {
        vr_counters_apply(&shard->counters, kind, delta);
        return true;
    }
    const struct vr_delta change = *delta; // a copy: what the usual way books stays in registers
    return vr_shard_book_tight(shard, kind, &change);
}
// The same of a hand-out whose books are opened (vr_pool_begin_pair()).
VR_INLINE bool vr_shard_book_rises(struct vr_shard *shard, unsigned kind, const struct vr_delta *delta) {
    const struct vr_delta rises = vr_rises(delta);
    return vr_shard_book(shard, kind, &rises, 0);
}

// A request that the pool's pair answers (`lazy`), whose books are closed: where the device's sums are at a peak, the pair of another
// stream mostly has the room that is missing, and it changes the same. Then the books pass from one to the other. False, and nothing has
// changed, where it is not so. Under the shard's lock.
VR_NOINLINE bool vr_take_passed(struct vr_shard *shard, unsigned kind, uint64_t *address);

// A request on its way through the allocator.
struct vr_alloc_request {
    struct vr_shard *shard;
    uint64_t size_bytes;
    uint64_t rounded;
    unsigned kind; // enum vr_pool_kind
};

// Commits a hand-out: takes the block out of the index unless `loose` (it is in none), splits it at `block_size` bytes where that is less
// than its size, enters the address into the address map, tells where somebody listens (`notified`). The statistics are the caller's. A
// spare record must be there.
VR_INLINE void vr_hand_out_as(const struct vr_alloc_request *request, uint32_t block, uint64_t block_size, bool loose, bool notified) {
    struct vr_shard *shard = request->shard;
    struct vram_allocator *allocator = shard->device->allocator;
    struct vr_block *item = vr_block_at(allocator, block);
    if (vr_is_slot(item)) {
        vr_paged_take(shard, block);
    } else if (!loose) {
        vr_plain_take(shard, request->kind, block, block_size);
    } else if (block_size != item->size) {
        vr_pool_insert(shard, vr_block_split(shard, block, block_size));
    }
    item->state = VR_ALLOCATED;
    item->requested = request->size_bytes;
    item->held.uses = item->held.pending = 0;
    vr_address_map_set(&allocator->addresses, item->address, block);
    item->labels = 0;
    if (notified) vr_notify_hand_out(shard, item);
}
VR_INLINE void vr_hand_out(const struct vr_alloc_request *request, uint32_t block, uint64_t block_size, bool loose) {
    vr_hand_out_as(request, block, block_size, loose, vr_has_listener(request->shard->device));
}

// Whether [address, address + size) lies in the block.
VR_INLINE bool vr_block_holds(const struct vr_block *block, uint64_t address, uint64_t size) {
    return size != 0 && address >= block->address && size <= block->size && address - block->address <= block->size - size;
}
// Splits a free block, which is in no index, at `address`: what lies below goes into the index; the block from there on is returned, in
// none. Under all locks, with a spare record.
uint32_t vr_split_off_below(const struct vr_alloc_request *request, uint32_t block, uint64_t address);
// Hands out exactly [address, address + block_size): it must lie in one free block of the request's shard and kind, aligned to 512. What is
// before and after stays free, whatever the split rules say. INVALID_ARGUMENT otherwise. Under all locks, with 8 spare records.
enum vram_status vr_hand_out_at(const struct vr_alloc_request *request, uint64_t address, uint64_t block_size);

// The whole of malloc under all locks (allocator.md §the-ladder), with a report when it fails.
// shard: the default one of the device and stream. pool: NULL for whatever the routes say.
VR_NOINLINE enum vram_status vr_malloc_slow(struct vr_shard *shard, struct vram_pool *pool, uint64_t size_bytes, uint64_t *address);
// What can be completed before a request on `stream` looks for memory (allocator.md §the-ladder). Under all locks, context current.
enum vram_status vr_complete_frees(struct vr_device *device, uint64_t stream);
// The part of it after the search: hands out `block_size` bytes of a block that is in the index (or loose), and books them. Under all
// locks.
void vr_hand_out_slow(const struct vr_alloc_request *request, uint32_t block, uint64_t block_size, bool loose);
// The same of as much as the split rules give the request. Needs two spare records. Returns the block handed out.
uint32_t vr_serve_from_block(const struct vr_alloc_request *request, uint32_t block, bool loose);
// The first half of a free, under all locks: the allocated block waits from now on. held: it is counted as waiting.
void vr_request_free(struct vr_device *device, uint32_t block, bool held);
// The free of an allocated block without uses, under all locks: nothing can fail.
void vr_free_now(struct vr_device *device, uint32_t block);
// Free under all locks: the block has uses, is oversize or lent, or its booking needs a new peak.
VR_NOINLINE enum vram_status vr_free_slow(struct vram_allocator *allocator, uint64_t address);

#endif
