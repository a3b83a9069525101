// alloc.h: the policy: what becomes of a block that is handed out or freed (allocator.md §the-ladder). All under the device's lock, with
// the front settled.
#ifndef VR_CORE_ALLOC_H
#define VR_CORE_ALLOC_H

#include "core/device.h"
#include "core/raw.h"

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

// A request on its way through the allocator.
struct vr_alloc_request {
    struct vr_shard *shard;
    uint64_t size_bytes;
    uint64_t rounded;
    unsigned kind; // enum vr_pool_kind
};

struct vr_alloc_request vr_alloc_request_of(struct vr_shard *shard, uint64_t size_bytes);

// Hands out as much of a free block as the split rules give the request, and books it. loose: the block is in no index. Needs two spare
// records. Returns the block handed out.
uint32_t vr_alloc_block(const struct vr_alloc_request *request, uint32_t block, bool loose);

// Hands out the block that best fits the request, of those that are cached; 0: there is none, or no spare record.
uint32_t vr_alloc_cached(const struct vr_alloc_request *request);

// Whether [address, address + size) lies in the block.
VR_INLINE bool vr_block_holds(const struct vr_block *block, uint64_t address, uint64_t size) {
    return size != 0 && address >= block->address && size <= block->size && address - block->address <= block->size - size;
}
// Hands out exactly [address, address + block_size): it must lie in `block` (0: there is none), a free one of the request's shard and kind,
// aligned to 512. What is before and after stays free, whatever the split rules say. INVALID_ARGUMENT otherwise. With the whole device
// locked and 8 spare records.
enum vram_status vr_alloc_at(const struct vr_alloc_request *request, uint32_t block, uint64_t address, uint64_t block_size);

// What can be completed before a request on `stream` looks for memory (allocator.md §the-ladder). With the whole device locked, context
// current.
enum vram_status vr_complete_frees(struct vr_device *device, uint64_t stream);
// What the cache does not serve: the whole of malloc with the whole device locked, and a report when it fails. Without locks. pool: NULL
// for whatever the routes say.
enum vram_status vr_malloc_fallback(struct vr_device *device, struct vram_pool *pool, uint64_t size_bytes, uint64_t stream,
                                    uint64_t *address);

// The first half of a free: the allocated block waits from now on. held: it is counted as waiting.
void vr_request_free(struct vr_device *device, uint32_t block, bool held);
// The second half: the block becomes reusable. held: it was counted as waiting.
void vr_complete_free(struct vr_device *device, uint32_t block, bool held);
// Both, of an allocated block of the shard: with uses, the second half waits for them. On failure the block stays allocated. DRIVER,
// NO_HOST_MEMORY.
enum vram_status vr_free_locked(struct vr_shard *shard, uint32_t block);
// Both, of an allocated block of the shard without uses: nothing can fail.
void vr_free_now(struct vr_shard *shard, uint32_t block);

#endif
