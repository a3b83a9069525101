// vram/allocator.h: the caching allocator.
//
// Memory is requested on a stream. A freed block returns to the cache of its own stream and is never reused for another stream. Device
// addresses, sizes and stream handles are uint64_t: VRAM_STREAM() converts a CUstream or cudaStream_t; VRAM_POINTER() and VRAM_ADDRESS()
// convert a device address. Stream 0 is the legacy default stream.
//
// All functions may be called from any thread at any time unless they say otherwise. An allocator must not be destroyed while a call on it
// is in progress. Nothing here prints, exits or throws, unless the option verify is set (vram/verify.h).
//
// In every header of vram, a NULL pointer that the comment does not allow is an INVALID_ARGUMENT (with a message, where the function takes
// a struct vram_error). A function that returns no status then returns 0, false, NULL or nothing. Nothing else is touched. An array may be
// NULL if its count is 0, a text buffer if its capacity is 0. Only vram_malloc() and vram_free(), where every instruction counts, check no
// pointer. Devices, addresses, sizes and words are always checked, as far as the arguments alone allow. Using a destroyed handle is
// undefined behavior.
//
// vram_destroy() ends the allocator's pools, routes, captures and imports. Destroy graphs, workspaces and plan caches made on it first.
// After fork() the child must not use the parent's allocators, not even to destroy them: CUDA does not work there, and a lock may be held
// forever by a thread that the child does not have.
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
// Convert a device address to the pointer that CUDA's calls take, and back.
#define VRAM_POINTER(address) ((void *)(uintptr_t)(address))
#define VRAM_ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))
#define VRAM_MAX_DEVICES      64

struct vram_allocator;

// Which of several free blocks of equal size is reused: the one that the option `pytorch` implies (by default the one in the oldest
// segment, as in PyTorch since 2.13); or, regardless of the option, the one in the oldest segment, or the one at the lowest address
// (PyTorch before 2.13).
enum vram_tie_break { VRAM_TIE_AS_PYTORCH, VRAM_TIE_OLDEST_SEGMENT, VRAM_TIE_LOWEST_ADDRESS };

// A zeroed struct means every default.
struct vram_create_info {
    struct vram_driver *driver; // borrowed until vram_destroy(); NULL: vram_driver_system(), created and owned by the allocator
    const char *conf;           // option string; NULL: the first of VRAM_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF, PYTORCH_ALLOC_CONF
    enum vram_tie_break tie_break;
    bool ignore_environment; // with conf == NULL: use the defaults instead of the environment
};

// Creates an allocator; devices are set up at their first use. info may be NULL. The caller owns *allocator and ends it with
// vram_destroy(). BAD_OPTION (with the position in the option string), NO_DRIVER, DRIVER, NO_HOST_MEMORY. *error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_create(const struct vram_create_info *info, struct vram_allocator **allocator,
                                                     struct vram_error *error);
// Waits for pending frees, returns all memory to the driver, including blocks that were never freed, and frees the allocator. NULL is
// ignored.
VRAM_API void vram_destroy(struct vram_allocator *allocator);

// --- memory ---------------------------------------------------------------------------------------------------------
// Allocates size_bytes on `device` for use on `stream`; *address is a multiple of 512. 0 bytes give address 0 and change nothing.
// OUT_OF_MEMORY if the request still fails after the cache was released (vram_last_oom() has the report); REJECTED; INVALID_ARGUMENT for a
// device that does not exist; DRIVER for any other driver failure; LIMIT beyond 8,192 streams of a device, counting those of each pool;
// ASLEEP (vram/sleep.h); NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_malloc(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes,
                                                     uint64_t stream, uint64_t *address);
