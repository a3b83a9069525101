// vram/host.h: a cache of pinned host memory.
//
// Pinning costs the driver a third of a second per GiB, so freed memory is kept for the next request. Memory belongs to no stream: a
// program declares with vram_host_record_stream() which streams use a block, and a freed block is reused once each of them has passed the
// point where it was freed. All functions may be called from any thread at any time unless they say otherwise. An allocator must not be
// destroyed while a call on it is in progress. Nothing here prints, exits or throws.
#ifndef VRAM_HOST_H
#define VRAM_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/driver.h"
#include "vram/pool.h"
#include "vram/stats.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_host;
struct vram_host_pool;

// A zeroed struct means every default.
struct vram_host_create_info {
    struct vram_driver *driver; // borrowed until vram_host_destroy(); NULL: vram_driver_system(), created and owned by the allocator
    const char *conf;           // option string; NULL: the first of VRAM_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF, PYTORCH_ALLOC_CONF
    uint32_t device;            // if the first caller has no current context, memory is pinned in this device's primary context
    bool ignore_environment;    // with conf == NULL: use the defaults instead of the environment
};

// Creates an allocator; the driver is first called at the first request. info may be NULL. The caller owns *host and ends it with
// vram_host_destroy(). BAD_OPTION (with the position in the option string), NO_DRIVER, DRIVER, NO_HOST_MEMORY. *error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_host_create(const struct vram_host_create_info *info, struct vram_host **host,
                                                          struct vram_error *error);
// Ends the background thread, waits for pending frees and returns all memory, including blocks that were never freed. Ends its pools,
// regardless of references. NULL is ignored.
VRAM_API void vram_host_destroy(struct vram_host *host);
// Reads an option string as PyTorch does at run time; memory already pinned stays as it is. conf: NULL is "". BAD_OPTION changes nothing.
// error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_host_configure(struct vram_host *host, const char *conf, struct vram_error *error);

// --- memory -----------------------------------------------------------------------------------------------------------------
// Allocates size_bytes of pinned memory that every device can reach, aligned for every C type. 0 bytes give NULL and change nothing.
// `stream` only routes the request (vram_host_pool_begin()): no stream uses the block until vram_host_record_stream() says so.
// OUT_OF_MEMORY if the request still fails after pending frees were awaited and the cache was released; DRIVER; NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_host_malloc(struct vram_host *host, uint64_t size_bytes, uint64_t stream, void **pointer);
// Frees a block; work that the recorded streams have been given so far may still use it. NULL is ignored. INVALID_POINTER if the pointer is
// not the first byte of a live block (including a second free): nothing changes. DRIVER if a fence cannot be set: the block stays live and
// may be freed again. DRIVER is also returned if the block is too large for the cache and the driver does not take it back: the block is
// still freed, and returned later. With pinned_free_catch_all neither is reported, and a missing fence is retried later. A block used in a
// capture is kept until its pool is released, because the graph contains its address. The status may be ignored.
VRAM_API enum vram_status vram_host_free(struct vram_host *host, void *pointer);
// Declares that a live block is used on `stream` (PyTorch's record_event). 0 is the legacy default stream of the calling thread's current
// context. A NULL pointer is ignored. INVALID_POINTER as for vram_host_free(); INVALID_ARGUMENT for the per-thread default stream (2),
// which differs from thread to thread; DRIVER; NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_host_record_stream(struct vram_host *host, void *pointer, uint64_t stream);
// Returns the cache's free memory to the driver: that of the default pool, and of private pools without references. Does not wait for
// streams. DRIVER if the driver refuses; the next call retries.
VRAM_API VRAM_NODISCARD enum vram_status vram_host_empty_cache(struct vram_host *host);

// --- questions ----------------------------------------------------------------------------------------------------------------
// The way a block was pinned.
enum vram_host_origin {
    VRAM_HOST_ALLOCATED,  // cuMemHostAlloc
    VRAM_HOST_REGISTERED, // ordinary memory and cuMemHostRegister
    VRAM_HOST_RESERVED,   // a piece of the reserve segment
};
struct vram_host_block_info {
    void *pointer;
    uint64_t size_bytes;      // of the block; at least the requested bytes
    uint64_t requested_bytes; // as the caller asked
    enum vram_host_origin origin;
    bool captured;            // used in a capture: kept after it is freed
    uint32_t streams;         // number of streams that use it
    struct vram_pool_id pool; // (0, 0): the default pool
};
// Describes the live block that starts at `pointer`. INVALID_POINTER otherwise.
VRAM_API VRAM_NODISCARD enum vram_status vram_get_host_block_info(struct vram_host *host, const void *pointer,
                                                                  struct vram_host_block_info *info);
// Returns the size of a live block (at least the requested bytes), or 0 for anything else.
VRAM_API uint64_t vram_host_allocated_size(struct vram_host *host, const void *pointer);
// Verifies every invariant of the allocator's state; for tests and debugging. MISMATCH with the first broken invariant in *error (may be
// NULL).
VRAM_API VRAM_NODISCARD enum vram_status vram_host_check(struct vram_host *host, struct vram_error *error);

