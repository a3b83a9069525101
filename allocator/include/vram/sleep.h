// vram/sleep.h: memory that sleeps: it goes back to the driver, its addresses stay.
//
// A pool that sleeps has given the physical memory behind its blocks away, for another model or another process; the blocks, their
// addresses, and graphs that know them stay what they are. vram_wake() puts memory behind the same addresses again. While a pool sleeps its
// blocks can be freed, and nothing may read or write them: that is an illegal address for a GPU. Pools are told apart by themselves or by
// their tags (struct vram_pool_options, vram_pool_set_tag()).
//
// Only segments made of pages can sleep: those of pools with a tag, and of any pool with sleepable:True, expandable_segments:True or
// paged:True. What was allocated otherwise refuses with a sentence, and so does memory that another process may have (vram/share.h).
//
// A pool that lent a live block to a request of the default pools (use_on_oom, share_live_pools) sleeps only while the default pools do, at
// the same level: the code that asked for the block does not know whose memory it is. It wakes when they wake.
#ifndef VRAM_SLEEP_H
#define VRAM_SLEEP_H

#include "vram/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { VRAM_TAG_BYTES = 64 }; // of a tag, with its NUL

// What becomes of the bytes of live blocks.
enum vram_sleep_level {
    VRAM_SLEEP_KEEP,    // they go to pinned host memory and come back
    VRAM_SLEEP_DISCARD, // they are lost: after waking they are anything
    VRAM_SLEEP_ZERO,    // they are lost: after waking they are zeros
};

// Which pools, and how. All-zero: every pool of the device that no choice before it names, the default pools among them, with its bytes.
struct vram_sleep_choice {
    const char *tag;        // the pools with this tag; NULL: `pool`
    struct vram_pool *pool; // this one; NULL, with tag NULL: all
    bool default_pools;     // with both NULL: the default pools alone
    enum vram_sleep_level level;
    bool wakes; // a request to a pool that sleeps wakes it; otherwise it is ASLEEP
};

// What a call did. All zeros where it failed.
struct vram_sleep_result {
    uint32_t pools;        // that fell asleep or woke
    uint64_t bytes;        // of device memory that went back to the driver, or came from it
    uint64_t copied_bytes; // to or from the host
    uint64_t held_bytes;   // that the driver would not take, although their pools sleep
};

// The device's pools that a choice names fall asleep: those of the first choice that names them; a pool that sleeps already stays as it is.
// Waits for all work of the device, and gives back what is free in these pools first (not of a pool that a graph knows: all of that is
// kept). Either all of them sleep afterwards, or none that was awake does. choices NULL (count 0): one of zeros. UNSUPPORTED with a
// sentence for memory that cannot sleep; INVALID_ARGUMENT for a tag that no pool has, a pool of another device, a level that is none, and
// during a capture; NO_HOST_MEMORY, also where pinned memory runs out; DRIVER. result and error may be NULL here and below.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_sleep(struct vram_allocator *allocator, uint32_t device,
                                                                      const struct vram_sleep_choice *choices, size_t count,
                                                                      struct vram_sleep_result *result, struct vram_error *error);
// Pinned memory that kept bytes is at hand for the next sleep when they have woken; vram_empty_cache() gives it back.
// The device's sleeping pools that a choice names wake, at the same addresses, and with the default pools those that lent them a live
// block; levels are not looked at. Pages that hold no live block any more are not made again, and where memory is short free memory of
// other pools goes back first. Either all of them are awake afterwards, or all sleep still, and can be woken later. OUT_OF_MEMORY with a
// sentence; otherwise as vram_sleep().
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_wake(struct vram_allocator *allocator, uint32_t device,
                                                                     const struct vram_sleep_choice *choices, size_t count,
                                                                     struct vram_sleep_result *result, struct vram_error *error);

// A pool that sleeps.
struct vram_sleeper {
    struct vram_pool_id pool; // (0, 0): the default pools
    char tag[VRAM_TAG_BYTES]; // "": none
    enum vram_sleep_level level;
    bool wakes;
    uint64_t live_bytes; // of its live blocks
    uint64_t away_bytes; // of device memory that it will need
    uint64_t host_bytes; // of pinned memory that keeps its bytes
};
// Writes those of the device into sleepers[0, capacity), the newest first; *count is how many there are, which may be more. A device never
// used has none. INVALID_ARGUMENT.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_sleepers(struct vram_allocator *allocator, uint32_t device,
                                                                         struct vram_sleeper *sleepers, size_t capacity, size_t *count);

// Copies [address, address + size_bytes) of what sleeps out of the pinned memory that keeps it: a look at a model's weights that needs no
// device. Nothing wakes. INVALID_POINTER where these bytes are not kept.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_sleep_read(struct vram_allocator *allocator, uint64_t address,
                                                                           uint64_t size_bytes, void *to);

// Names the pool for vram_sleep(), in place of a former tag; later segments of it are made of pages. Several pools may have one tag. NULL
// and "" take it back. INVALID_ARGUMENT beyond 63 characters.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_pool_set_tag(struct vram_pool *pool, const char *tag);
// Its tag, "" without one. Copied, always NUL-terminated; returns the length it wanted, without the NUL.
VRAM_API VRAM_EXPERIMENTAL size_t vram_pool_tag(const struct vram_pool *pool, char *tag, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