// Frees a block; work already queued on its own stream may still use it. Address 0 is ignored. INVALID_POINTER for an address that is not a
// live block of this allocator (including a second free). DRIVER or NO_HOST_MEMORY if the progress of other streams that used the block
// cannot be determined, or if the driver does not take back a block it handed out itself (caching off, backend:cudaMallocAsync). On failure
// nothing changes: the block stays live. Cleanup code may ignore the status.
VRAM_API enum vram_status vram_free(struct vram_allocator *allocator, uint64_t address);
// Declares that a live block is also used on `stream`: once freed, it is not reused until the work queued on that stream by then has
// finished. The block's own stream and address 0 are ignored. INVALID_POINTER as for vram_free(); DRIVER for a stream that the driver does
// not know (if it has several devices); LIMIT; NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_record_stream(struct vram_allocator *allocator, uint64_t address, uint64_t stream);
// Waits for pending frees and returns every cached segment (and every unused page of expandable segments) of all devices; during a capture,
// only those of pools without references. DRIVER if the driver refuses a part: the rest is still returned, and the part is offered again
// later. NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_empty_cache(struct vram_allocator *allocator);
// vram_empty_cache() for one device. INVALID_ARGUMENT for a device that does not exist.
VRAM_API VRAM_NODISCARD enum vram_status vram_empty_cache_device(struct vram_allocator *allocator, uint32_t device);

// PyTorch's identity of a pool: (n, 0) is made for a graph, (0, n) by a user; (0, 0) means the default pools. See vram/pool.h.
struct vram_pool_id {
    uint64_t first;
    uint64_t second;
};

// --- questions about an address ---------------------------------------------------------------------------------------
struct vram_block_info {
    uint64_t address;         // of the block
    uint64_t size_bytes;      // of the block: at least the requested bytes; exactly as many with verify:True
    uint64_t requested_bytes; // as the caller asked
    uint64_t segment_address; // base of the segment (of the whole reservation, if it is expandable)
    uint64_t segment_bytes;   // mapped bytes of the segment
    uint64_t stream;          // the block's own stream
    uint32_t device;
    bool expandable;
    struct vram_pool_id pool; // (0, 0): a default pool
};
// Describes the live block that starts at `address`. INVALID_POINTER otherwise.
VRAM_API VRAM_NODISCARD enum vram_status vram_get_block_info(struct vram_allocator *allocator, uint64_t address,
                                                             struct vram_block_info *info);
// Returns the size of a live block: at least the requested bytes (exactly as many with verify:True); 0 for anything else.
VRAM_API uint64_t vram_allocated_size(struct vram_allocator *allocator, uint64_t address);
// Finds the live block that contains `address` (any byte of it). INVALID_POINTER if none exists. Takes all locks of each device: not for
// hot paths.
VRAM_API VRAM_NODISCARD enum vram_status vram_find_block(struct vram_allocator *allocator, uint64_t address, struct vram_block_info *info);

// Returns whether the live block that starts at `address` is in an expandable segment; false for anything else. Takes only the device's
// short lock, so it suits hot paths.
VRAM_API bool vram_is_expandable(struct vram_allocator *allocator, uint64_t address);
// An expandable segment: an address range of one stream that grows by mapping pages.
struct vram_expandable_segment {
    uint64_t stream;
    uint64_t address;
    uint64_t reserved_bytes; // address space
    uint64_t mapped_bytes;   // of it, backed by memory
    bool small_pool;
};
// Writes the device's expandable segments by ascending address into segments[0, capacity); *count is their number, which may exceed
// capacity. Takes the device's own lock, not those of its streams. INVALID_ARGUMENT.
VRAM_API VRAM_NODISCARD enum vram_status vram_expandable_segments(struct vram_allocator *allocator, uint32_t device,
                                                                  struct vram_expandable_segment *segments, size_t capacity, size_t *count);
// The contents of a device's cache.
struct vram_cache_info {
    uint64_t cached_bytes;       // in free blocks of all pools
    uint64_t largest_free_bytes; // the largest of these blocks
    uint64_t free_blocks;
};
// Returns all zeros for a device never used. INVALID_ARGUMENT.
VRAM_API VRAM_NODISCARD enum vram_status vram_get_cache_info(struct vram_allocator *allocator, uint32_t device,
                                                             struct vram_cache_info *info);

