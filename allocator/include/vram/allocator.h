// vram/allocator.h: the caching allocator.
//
// Memory is asked for on a stream and comes back to that stream's cache when it is freed; a block is never used for another
// stream. Device addresses, sizes and stream handles are uint64_t. VRAM_STREAM() converts a CUstream or cudaStream_t, VRAM_POINTER() and
// VRAM_ADDRESS() a device address.
// Stream 0 is the legacy default stream. All functions may be called from any thread at any time unless they say otherwise;
// an allocator must not be destroyed while a call on it is under way. Nothing here prints, exits or throws.
//
// In every header of vram a pointer that is NULL where nothing is said about it is INVALID_ARGUMENT (with a sentence, where the function
// takes a struct vram_error), or 0, false, NULL or nothing from a function that returns no status; nothing is touched then. An array may be
// NULL where its count is 0, a buffer for text where its capacity is 0. Only vram_malloc() and vram_free(), where every instruction counts,
// look at no pointer. Handles that were destroyed are undefined. What can be told from the arguments alone (devices, addresses, sizes,
// words) is always checked. With vram_destroy() end the pools, routes, captures and imports of the allocator; graphs, workspaces and caches
// of plans made on it are to be destroyed before. After fork() the child must not use the parent's allocators, not even to destroy them:
// CUDA does not work there, and a lock may be held for ever by a thread that the child has not.
#ifndef VRAM_ALLOCATOR_H
#define VRAM_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/driver.h"
#include "vram/options.h"
#include "vram/stats.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VRAM_STREAM(handle) ((uint64_t)(uintptr_t)(handle))
// A device address as the pointer that CUDA's calls take, and back.
#define VRAM_POINTER(address) ((void *)(uintptr_t)(address))
#define VRAM_ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))
#define VRAM_MAX_DEVICES      64

struct vram_allocator;

// Which of the free blocks of equal size is taken: as the option `pytorch` says, by default that of the oldest segment (PyTorch since
// 2.13); or, whatever the option says, that of the oldest segment, or the one at the lowest address (PyTorch before).
enum vram_tie_break { VRAM_TIE_AS_PYTORCH, VRAM_TIE_OLDEST_SEGMENT, VRAM_TIE_LOWEST_ADDRESS };

// All-zero means every default.
struct vram_create_info {
    struct vram_driver *driver; // borrowed until vram_destroy(); NULL: vram_driver_system(), made and owned by the allocator
    const char *conf;           // option string; NULL: the first of VRAM_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF, PYTORCH_ALLOC_CONF
    enum vram_tie_break tie_break;
    bool ignore_environment; // with conf == NULL: use the defaults instead of the environment
};

// Makes an allocator; devices are set up at their first use. info may be NULL. *allocator is given to the caller: vram_destroy().
// BAD_OPTION (with the position in the option string), NO_DRIVER, DRIVER, NO_HOST_MEMORY. *error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_create(const struct vram_create_info *info, struct vram_allocator **allocator,
                                                     struct vram_error *error);
// Waits for pending frees, returns all memory to the driver, also of blocks that were never freed, and frees the allocator. NULL is
// ignored.
VRAM_API void vram_destroy(struct vram_allocator *allocator);

// --- memory ---------------------------------------------------------------------------------------------------------
// Gives size_bytes on `device` for use on `stream`; *address is a multiple of 512. 0 bytes give address 0 and change nothing.
// OUT_OF_MEMORY after the cache was released and the request tried again (vram_last_oom() has the report), REJECTED,
// INVALID_ARGUMENT for a device the driver has not, DRIVER for any other driver failure; LIMIT beyond 8,192 streams of a device, those of
// each pool counted; ASLEEP (vram/sleep.h); NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_malloc(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes,
                                                     uint64_t stream, uint64_t *address);
