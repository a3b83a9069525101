// raw.h: blocks outside the pools, allocated directly from the driver. Each records how it was allocated, so that caching can be switched
// on and off at any time.
#ifndef VR_CORE_SOURCE_RAW_H
#define VR_CORE_SOURCE_RAW_H

#include <stdatomic.h>

#include "base/base.h"
#include "os/os.h"
#include "vram/pool.h"

struct vr_device;
struct vram_allocator;

struct vr_raw_block {
    uint64_t address; // 0: empty slot
    uint64_t size;
    uint64_t stream;
    uint32_t device;
    // From the driver's pool (source/async.c). Otherwise the members below are 0, except `stack`.
    bool driver_pool;
    bool postponed;           // freed by the client; waits for the end of a capture
    uint32_t uses;            // first use in the table of uses; 0: none
    uint32_t stack;           // of the call that requested it; 0: nothing listened
    uint64_t capture;         // id of the capture during which it was requested; 0: none
    struct vram_pool_id pool; // the pool to which the request was routed
};

// Blocks allocated directly from the driver (caching off, or backend:cudaMallocAsync): a hash table with open addressing, keyed by address.
struct vr_raw {
    struct vr_mutex mutex;
    uint64_t secret; // mixed into the hash, because in a replay the addresses come from a file
    struct vr_raw_block *slots;
    size_t capacity; // 0 or a power of two
    size_t count;
    _Atomic uint32_t any; // 1 once a block was ever entered
};

// --- the table ---------------------------------------------------------------------------------------------------------------

void vr_raw_init(struct vr_raw *raw);
// Finds a raw block by its address. Returns false if the address is not a raw block, or its free is postponed.
bool vr_raw_find(struct vram_allocator *allocator, uint64_t address, struct vr_raw_block *block);
// Enters a block (NO_HOST_MEMORY), changes one in the table, and removes one.
enum vram_status vr_raw_remember(struct vram_allocator *allocator, const struct vr_raw_block *block);
void vr_raw_change(struct vram_allocator *allocator, const struct vr_raw_block *block);
void vr_raw_forget(struct vram_allocator *allocator, uint64_t address);
// Drops all blocks' references to clients' contexts.
void vr_raw_forget_stacks(struct vram_allocator *allocator);
// Gets the client's context of a block, with a reference, or NULL. Returns false if the address is not a raw block.
bool vr_raw_context(struct vram_allocator *allocator, uint64_t address, void **context);
// Iterates over the device's postponed blocks, from slot *at, which it advances. Returns false at the end.
bool vr_raw_next_postponed(struct vram_allocator *allocator, uint32_t device, size_t *at, struct vr_raw_block *block);
// Copies the device's blocks, of pool `only` or (NULL) of all pools, by ascending address. The caller frees *blocks. Under the device's
// locks. NO_HOST_MEMORY.
enum vram_status vr_raw_copy(const struct vr_device *device, const struct vram_pool *only, struct vr_raw_block **blocks, size_t *count);
// Totals of the device's blocks from the driver's pool. Computed under the table's lock, because blocks of other devices move in the table
// meanwhile.
struct vr_raw_sums {
    int64_t count, bytes; // not freed by the client
    int64_t postponed;
    int64_t requested; // bytes of both kinds
};
void vr_raw_sum(const struct vr_device *device, struct vr_raw_sums *sums);
// Finds the block, of any device, that contains the address. Returns false if no block does. Skips postponed blocks.
bool vr_raw_find_containing(struct vram_allocator *allocator, uint64_t address, struct vr_raw_block *block);

// --- caching off: raw.c --------------------------------------------------------------------------------------------------------

enum vram_status vr_raw_malloc(struct vr_device *device, uint64_t size_bytes, uint64_t stream, uint64_t *address);
// INVALID_POINTER if the address is not a raw block.
enum vram_status vr_raw_free(struct vram_allocator *allocator, uint64_t address);
// Frees all raw blocks and the table.
void vr_raw_release(struct vram_allocator *allocator);

#endif