// --- settings -----------------------------------------------------------------------------------------------------------
// Reads an option string as PyTorch does at run time (some options are reset, some apply only to later segments). conf: NULL is "".
// BAD_OPTION and NO_HOST_MEMORY change nothing. error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_configure(struct vram_allocator *allocator, const char *conf, struct vram_error *error);
// Changes one option and keeps all others. Takes a key and a value as in an option string ("max_split_size_mb", "128"); value NULL means
// the default. BAD_OPTION (an unknown key, a value it does not take, a value that contradicts another option, or an option fixed at
// creation), LIMIT and NO_HOST_MEMORY change nothing; error offsets count characters of "key:value". error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_set_option(struct vram_allocator *allocator, const char *key, const char *value,
                                                         struct vram_error *error);
// Copies the last option string that was accepted; after vram_set_option(), a string of every option that is not at its default. Always
// NUL-terminated; returns the full length, without the NUL.
VRAM_API size_t vram_configuration(struct vram_allocator *allocator, char *text, size_t capacity);
// Calls visit for every option, as vram_options_list() does, with the value in force, including values set by earlier strings and kept by
// later ones.
VRAM_API VRAM_NODISCARD enum vram_status vram_options_in_force(struct vram_allocator *allocator, vram_option_visitor visit, void *user);
// Limits the bytes that this allocator may hold on `device` to fraction (0 to 1) of the device's memory, rounded to the nearest byte; 1 =
// no limit. INVALID_ARGUMENT for another fraction or a device that does not exist; DRIVER, NO_HOST_MEMORY if the device cannot be set up.
VRAM_API VRAM_NODISCARD enum vram_status vram_set_memory_fraction(struct vram_allocator *allocator, uint32_t device, double fraction);
VRAM_API VRAM_NODISCARD enum vram_status vram_memory_fraction(struct vram_allocator *allocator, uint32_t device, double *fraction);
// Sets the same limit in bytes; UINT64_MAX = no limit. Statuses as above.
VRAM_API VRAM_NODISCARD enum vram_status vram_set_memory_limit(struct vram_allocator *allocator, uint32_t device, uint64_t limit_bytes);
// Names the class of a stream (of any device) for the option expandable_segments_reserve_by_class, which sets how much address space later
// expandable segments of the stream reserve. NULL and "" remove the name. INVALID_ARGUMENT beyond 31 characters; NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_set_stream_class(struct vram_allocator *allocator, uint64_t stream, const char *name);
// Turns caching on or off. Without it, every later vram_malloc() goes straight to the driver; existing blocks are freed the way they were
// made. Caching starts on unless VRAM_NO_CACHING or PYTORCH_NO_CUDA_MEMORY_CACHING is set to 1.
VRAM_API void vram_set_caching(struct vram_allocator *allocator, bool enabled);
VRAM_API bool vram_caching(struct vram_allocator *allocator);

// --- statistics -----------------------------------------------------------------------------------------------------------
// Copies one device's counters, consistently. A device never used has all zeros, and max_split_size -1. This function and both resets
// return INVALID_ARGUMENT for a device that does not exist.
VRAM_API VRAM_NODISCARD enum vram_status vram_get_stats(struct vram_allocator *allocator, uint32_t device, struct vram_stats *stats);
VRAM_API VRAM_NODISCARD enum vram_status vram_reset_peak_stats(struct vram_allocator *allocator, uint32_t device);
VRAM_API VRAM_NODISCARD enum vram_status vram_reset_accumulated_stats(struct vram_allocator *allocator, uint32_t device);
// Gets the driver's free and total bytes of the device. INVALID_ARGUMENT, DRIVER, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_memory_info(struct vram_allocator *allocator, uint32_t device, uint64_t *free_bytes,
                                                          uint64_t *total_bytes);
VRAM_API VRAM_NODISCARD enum vram_status vram_device_count(struct vram_allocator *allocator, uint32_t *count);