// Takes a block back; work already queued on its own stream may still use it. Address 0 is ignored. INVALID_POINTER for an address that is
// not a live block of this allocator (also for a second free); DRIVER, NO_HOST_MEMORY when it cannot be told when other streams that used
// the block have passed, or the driver does not take back what it gave out itself (caching off, backend:cudaMallocAsync). Nothing changes
// then: the block stays live. The status may be ignored, as where a program cleans up.
VRAM_API enum vram_status vram_free(struct vram_allocator *allocator, uint64_t address);
// Declares that a live block is also used on `stream`: after its free it is not given out again until work queued on that stream
// by then has finished. The block's own stream and address 0 are ignored. INVALID_POINTER as for vram_free(); DRIVER for a stream that the
// driver does not know (where it has several devices); LIMIT, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_record_stream(struct vram_allocator *allocator, uint64_t address, uint64_t stream);
// Waits for pending frees and returns every cached segment (and every unused page of expandable segments) of all devices; while a capture
// is under way only those of pools that nobody references. DRIVER when the driver refuses a part: the rest goes back all the same, and the
// part is offered again later. NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_empty_cache(struct vram_allocator *allocator);
// The same for one device; INVALID_ARGUMENT for one that the driver has not.
VRAM_API VRAM_NODISCARD enum vram_status vram_empty_cache_device(struct vram_allocator *allocator, uint32_t device);

// PyTorch's identity of a pool: (n, 0) made for a graph, (0, n) made by a user, (0, 0) the default pools. See vram/pool.h.
struct vram_pool_id {
    uint64_t first;
    uint64_t second;
};

// --- questions about an address ---------------------------------------------------------------------------------------
struct vram_block_info {
    uint64_t address;         // of the block
    uint64_t size_bytes;      // what the block really has
    uint64_t requested_bytes; // what was asked for
    uint64_t segment_address; // base of the segment (of the whole reservation, for an expandable one)
    uint64_t segment_bytes;   // mapped bytes of it
    uint64_t stream;          // the block's own stream
    uint32_t device;
    bool expandable;
    struct vram_pool_id pool; // (0, 0): a default pool
};
// Facts about a live block, by its first address. INVALID_POINTER otherwise.
VRAM_API VRAM_NODISCARD enum vram_status vram_get_block_info(struct vram_allocator *allocator, uint64_t address,
                                                             struct vram_block_info *info);
// The size of a live block (at least what was asked for), 0 for anything else.
VRAM_API uint64_t vram_allocated_size(struct vram_allocator *allocator, uint64_t address);
// Finds the live block that contains `address` (any byte of it). INVALID_POINTER when none does. Takes all locks of each device: not for
// hot paths.
VRAM_API VRAM_NODISCARD enum vram_status vram_find_block(struct vram_allocator *allocator, uint64_t address, struct vram_block_info *info);

// Whether the live block that starts at `address` lies in an expandable segment: under the device's short lock, for hot paths. False for
// anything else.
VRAM_API bool vram_is_expandable(struct vram_allocator *allocator, uint64_t address);
// An expandable segment: a range of address space of one stream that grows by mapping pages.
struct vram_expandable_segment {
    uint64_t stream;
    uint64_t address;
    uint64_t reserved_bytes; // address space
    uint64_t mapped_bytes;   // that memory stands behind
    bool small_pool;
};
// Writes the device's expandable segments by ascending address into segments[0, capacity); *count is how many there are, which may be more.
// Takes the device's own lock, not those of its streams. INVALID_ARGUMENT.
VRAM_API VRAM_NODISCARD enum vram_status vram_expandable_segments(struct vram_allocator *allocator, uint32_t device,
                                                                  struct vram_expandable_segment *segments, size_t capacity, size_t *count);
// What the cache of a device has.
struct vram_cache_info {
    uint64_t cached_bytes;       // in free blocks of all pools
    uint64_t largest_free_bytes; // the largest of these blocks
    uint64_t free_blocks;
};
// All zeros for a device never used. INVALID_ARGUMENT.
VRAM_API VRAM_NODISCARD enum vram_status vram_get_cache_info(struct vram_allocator *allocator, uint32_t device,
                                                             struct vram_cache_info *info);

