// alloc.h: the policy: hands out blocks and takes them back (allocator.md §the-ladder). Call all of it under the device's lock, with the
// front settled.
#ifndef VR_CORE_ALLOC_H
#define VR_CORE_ALLOC_H

#include "core/device.h"
#include "core/source/raw.h"

// With VRAM_CHECK=3 every call ends by verifying the whole state.
#if VRAM_CHECK >= 3
VR_INLINE enum vram_status vr_verify_if_enabled(struct vram_allocator *allocator, enum vram_status status) {
    struct vram_error error = {.message = ""};
    const enum vram_status state = vram_check(allocator, &error);
    assert(state == VRAM_OK && error.message[0] == '\0');
    return status;
}
#else
#define vr_verify_if_enabled(allocator, status) (status)
#endif

// A request, as the allocator's layers pass it on.
struct vr_alloc_request {
    struct vr_shard *shard;
    uint64_t size_bytes;
    uint64_t rounded;
    unsigned kind;    // enum vr_pool_kind
    bool exact;       // the block has exactly `rounded` bytes, whatever the split rules say
    uint64_t address; // chosen by the caller: vr_alloc_at(); 0: by the rules
};

struct vr_alloc_request vr_alloc_request_of(struct vr_shard *shard, uint64_t size_bytes);

// Allocates the part of a free block that the request gets (allocator.md §splitting), and updates the counters. loose: the block is in no
// index. Needs two spare records, for splits before and after the part. Returns the allocated block.
uint32_t vr_alloc_block(const struct vr_alloc_request *request, uint32_t block, bool loose);

// Returns whether [address, address + size) lies in the block.
VR_INLINE bool vr_block_holds(const struct vr_block *block, uint64_t address, uint64_t size) {
    return size != 0 && address >= block->address && size <= block->size && address - block->address <= block->size - size;
}
// Allocates at the request's address. `rounded` bytes from there on must be 512-byte aligned and lie in this block, a free one of the
// request's shard and kind; otherwise, or if block is 0, returns INVALID_ARGUMENT. The memory before the address stays free. Call it with
// the whole device locked and two spare records.
enum vram_status vr_alloc_at(const struct vr_alloc_request *request, uint32_t block);

// Completes the frees that can be completed before a request on `stream` searches for memory (allocator.md §the-ladder). Call it with the
// whole device locked and its context current.
enum vram_status vr_complete_frees(struct vr_device *device, uint64_t stream);
// Serves a request that the cache cannot: runs all of malloc with the whole device locked, and reports a failure. Call it without locks.
// pool NULL: the routes choose the pool.
enum vram_status vr_malloc_fallback(struct vr_device *device, struct vram_pool *pool, uint64_t size_bytes, uint64_t stream,
                                    uint64_t *address);

// The first half of a free: the allocated block becomes pending. held: counts it as waiting.
void vr_request_free(struct vr_device *device, uint32_t block, bool held);
// The second half: the block becomes reusable. held: it was counted as waiting.
void vr_complete_free(struct vr_device *device, uint32_t block, bool held);
// Does both halves for an allocated block of the shard; if it has uses, the second half waits for them. On failure the block stays
// allocated. DRIVER, NO_HOST_MEMORY.
enum vram_status vr_free_locked(struct vr_shard *shard, uint32_t block);
// Both halves at once, for an allocated block of the shard without uses. Cannot fail.
void vr_free_now(struct vr_shard *shard, uint32_t block);

#endif
