// raw.h: blocks that lie outside of the pools: they went straight to the driver. They remember how they were made, so that switching
// caching on and off is safe.
#ifndef VR_CORE_RAW_H
#define VR_CORE_RAW_H

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
    // Of the driver's pool only (source/async.c).
    bool driver_pool;
    bool postponed;           // freed by the client, waiting for the end of a capture
    uint32_t uses;            // list in the table of uses
    uint32_t stack;           // of the call that asked for it, 0 where nobody listened
    uint64_t capture;         // that it was asked for in, 0: none
    struct vram_pool_id pool; // that the request was routed to
};

// Blocks that went straight to the driver (caching off, or backend:cudaMallocAsync): open addressing by address.
struct vr_raw {
    struct vr_mutex mutex;
    uint64_t secret; // slots go by it: in a replay the addresses are those of a file
    struct vr_raw_block *slots;
    size_t capacity; // 0 or a power of two
    size_t count;
    _Atomic uint32_t any; // whether there ever was one
};

// --- the table
// -----------------------------------------------------------------------------------------------------------------------------

// An empty one.
void vr_raw_init(struct vr_raw *raw);
// False when the address is not a raw block.
bool vr_raw_find(struct vram_allocator *allocator, uint64_t address, struct vr_raw_block *block);
// The table: enters a block (NO_HOST_MEMORY), changes one that is in it, takes one out, walks over postponed ones of a device from slot
// *at.
enum vram_status vr_raw_remember(struct vram_allocator *allocator, const struct vr_raw_block *block);
void vr_raw_change(struct vram_allocator *allocator, const struct vr_raw_block *block);
void vr_raw_forget(struct vram_allocator *allocator, uint64_t address);
// Blocks keep no context of a client's any more.
void vr_raw_forget_stacks(struct vram_allocator *allocator);
// The client's context of a block, with a reference; false when the address is not a raw block.
bool vr_raw_context(struct vram_allocator *allocator, uint64_t address, void **context);
bool vr_raw_next_postponed(struct vram_allocator *allocator, uint32_t device, size_t *at, struct vr_raw_block *block);
// A copy of the device's blocks, of one pool or (only NULL) of all, by ascending address, which the caller frees. Under the device's locks.
// NO_HOST_MEMORY.
enum vram_status vr_raw_copy(const struct vr_device *device, const struct vram_pool *only, struct vr_raw_block **blocks, size_t *count);
// What the device's blocks of the driver's pool add up to. Blocks of other devices move in the table meanwhile, so it counts under the
// table's lock.
struct vr_raw_sums {
    int64_t count, bytes; // that the client has
    int64_t postponed;
    int64_t requested; // bytes of both
};
void vr_raw_sum(const struct vr_device *device, struct vr_raw_sums *sums);
// The block that contains the address, whoever it belongs to. False where there is none.
bool vr_raw_find_containing(struct vram_allocator *allocator, uint64_t address, struct vr_raw_block *block);

// --- caching off: raw.c --------------------------------------------------------------------------------------------------------

enum vram_status vr_raw_malloc(struct vr_device *device, uint64_t size_bytes, uint64_t stream, uint64_t *address);
// INVALID_POINTER when the address is not a raw block.
enum vram_status vr_raw_free(struct vram_allocator *allocator, uint64_t address);
// Frees all of them.
void vr_raw_release(struct vram_allocator *allocator);

#endif