// --- settings -----------------------------------------------------------------------------------------------------------
// Reads an option string as PyTorch does at run time (some options reset, some only apply to later segments). conf: NULL is "". BAD_OPTION
// and NO_HOST_MEMORY change nothing. error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_configure(struct vram_allocator *allocator, const char *conf, struct vram_error *error);
// Changes one option and keeps all others: an option string's key and value ("max_split_size_mb", "128"); value NULL is its default.
// BAD_OPTION (an unknown key, a value that it does not take, one that contradicts another option, or an option that is fixed when the
// allocator is made), LIMIT and NO_HOST_MEMORY change nothing; characters are counted in "key:value". error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_set_option(struct vram_allocator *allocator, const char *key, const char *value,
                                                         struct vram_error *error);
// The last option string that was accepted; after vram_set_option(), one with every option that is not at its default. Copied, always
// NUL-terminated; returns the length it wanted, without the NUL.
VRAM_API size_t vram_configuration(struct vram_allocator *allocator, char *text, size_t capacity);
// Calls visit for every option there is, as vram_options_list() does, with its value in force: what earlier strings set and later ones
// keep, too.
VRAM_API VRAM_NODISCARD enum vram_status vram_options_in_force(struct vram_allocator *allocator, vram_option_visitor visit, void *user);
// Limits the bytes this allocator may hold on `device` to fraction (0 to 1) of its memory, rounded to the nearest byte; 1 = no limit.
// INVALID_ARGUMENT for another fraction or a device that the driver has not; DRIVER, NO_HOST_MEMORY when the device cannot be set up.
VRAM_API VRAM_NODISCARD enum vram_status vram_set_memory_fraction(struct vram_allocator *allocator, uint32_t device, double fraction);
VRAM_API VRAM_NODISCARD enum vram_status vram_memory_fraction(struct vram_allocator *allocator, uint32_t device, double *fraction);
// The same limit in bytes; UINT64_MAX = no limit. Statuses as above.
VRAM_API VRAM_NODISCARD enum vram_status vram_set_memory_limit(struct vram_allocator *allocator, uint32_t device, uint64_t limit_bytes);
// Names the class of a stream (of any device) for the option expandable_segments_reserve_by_class: it decides how much address space later
// expandable segments of the stream reserve. NULL and "" take the name back. INVALID_ARGUMENT beyond 31 characters; NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_set_stream_class(struct vram_allocator *allocator, uint64_t stream, const char *name);
// false: every later vram_malloc goes straight to the driver; blocks remember how they were made. Starts as true unless
// VRAM_NO_CACHING or PYTORCH_NO_CUDA_MEMORY_CACHING is set to 1.
VRAM_API void vram_set_caching(struct vram_allocator *allocator, bool enabled);
VRAM_API bool vram_caching(struct vram_allocator *allocator);

// --- statistics -----------------------------------------------------------------------------------------------------------
// A consistent picture of one device's counters. A device never used has all zeros, and max_split_size -1. INVALID_ARGUMENT here and in
// both resets for a device that the driver has not.
VRAM_API VRAM_NODISCARD enum vram_status vram_get_stats(struct vram_allocator *allocator, uint32_t device, struct vram_stats *stats);
VRAM_API VRAM_NODISCARD enum vram_status vram_reset_peak_stats(struct vram_allocator *allocator, uint32_t device);
VRAM_API VRAM_NODISCARD enum vram_status vram_reset_accumulated_stats(struct vram_allocator *allocator, uint32_t device);
// Driver's free and total bytes of the device. INVALID_ARGUMENT, DRIVER, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_memory_info(struct vram_allocator *allocator, uint32_t device, uint64_t *free_bytes,
                                                          uint64_t *total_bytes);
VRAM_API VRAM_NODISCARD enum vram_status vram_device_count(struct vram_allocator *allocator, uint32_t *count);

