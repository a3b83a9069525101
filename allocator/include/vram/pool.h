// vram/pool.h: private pools, and captures of CUDA graphs that allocate from them.
//
// A private pool is memory kept apart from the default pools of its device: for a CUDA graph, whose addresses must stay as captured, or for
// memory from functions of the user. Routes decide which pool a request goes to: vram_pool_begin() opens one, and the newest route that
// accepts the request wins. A pool lives until its last reference is released. Its free memory then returns to the driver, after a wait for
// its pending frees (for a graph's pool, or under the rules before PyTorch 2.6: at the next vram_empty_cache() or retry). The rest returns
// when its blocks are freed and the cache is emptied.
#ifndef VRAM_POOL_H
#define VRAM_POOL_H

#include "vram/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_pool;

// Functions that supply a pool's memory (ncclMemAlloc, a driver pool, ...). Called with segment sizes, under the device's locks and with
// its context current; must not call the allocator. allocate returns a multiple of 512, or 0 for "out of memory". Any other address is
// given back at once, and the request is UNSUPPORTED.
typedef uint64_t (*vram_pool_allocate)(uint64_t size_bytes, uint32_t device, uint64_t stream, void *user);
typedef void (*vram_pool_deallocate)(uint64_t address, uint64_t size_bytes, uint32_t device, uint64_t stream, void *user);

// A zeroed struct means every default.
struct vram_pool_options {
    vram_pool_allocate allocate;     // NULL: the driver, according to the options
    vram_pool_deallocate deallocate; // required with allocate
    void *user;
    bool for_graph;         // its id is (n, 0)
    bool use_on_oom;        // requests for the default pool may take this pool's cached blocks before they fail
    bool no_split;          // blocks are handed out whole
    bool keep_cache;        // the last release returns nothing; vram_empty_cache() and vram_empty_cache_pool() do so later
    const char *tag;        // name for vram_sleep() (vram/sleep.h), copied; makes its segments of pages; NULL: none
    struct vram_pool_id id; // for programs that number pools themselves; (0, 0): the next id
};

// Creates a pool with one reference. options may be NULL. The caller owns the reference in *pool: vram_pool_release(). INVALID_ARGUMENT,
// also for a tag beyond 63 characters and for an id that another pool of the device has (even one without references that still has
// memory); NO_HOST_MEMORY; DRIVER; UNSUPPORTED for its own functions with backend:cudaMallocAsync.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_create(struct vram_allocator *allocator, uint32_t device,
                                                          const struct vram_pool_options *options, struct vram_pool **pool);
// Add or drop one reference. After the last release the handle is invalid; live blocks of the pool stay valid until they are freed. Release
// ignores NULL. vram_destroy() ends all pools, regardless of references: do not release a pool afterwards.
VRAM_API void vram_pool_retain(struct vram_pool *pool);
VRAM_API void vram_pool_release(struct vram_pool *pool);
VRAM_API struct vram_pool_id vram_get_pool_id(const struct vram_pool *pool);
VRAM_API uint32_t vram_pool_references(const struct vram_pool *pool);
// Finds the referenced pool with this id and adds a reference, which the caller owns: vram_pool_release(). INVALID_ARGUMENT if the device
// does not have one.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_find(struct vram_allocator *allocator, uint32_t device, struct vram_pool_id id,
                                                        struct vram_pool **pool);
// Change the options of the same names from the next request on; blocks already handed out stay as they are. Any thread.
VRAM_API void vram_pool_set_use_on_oom(struct vram_pool *pool, bool use_on_oom);
VRAM_API void vram_pool_set_no_split(struct vram_pool *pool, bool no_split);