// --- statistics -----------------------------------------------------------------------------------------------------------------
enum { VRAM_HOST_BUCKETS = 64 };

// Driver time; on the simulated driver, time of its virtual clock.
struct vram_host_time {
    uint64_t count;
    uint64_t total_ns;
    uint64_t min_ns; // 0 before the first call
    uint64_t max_ns;
};

// PyTorch's HostStats over all pools, as of one moment. PyTorch's num_host_alloc and num_host_free are allocations.allocated and .freed.
struct vram_host_stats {
    struct vram_stat active_requests; // blocks handed out and not yet reusable
    struct vram_stat active_bytes;    // of these blocks
    struct vram_stat requested_bytes; // requested in these blocks
    struct vram_stat allocations;     // blocks held: in use, waiting or cached
    struct vram_stat allocated_bytes; // of these blocks
    struct vram_host_time host_alloc_time;
    struct vram_host_time host_free_time;
    uint64_t bucket_allocation[VRAM_HOST_BUCKETS]; // blocks made, by the power of two that their size rounds up to
    uint64_t num_alloc_retries;                    // times the cache was released to satisfy a request
    uint64_t num_ooms;                             // requests that failed for lack of memory
    uint64_t pending_bytes;                        // freed, waiting for streams; active too
    uint64_t kept_bytes;                           // freed, but known to a captured graph; active too
    uint64_t reserve_bytes;                        // of the reserve segment; blocks in it are counted above
    uint64_t reserve_used_bytes;                   // cut from it so far
};
VRAM_API void vram_get_host_stats(struct vram_host *host, struct vram_host_stats *stats);
// Sets peaks to the current values.
VRAM_API void vram_host_reset_peak_stats(struct vram_host *host);
// Sets sums, times, buckets and counts to 0; current values and peaks stay.
VRAM_API void vram_host_reset_accumulated_stats(struct vram_host *host);
// Writes the names of torch.cuda.host_memory_stats ("allocated_bytes.current", times in microseconds) and vram's own, sorted, as one JSON
// object with a newline at the end. Always NUL-terminated; returns the full length, without the NUL; capacity 0 measures (text may then be
// NULL).
VRAM_API size_t vram_host_stats_json(const struct vram_host_stats *stats, char *text, size_t capacity);

// --- private pools --------------------------------------------------------------------------------------------------------------
// Memory kept apart for a CUDA graph or a user, in the terms of vram/pool.h. Blocks that a capture used are kept while their pool has
// references: release the pool when the graph will not be launched again. Its free memory then returns at the next vram_host_empty_cache()
// or retry.
struct vram_host_pool_options {
    bool for_graph; // its id is (n, 0)
};
// Creates a pool with one reference. options may be NULL. The caller owns the reference in *pool: vram_host_pool_release(). NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_host_pool_create(struct vram_host *host, const struct vram_host_pool_options *options,
                                                               struct vram_host_pool **pool);
// Add or drop one reference. After the last release the handle is invalid; live blocks of the pool stay valid until they are freed. Release
// ignores NULL.
VRAM_API void vram_host_pool_retain(struct vram_host_pool *pool);
VRAM_API void vram_host_pool_release(struct vram_host_pool *pool);
VRAM_API struct vram_pool_id vram_host_pool_id(const struct vram_host_pool *pool);
VRAM_API uint32_t vram_host_pool_references(struct vram_host_pool *pool);
// Opens a route into the pool and takes a reference. The newest route that accepts a request wins; a pool may have several.
// INVALID_ARGUMENT for an invalid kind, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_host_pool_begin(struct vram_host_pool *pool, const struct vram_route *route);
// Closes the newest route into the pool with the same kind and stream (VRAM_ROUTE_THREAD: of this thread) and drops its reference.
// INVALID_ARGUMENT if none exists.
VRAM_API VRAM_NODISCARD enum vram_status vram_host_pool_end(struct vram_host_pool *pool, const struct vram_route *route);
// vram_host_malloc() in this pool, regardless of routes.
VRAM_API VRAM_NODISCARD enum vram_status vram_host_pool_malloc(struct vram_host_pool *pool, uint64_t size_bytes, uint64_t stream,
                                                               void **pointer);
// Returns the pool's free blocks to the driver. Kept blocks stay. Returns the statuses of vram_host_empty_cache().
VRAM_API VRAM_NODISCARD enum vram_status vram_host_pool_empty_cache(struct vram_host_pool *pool);

struct vram_host_pool_stats {
    uint64_t blocks;          // held: in use, waiting or cached
    uint64_t allocated_bytes; // of these blocks
    uint64_t live_blocks;     // handed out and not freed
    uint64_t live_bytes;      // of these blocks
    uint64_t pending_bytes;   // freed, waiting for streams
    uint64_t kept_bytes;      // freed, but known to a captured graph
    uint64_t free_bytes;      // cached
};
// Visits every block of the allocator.
VRAM_API void vram_get_host_pool_stats(struct vram_host_pool *pool, struct vram_host_pool_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