// --- when memory runs out ---------------------------------------------------------------------------------------------------
// Why a request failed. All bytes, at the moment of the failure.
struct vram_oom {
    uint32_t device;
    uint64_t stream;
    uint64_t requested_bytes; // what the caller asked for
    uint64_t rounded_bytes;   // after rounding: what a block would have had
    uint64_t segment_bytes;   // what the driver would have been asked for
    uint64_t device_total_bytes;
    uint64_t device_free_bytes;  // by the driver
    uint64_t limit_bytes;        // UINT64_MAX: none
    uint64_t allocated_bytes;    // in live blocks
    uint64_t reserved_bytes;     // held from the driver
    uint64_t pending_bytes;      // freed, waiting for other streams
    uint64_t cached_bytes;       // free blocks of all streams and pools
    uint64_t largest_free_bytes; // largest free block the request could have used (same stream and pool), 0 if none
    uint64_t other_stream_bytes; // free bytes that belong to other streams
    uint64_t other_pool_bytes;   // free bytes of the same stream in the other size class
    uint64_t private_pool_bytes; // free bytes of pools other than the request's (vram/pool.h)
    uint64_t asleep_bytes;       // of `allocated_bytes`, in pools that sleep: no memory is behind them (vram/sleep.h)
    bool rejected;               // refused before any driver call (REJECTED), not OUT_OF_MEMORY
    bool limit_hit;              // the limit, not the device, refused
};
// The calling thread's last failure on any allocator; false if there was none.
VRAM_API bool vram_last_oom(struct vram_oom *oom);
// The report as one paragraph for people. Always NUL-terminated; returns the length it wanted, without the NUL.
VRAM_API size_t vram_oom_text(const struct vram_oom *oom, char *text, size_t capacity);
// Called on the failing thread, without any lock, in the order of attachment; may call the allocator, also to take itself out. What fails
// inside of one is told to none. Adding: INVALID_ARGUMENT for NULL, NO_HOST_MEMORY. Removing: INVALID_ARGUMENT for a pair that is not
// there; one that is being called on another thread is not waited for.
typedef void (*vram_oom_observer)(const struct vram_oom *oom, void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_add_oom_observer(struct vram_allocator *allocator, vram_oom_observer observer, void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_remove_oom_observer(struct vram_allocator *allocator, vram_oom_observer observer, void *user);
// Called without any lock whenever no cached block fits, before new memory is asked for: frees what it can through vram_free() and
// returns whether it did. A request made inside of one is served without callbacks. At most 16: LIMIT. Statuses and removal as above.
typedef bool (*vram_free_callback)(uint32_t device, uint64_t size_bytes, void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_add_free_callback(struct vram_allocator *allocator, vram_free_callback callback, void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_remove_free_callback(struct vram_allocator *allocator, vram_free_callback callback,
                                                                   void *user);

// --- walking ---------------------------------------------------------------------------------------------------------------
enum vram_block_state { VRAM_BLOCK_FREE, VRAM_BLOCK_ALLOCATED, VRAM_BLOCK_PENDING };
// One block of the picture, in address order; segments are told apart by segment_address and holes between mapped ranges.
struct vram_block_view {
    struct vram_block_info block; // requested_bytes is 0 for a free block
    enum vram_block_state state;
    bool small_pool;
    uint32_t age;            // searches since the block became free last, while garbage collection is on
    uint64_t segment_number; // segments of the process in the order they were made
    void *context;         // of an event listener's (vram/events.h), where the block was handed out; NULL: unknown. Borrowed for the visit
    void *segment_context; // where its segment was made
};
// Calls visit for every mapped block of the device in ascending address order (one that the driver gave out itself is a segment of its
// own), on a copy made under the locks; stops when it returns false. INVALID_ARGUMENT, NO_HOST_MEMORY.
typedef bool (*vram_block_visitor)(const struct vram_block_view *view, void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_walk(struct vram_allocator *allocator, uint32_t device, vram_block_visitor visit, void *user);
// Verifies every invariant of the allocator's state; for tests and debugging. MISMATCH with the first broken one in *error.
VRAM_API VRAM_NODISCARD enum vram_status vram_check(struct vram_allocator *allocator, struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