// Which requests a route sends into the pool.
enum vram_route_kind {
    VRAM_ROUTE_THREAD,  // requests of the thread that called vram_pool_begin()
    VRAM_ROUTE_STREAM,  // requests on `stream`
    VRAM_ROUTE_CAPTURE, // requests on `stream` and on every stream that takes part in the same capture
    VRAM_ROUTE_ALL,
    VRAM_ROUTE_FILTER, // requests whose stream `accepts` approves
};
// Called by the requesting thread, under the device's locks, with the request's stream; must not call the allocator.
typedef bool (*vram_route_filter)(uint64_t stream, void *user);
struct vram_route {
    enum vram_route_kind kind;
    uint64_t stream;
    vram_route_filter accepts; // VRAM_ROUTE_FILTER only; must stay valid until the route is closed
    void *user;                // passed to accepts
};
// Opens a route into the pool and takes a reference. A pool may have several routes. Any thread. INVALID_ARGUMENT for an invalid kind or a
// NULL filter, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_begin(struct vram_pool *pool, const struct vram_route *route);
// Closes the newest route into the pool with the same kind and stream (VRAM_ROUTE_THREAD: of this thread; VRAM_ROUTE_FILTER: with the same
// function and user) and drops its reference. INVALID_ARGUMENT if none exists. DRIVER and NO_HOST_MEMORY during a capture: the route is
// closed, and a later call settles the frees that the capture deferred.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_end(struct vram_pool *pool, const struct vram_route *route);
// vram_malloc() in this pool, regardless of routes. Free the block with vram_free(): a block knows its pool. Returns the statuses of
// vram_malloc().
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_malloc(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream, uint64_t *address);

// Returns the pool's fully free segments. A pool used by a capture keeps them while it has references, because graphs know the addresses.
// Returns the statuses of vram_empty_cache().
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_empty_cache(struct vram_pool *pool);
// Does for one private pool without references what vram_empty_cache_device() does for the default pools: waits for its pending frees and
// returns its free memory, even if a graph used the pool. An unknown id counts as a pool that ended empty: the wait is counted and nothing
// else happens. For (0, 0) it is vram_empty_cache_device(). Same statuses.
VRAM_API VRAM_NODISCARD enum vram_status vram_empty_cache_pool(struct vram_allocator *allocator, uint32_t device, struct vram_pool_id id);

// Memory of one private pool.
struct vram_pool_stats {
    struct vram_pool_id id;
    bool ended; // the pool is gone: reserved_bytes keeps its peaks and sums, with a current value of 0; the fields below are 0
    struct vram_stat reserved_bytes[VRAM_STAT_POOLS]; // held from the driver
    uint64_t allocated_bytes;                         // live blocks
    uint64_t active_bytes;                            // live and pending blocks
    uint64_t free_bytes;                              // cached blocks
    uint64_t blocks;                                  // live
    uint64_t segments;
};
VRAM_API VRAM_NODISCARD enum vram_status vram_get_pool_stats(struct vram_pool *pool, struct vram_pool_stats *stats);
// Writes the statistics of the device's private pools by ascending id into stats[0, capacity) and sets *count to the number of pools, which
// may exceed capacity and is 0 for a device never used. Ended pools are included, even after peaks and sums are reset; pools that never
// held memory are not. INVALID_ARGUMENT, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_get_all_pool_stats(struct vram_allocator *allocator, uint32_t device,
                                                                 struct vram_pool_stats *stats, size_t capacity, size_t *count);
// vram_walk() over the blocks of one pool.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_walk(struct vram_pool *pool, vram_block_visitor visit, void *user);

// --- checkpoints ----------------------------------------------------------------------------------------------------------------
struct vram_checkpoint;
// Remembers the live blocks of the pool and their addresses; blocks that were freed and await other streams do not count. The caller owns
// *checkpoint and ends it with vram_checkpoint_destroy(). NO_HOST_MEMORY; ASLEEP here and for a restore while the pool sleeps; UNSUPPORTED
// here and below with backend:cudaMallocAsync, and for a pool with memory of paged:True (a pool that no graph knew when it grew).
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_checkpoint(struct vram_pool *pool, struct vram_checkpoint **checkpoint);
// NULL is ignored.
VRAM_API void vram_checkpoint_destroy(struct vram_checkpoint *checkpoint);
// Receives the changes of a restore, after it is done, freed addresses first.
struct vram_restore_observer {
    void (*freed)(uint64_t address, void *user);                        // may be NULL
    void (*created)(uint64_t address, uint64_t size_bytes, void *user); // may be NULL
    void *user;
};
// Restores the live blocks of the checkpoint, as PyTorch does. Frees every live block, hands out every piece of the checkpoint's segments
// again, including free ones, and then frees the free ones. Peaks, sums and events therefore count the whole segments, and a restored
// block's requested bytes are its size. Segments made since the checkpoint stay, free. If another stream uses a live or pending block, the
// block's own stream waits for it, not the host. INVALID_ARGUMENT, with nothing changed, if a capture forbids the wait, or if memory of a
// checkpointed block was returned; LENT, with nothing changed, while a block that the pool lent (lend_graph_pools) is live; DRIVER;
// NO_HOST_MEMORY. observer may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_restore(struct vram_pool *pool, const struct vram_checkpoint *checkpoint,
                                                           const struct vram_restore_observer *observer);