// --- when memory runs out ---------------------------------------------------------------------------------------------------
// The cause of a failed request. All figures are bytes at the moment of the failure.
struct vram_oom {
    uint32_t device;
    uint64_t stream;
    uint64_t requested_bytes; // as the caller asked
    uint64_t rounded_bytes;   // after rounding: the size the block would have had
    uint64_t segment_bytes;   // the size the driver would have been asked for
    uint64_t device_total_bytes;
    uint64_t device_free_bytes;  // according to the driver
    uint64_t limit_bytes;        // UINT64_MAX: no limit
    uint64_t allocated_bytes;    // in live blocks
    uint64_t reserved_bytes;     // held from the driver
    uint64_t pending_bytes;      // freed, waiting for other streams
    uint64_t cached_bytes;       // free blocks of all streams and pools
    uint64_t largest_free_bytes; // largest free block that the request could have used (same stream and pool); 0: no such block
    uint64_t other_stream_bytes; // free bytes that belong to other streams
    uint64_t other_pool_bytes;   // free bytes of the same stream in the other size class
    uint64_t private_pool_bytes; // free bytes of pools other than the request's (vram/pool.h)
    uint64_t asleep_bytes;       // of `allocated_bytes`: bytes in sleeping pools, with no memory behind them (vram/sleep.h)
    bool rejected;               // refused before any driver call (REJECTED, not OUT_OF_MEMORY)
    bool limit_hit;              // the limit, not the device, refused
};
// Copies the calling thread's last failure on any allocator. Returns false if there was none.
VRAM_API bool vram_last_oom(struct vram_oom *oom);
// Writes the report as one paragraph for people. Always NUL-terminated; returns the full length, without the NUL.
VRAM_API size_t vram_oom_text(const struct vram_oom *oom, char *text, size_t capacity);
// Called on the failing thread, without any lock, in order of attachment. May call the allocator, even to remove itself; failures inside an
// observer are reported to no observer. Adding: INVALID_ARGUMENT for NULL, NO_HOST_MEMORY. Removing: INVALID_ARGUMENT for a pair that was
// not added; does not wait for a call that is running on another thread.
typedef void (*vram_oom_observer)(const struct vram_oom *oom, void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_add_oom_observer(struct vram_allocator *allocator, vram_oom_observer observer, void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_remove_oom_observer(struct vram_allocator *allocator, vram_oom_observer observer, void *user);
// Called without any lock whenever no cached block fits, before new memory is requested. Frees what it can through vram_free() and returns
// whether it freed anything. Requests made inside a callback are served without callbacks. At most 16: LIMIT. Statuses and removal as for
// observers.
typedef bool (*vram_free_callback)(uint32_t device, uint64_t size_bytes, void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_add_free_callback(struct vram_allocator *allocator, vram_free_callback callback, void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_remove_free_callback(struct vram_allocator *allocator, vram_free_callback callback,
                                                                   void *user);

// --- walking ---------------------------------------------------------------------------------------------------------------
enum vram_block_state { VRAM_BLOCK_FREE, VRAM_BLOCK_ALLOCATED, VRAM_BLOCK_PENDING };
// One block of the walk, in address order. A new segment begins where segment_address changes; unmapped ranges show as gaps.
struct vram_block_view {
    struct vram_block_info block; // requested_bytes is 0 for a free block
    enum vram_block_state state;
    bool small_pool;
    uint32_t age;            // searches since the block last became free, while garbage collection is on
    uint64_t segment_number; // order in which the process's segments were made
    void *context; // event listener's context (vram/events.h) of the call that allocated the block; NULL: unknown. Borrowed for the visit
    void *segment_context; // likewise, of the call that made its segment
};
// Calls visit for every mapped block of the device in ascending address order, on a copy made under the locks; stops when visit returns
// false. A block that the driver handed out itself is a segment of its own. INVALID_ARGUMENT, NO_HOST_MEMORY.
typedef bool (*vram_block_visitor)(const struct vram_block_view *view, void *user);
VRAM_API VRAM_NODISCARD enum vram_status vram_walk(struct vram_allocator *allocator, uint32_t device, vram_block_visitor visit, void *user);
// Verifies every invariant of the allocator's state; for tests and debugging. MISMATCH with the first broken invariant in *error.
VRAM_API VRAM_NODISCARD enum vram_status vram_check(struct vram_allocator *allocator, struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
