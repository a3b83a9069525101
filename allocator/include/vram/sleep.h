// vram/sleep.h: puts memory to sleep: the physical memory returns to the driver, the addresses stay.
//
// A sleeping pool has given away the physical memory behind its blocks, for another model or another process. The blocks, their addresses,
// and graphs that know them stay valid. vram_wake() puts memory behind the same addresses again. While a pool sleeps, its blocks may be
// freed but not read or written: to a GPU their addresses are illegal. Pools are selected by handle or by tag (struct vram_pool_options,
// vram_pool_set_tag()).
//
// Only segments made of pages can sleep: those of pools with a tag, and of any pool under sleepable:True, expandable_segments:True or
// paged:True. A pool with other memory refuses to sleep, with a message, and so does one whose memory another process may have
// (vram/share.h).
//
// A pool that lent a live block to a request of the default pools (use_on_oom, share_live_pools) sleeps only while the default pools do, at
// the same level: the code that asked for the block does not know whose memory it is. The pool wakes with them.
#ifndef VRAM_SLEEP_H
#define VRAM_SLEEP_H

#include "vram/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { VRAM_TAG_BYTES = 64 }; // length of a tag, with its NUL

// Treatment of the contents of live blocks.
enum vram_sleep_level {
    VRAM_SLEEP_KEEP,    // saved in pinned host memory and restored
    VRAM_SLEEP_DISCARD, // lost; undefined after waking
    VRAM_SLEEP_ZERO,    // lost; zeros after waking
};

// Which pools, and how. A zeroed struct means every pool of the device that no earlier choice names, including the default pools, with
// their contents kept.
struct vram_sleep_choice {
    const char *tag;        // pools with this tag; NULL: see `pool`
    struct vram_pool *pool; // this pool; NULL, with tag NULL: all
    bool default_pools;     // with both NULL: only the default pools
    enum vram_sleep_level level;
    bool wakes; // a request to a sleeping pool wakes it; if false, the request returns ASLEEP
};

// The result of a call. All zeros on failure.
struct vram_sleep_result {
    uint32_t pools;        // number of pools that fell asleep or woke
    uint64_t bytes;        // device memory returned to the driver, or obtained from it
    uint64_t copied_bytes; // to or from the host
    uint64_t held_bytes;   // bytes that the driver did not take back, although their pools sleep
};

// Puts the chosen pools of the device to sleep. The first choice that names a pool applies; a pool already asleep stays as it is. Waits for
// all work of the device, and first returns the free memory of these pools (but all memory of a pool that a graph uses is kept). On
// failure, no pool that was awake sleeps. choices NULL (count 0): one zeroed choice. UNSUPPORTED with a message for memory that cannot
// sleep; INVALID_ARGUMENT for an unknown tag, a pool of another device, an invalid level, and during a capture; NO_HOST_MEMORY, also if
// pinned memory runs out; DRIVER. result and error may be NULL here and below.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_sleep(struct vram_allocator *allocator, uint32_t device,
                                                                      const struct vram_sleep_choice *choices, size_t count,
                                                                      struct vram_sleep_result *result, struct vram_error *error);
// Wakes the chosen sleeping pools of the device at the same addresses; waking the default pools also wakes pools that lent them a live
// block. Levels are ignored. Pages without live blocks are not made again, and if memory is short, free memory of other pools is returned
// first. On failure all pools still sleep and can be woken later. OUT_OF_MEMORY with a message; otherwise statuses of vram_sleep(). The
// pinned memory that kept the contents stays for the next sleep; vram_empty_cache() returns it.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_wake(struct vram_allocator *allocator, uint32_t device,
                                                                     const struct vram_sleep_choice *choices, size_t count,
                                                                     struct vram_sleep_result *result, struct vram_error *error);

// A sleeping pool.
struct vram_sleeper {
    struct vram_pool_id pool; // (0, 0): the default pools
    char tag[VRAM_TAG_BYTES]; // "": none
    enum vram_sleep_level level;
    bool wakes;
    uint64_t live_bytes; // live blocks
    uint64_t away_bytes; // device memory that it will need
    uint64_t host_bytes; // pinned memory that keeps its contents
};
// Writes the device's sleeping pools into sleepers[0, capacity), newest first; *count is their number, which may exceed capacity, or 0 for
// a device never used. INVALID_ARGUMENT.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_sleepers(struct vram_allocator *allocator, uint32_t device,
                                                                         struct vram_sleeper *sleepers, size_t capacity, size_t *count);

// Copies [address, address + size_bytes) of a sleeping pool from the pinned memory that keeps it: reads a model's weights without a device.
// Nothing wakes. INVALID_POINTER if these bytes are not kept.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_sleep_read(struct vram_allocator *allocator, uint64_t address,
                                                                           uint64_t size_bytes, void *to);

// Names the pool for vram_sleep(), replacing an earlier tag; its later segments are made of pages. Several pools may share a tag. NULL and
// "" remove it. INVALID_ARGUMENT beyond 63 characters.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_pool_set_tag(struct vram_pool *pool, const char *tag);
// Copies the pool's tag, "" without one. Always NUL-terminated; returns the full length, without the NUL.
VRAM_API VRAM_EXPERIMENTAL size_t vram_pool_tag(const struct vram_pool *pool, char *tag, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