// Checks whether the live blocks of the pool are exactly those given, in any order; blocks freed and pending do not count. NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_holds_exactly(struct vram_pool *pool, const uint64_t *addresses, size_t count,
                                                                 bool *equal);

// --- exact addresses --------------------------------------------------------------------------------------------------------------
// vram_malloc() at a given address, which must be free, cached, on this stream and (by the routes) in this pool. INVALID_ARGUMENT
// otherwise, for 0 bytes, and while caching is off; UNSUPPORTED with backend:cudaMallocAsync; DRIVER, LIMIT, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_malloc_at(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes,
                                                        uint64_t stream, uint64_t address);

// --- captures ---------------------------------------------------------------------------------------------------------------------
// Modes of a capture, as in CUstreamCaptureMode: which threads' unsafe calls invalidate it.
enum vram_capture_mode { VRAM_CAPTURE_GLOBAL, VRAM_CAPTURE_THREAD_LOCAL, VRAM_CAPTURE_RELAXED };
// Begins a capture on `stream`. Its requests, and those of streams that join the capture, go to the pool from now on. Frees of blocks that
// other streams used are deferred until no capture is in progress or, with graph_capture_record_stream_reuse, until the captured graph
// shows that those streams have joined. INVALID_ARGUMENT with a message for the default stream, an invalid mode, or a stream that is
// already capturing; DRIVER. *error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_capture_begin(struct vram_pool *pool, uint64_t stream, enum vram_capture_mode mode,
                                                            struct vram_error *error);
// Ends the capture, even an invalidated one (then DRIVER, and *graph is 0). The caller owns *graph, a CUgraph. The pool remembers that a
// graph knows its addresses: keep a reference to the pool for as long as the graph is launched.
VRAM_API VRAM_NODISCARD enum vram_status vram_capture_end(struct vram_pool *pool, uint64_t stream, uint64_t *graph,
                                                          struct vram_error *error);
// Route a capture that other code begins and ends on `stream` (a framework, through the runtime). Call enter before it begins and leave
// after it has ended, on the thread that begins it. If streams of several devices take part, also call both for a pool of each other
// device, with the stream on which the capture began: requests on that device then go to that pool. Calls nest. INVALID_ARGUMENT for the
// default stream, and for a leave without an enter; NO_HOST_MEMORY; leave also returns DRIVER if a deferred free cannot be completed.
VRAM_API VRAM_NODISCARD enum vram_status vram_capture_enter(struct vram_pool *pool, uint64_t stream);
VRAM_API VRAM_NODISCARD enum vram_status vram_capture_leave(struct vram_pool *pool, uint64_t stream);

// Mark a capture by other code on `stream` of the device, without routing its memory (routes do that): a capture's restrictions apply from
// now on, to the requests that the option `pytorch` selects. stream 0 means an unknown stream. Call begin before the capture begins and end
// after it has ended. Marks nest. INVALID_ARGUMENT, also for an end without a begin on the same device and stream; DRIVER, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_capture_mark_begin(struct vram_allocator *allocator, uint32_t device, uint64_t stream);
VRAM_API VRAM_NODISCARD enum vram_status vram_capture_mark_end(struct vram_allocator *allocator, uint32_t device, uint64_t stream);

// Announce a launch of a graph whose memory is in the pool to an allocator with lend_graph_pools:True. Between launches, free memory of
// such a pool serves requests of the default pools, and a launch that the allocator does not know of would overwrite them. Call begin
// before and end after each launch; a graph with memory of several pools needs both for each. vram_graph_launch() does this itself. Begin
// makes `stream` wait for what was lent; it makes no driver call if nothing was lent since the last launch on `stream`. LENT with a
// message, and the graph must not be launched: a lent block is live, or a capture forbids the wait. DRIVER, NO_HOST_MEMORY. error may be
// NULL. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_launch_begin(struct vram_pool *pool, uint64_t stream, struct vram_error *error);
// Ends a launch that vram_pool_launch_begin() began with OK. Call it even if the launch failed. NULL is ignored.
VRAM_API void vram_pool_launch_end(struct vram_pool *pool);

// --- graphs ------------------------------------------------------------------------------------------------------------------------------
// CUDA graphs whose memory is safe: capture a region, launch it any number of times, destroy it.
//
// A graph remembers addresses. What it allocates during capture comes from a private pool that lives as long as the graph needs it; what it
// reads from outside must stay in place. These functions do the steps in the right order and turn the known mistakes into statuses with a
// message: the default stream, two captures at once, a waiting call inside a capture, graphs of one pool launched out of order, a static
// input that was freed or moved.
//
// A graph is used by one thread at a time. It must be destroyed before its allocator.

struct vram_graph;
struct vram_host;

// A zeroed struct means every default.
struct vram_graph_options {
    // The pool of the graph's memory. NULL: a pool of its own. To share memory, pass an earlier graph's pool (vram_graph_pool()).
    struct vram_pool *pool;
    enum vram_capture_mode mode; // which threads' unsafe calls invalidate the capture
    bool keep_cache;             // do not return cached memory before the capture, unlike torch.cuda.graph()
    struct vram_host *host;      // pinned memory whose cache is returned then, too; NULL: none
};

// Begins the capture of a region on `stream` (not the default stream), after returning the device's cached memory. The caller owns *graph
// and ends it with vram_graph_destroy(). INVALID_ARGUMENT with a message (default stream, another capture in progress on this allocator's
// device, pool of another device), DRIVER, NO_HOST_MEMORY. error may be NULL here and below.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_begin(struct vram_allocator *allocator, uint32_t device, uint64_t stream,
                                                          const struct vram_graph_options *options, struct vram_graph **graph,
                                                          struct vram_error *error);
// Ends the capture and makes the graph launchable. DRIVER with a message if the region did something that a capture forbids; such a graph
// can only be destroyed, which frees its memory.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_end(struct vram_graph *graph, struct vram_error *error);
// Declares memory that the graph reads or writes but did not allocate (an input buffer). A launch is refused once this is no longer a live
// block of the same size. address: a live block of this allocator. INVALID_POINTER otherwise; NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_add_static(struct vram_graph *graph, uint64_t address);
// Launches the graph on `stream`. Graphs that share a pool reuse each other's memory. In one round they must be launched in the order of
// their capture (some may be left out); a round starts with the first of them. INVALID_ARGUMENT with a message for a graph that is not
// ready, is out of order, or whose static memory is gone; LENT with a message if memory of its pool is lent to a live block
// (lend_graph_pools); DRIVER.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_launch(struct vram_graph *graph, uint64_t stream, struct vram_error *error);
// Returns the pool of its memory, borrowed, valid until the graph is destroyed.
VRAM_API struct vram_pool *vram_graph_pool(const struct vram_graph *graph);
// Returns the driver's CUgraphExec, borrowed; 0 until vram_graph_end() has succeeded.
VRAM_API uint64_t vram_graph_exec(const struct vram_graph *graph);
// Ends a capture that is still in progress, destroys the graph and drops its reference to the pool, whose memory is returned at the next
// vram_empty_cache(). NULL is ignored.
VRAM_API void vram_graph_destroy(struct vram_graph *graph);

// One region of a sequence: does its work on `stream`, allocating from the allocator as usual. A status other than OK ends the sequence.
typedef enum vram_status (*vram_graph_region)(uint64_t stream, void *user);
struct vram_graph_callable {
    vram_graph_region run;
    void *user;
};
// The counterpart of make_graphed_callables(): runs each region `warmups` times on `stream` outside a capture, then captures them in order
// into one shared pool. graphs has room for `count`. Makes all of them, or none, leaving graphs unchanged. Statuses of begin and end, or of
// a region.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_capture_all(struct vram_allocator *allocator, uint32_t device, uint64_t stream,
                                                                const struct vram_graph_callable *callables, size_t count, uint32_t warmups,
                                                                struct vram_graph **graphs, struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
