// vram/pool.h: private pools, and captures of CUDA graphs that allocate from them.
//
// A private pool is memory kept apart from the default pools of its device: for a CUDA graph, whose addresses must stay what they
// were at the capture, or for a user who wants memory from functions of his own. Which pool a request goes to is decided by
// routes: vram_pool_begin() opens one, and the newest that accepts the request wins. A pool lives until its last reference is
// released: then what is free in it goes back to the driver, after a wait for its pending frees (of a graph's pool, or by the rules before
// PyTorch 2.6: at the next vram_empty_cache() or retry), the rest as the last users free it and the cache is emptied.
#ifndef VRAM_POOL_H
#define VRAM_POOL_H

#include "vram/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_pool;

// Memory for a pool from elsewhere (ncclMemAlloc, a driver pool, ...). Called with segment sizes, under the device's locks and with its
// context current; must not call the allocator. allocate returns a multiple of 512 (anything else is given back at once, and the request is
// UNSUPPORTED), or 0 for "out of memory".
typedef uint64_t (*vram_pool_allocate)(uint64_t size_bytes, uint32_t device, uint64_t stream, void *user);
typedef void (*vram_pool_deallocate)(uint64_t address, uint64_t size_bytes, uint32_t device, uint64_t stream, void *user);

// All-zero means every default.
struct vram_pool_options {
    vram_pool_allocate allocate;     // NULL: the driver, as the options say
    vram_pool_deallocate deallocate; // not NULL when allocate is not
    void *user;
    bool for_graph;         // its id is (n, 0)
    bool use_on_oom;        // requests for the default pool may take cached blocks of this one before they fail
    bool no_split;          // blocks are handed out whole
    bool keep_cache;        // the last release gives nothing back: vram_empty_cache() and vram_empty_cache_pool() do later
    const char *tag;        // its name for vram_sleep() (vram/sleep.h), copied: its segments are made of pages then; NULL: none
    struct vram_pool_id id; // its id, for programs that give the numbers themselves; (0, 0): the next one
};

// Makes a pool with one reference. options may be NULL. *pool is given to the caller: vram_pool_release().
// INVALID_ARGUMENT (also for a tag beyond 63 characters, and for an id that a pool of the device has, be it one that nobody holds and that
// has memory still), NO_HOST_MEMORY, DRIVER; UNSUPPORTED for functions of its own with backend:cudaMallocAsync.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_create(struct vram_allocator *allocator, uint32_t device,
                                                          const struct vram_pool_options *options, struct vram_pool **pool);
// One reference more / less. After the last release the handle is dead; live blocks of the pool stay valid until they are freed. NULL is
// ignored by release. The allocator's end is that of all its pools, whatever references they have: no release after vram_destroy().
VRAM_API void vram_pool_retain(struct vram_pool *pool);
VRAM_API void vram_pool_release(struct vram_pool *pool);
VRAM_API struct vram_pool_id vram_get_pool_id(const struct vram_pool *pool);
VRAM_API uint32_t vram_pool_references(const struct vram_pool *pool);
// The pool of this id that somebody holds, with one reference more, which is given to the caller: vram_pool_release(). INVALID_ARGUMENT
// when the device has none.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_find(struct vram_allocator *allocator, uint32_t device, struct vram_pool_id id,
                                                        struct vram_pool **pool);
// Switches what the options of the same names said, from the next request on: blocks that are handed out stay as they are. Any thread.
VRAM_API void vram_pool_set_use_on_oom(struct vram_pool *pool, bool use_on_oom);
VRAM_API void vram_pool_set_no_split(struct vram_pool *pool, bool no_split);

// Who is routed into a pool.
enum vram_route_kind {
    VRAM_ROUTE_THREAD,  // requests of the thread that called vram_pool_begin()
    VRAM_ROUTE_STREAM,  // requests on `stream`
    VRAM_ROUTE_CAPTURE, // requests on `stream` and on every stream that takes part in the same capture
    VRAM_ROUTE_ALL,
    VRAM_ROUTE_FILTER, // requests whose stream `accepts` says yes to
};
// Called by the thread whose request it is, under the device's locks, with the request's stream: must not call the allocator.
typedef bool (*vram_route_filter)(uint64_t stream, void *user);
struct vram_route {
    enum vram_route_kind kind;
    uint64_t stream;
    vram_route_filter accepts; // VRAM_ROUTE_FILTER only; must be good until the route is closed
    void *user;                // its second argument
};
// Opens a route into the pool and takes a reference; a pool may have several. Any thread. INVALID_ARGUMENT for a kind that is
// none and for a filter that is NULL, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_begin(struct vram_pool *pool, const struct vram_route *route);
// Closes the newest route into the pool with the same kind and stream (of this thread, for VRAM_ROUTE_THREAD; with the same function and
// user, for VRAM_ROUTE_FILTER) and gives its reference back. INVALID_ARGUMENT when there is none. DRIVER and NO_HOST_MEMORY during a
// capture: the route is closed, and the frees that the capture put off are settled by a later call.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_end(struct vram_pool *pool, const struct vram_route *route);
// vram_malloc() in this pool whatever the routes say. Statuses of vram_malloc().
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_malloc(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream, uint64_t *address);

// Returns the pool's wholly free segments. A pool that a capture used keeps them while it has references: graphs know the addresses.
// Statuses of vram_empty_cache().
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_empty_cache(struct vram_pool *pool);
// vram_empty_cache_device() for the private pool of this id alone, where nobody holds it any more: waits for its pending frees and returns
// its free memory, also of a graph's pool. An id that no pool has is that of one that ended empty: the wait is counted, no more. For (0, 0)
// vram_empty_cache_device() itself. Statuses as there.
VRAM_API VRAM_NODISCARD enum vram_status vram_empty_cache_pool(struct vram_allocator *allocator, uint32_t device, struct vram_pool_id id);

struct vram_pool_stats {
    struct vram_stat reserved_bytes[VRAM_STAT_POOLS];
    uint64_t allocated_bytes; // in live blocks
    uint64_t active_bytes;    // and in blocks waiting to be reusable
    uint64_t free_bytes;      // cached
    uint64_t blocks;          // live
    uint64_t segments;
};
VRAM_API VRAM_NODISCARD enum vram_status vram_get_pool_stats(struct vram_pool *pool, struct vram_pool_stats *stats);
// What a private pool of the device held from the driver. One that is gone stays in the list, also after peaks and sums were reset: its
// current value is 0. One that never held anything is not in it.
struct vram_private_pool_stats {
    struct vram_pool_id id;
    bool ended;
    struct vram_stat reserved_bytes[VRAM_STAT_POOLS];
};
// Writes those of the device's private pools, ended ones too, by ascending id into stats[0, capacity); *count is how many there are, which
// may be more. A device never used has none. INVALID_ARGUMENT, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_get_private_pool_stats(struct vram_allocator *allocator, uint32_t device,
                                                                     struct vram_private_pool_stats *stats, size_t capacity, size_t *count);
// vram_walk() over the blocks of one pool.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_walk(struct vram_pool *pool, vram_block_visitor visit, void *user);

// --- checkpoints ----------------------------------------------------------------------------------------------------------------
struct vram_checkpoint;
// Remembers which blocks of the pool are live, and where; a block that was freed and waits for other streams is none. *checkpoint is given
// to the caller: vram_checkpoint_destroy(). NO_HOST_MEMORY; ASLEEP here and for a restore while the pool sleeps; UNSUPPORTED here and below
// with backend:cudaMallocAsync, and of a pool that has memory of paged:True (one that no graph knew when it grew).
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_checkpoint(struct vram_pool *pool, struct vram_checkpoint **checkpoint);
// NULL is ignored.
VRAM_API void vram_checkpoint_destroy(struct vram_checkpoint *checkpoint);
// What a restore changed. Addresses are told after it is done, freed ones first.
struct vram_restore_observer {
    void (*freed)(uint64_t address, void *user);                        // may be NULL
    void (*created)(uint64_t address, uint64_t size_bytes, void *user); // may be NULL
    void *user;
};
// Brings the pool back to the blocks of the checkpoint, as PyTorch does: every live block is freed, every piece of the checkpoint's
// segments is handed out again, free ones too, then those are freed. So peaks, sums and events count the whole of these segments, and a
// block that is made again has its size as what was requested. Segments made since stay, free. Where another stream uses a live block, or
// one that was freed and waits for it, the block's own stream waits for it, not the host. INVALID_ARGUMENT (and nothing changed) where a
// capture forbids that, or when memory of a block of the checkpoint was given back; DRIVER; NO_HOST_MEMORY. observer may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_restore(struct vram_pool *pool, const struct vram_checkpoint *checkpoint,
                                                           const struct vram_restore_observer *observer);
// Whether the live blocks of the pool are exactly these, in any order; those that were freed and wait are none. NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_pool_holds_exactly(struct vram_pool *pool, const uint64_t *addresses, size_t count,
                                                                 bool *equal);

// --- exact addresses --------------------------------------------------------------------------------------------------------------
// vram_malloc() at a given address: it must be free, cached, on this stream and (by the routes) in this pool. INVALID_ARGUMENT otherwise,
// for 0 bytes, and while caching is off; UNSUPPORTED with backend:cudaMallocAsync; DRIVER, LIMIT, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_malloc_at(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes,
                                                        uint64_t stream, uint64_t address);

// --- captures ---------------------------------------------------------------------------------------------------------------------
// Modes of a capture, as CUstreamCaptureMode: which unsafe calls of whom invalidate it.
enum vram_capture_mode { VRAM_CAPTURE_GLOBAL, VRAM_CAPTURE_THREAD_LOCAL, VRAM_CAPTURE_RELAXED };
// Begins a capture on `stream`, whose requests (and those of streams that join the capture) go to the pool from now on. Frees of blocks
// that other streams used are put off until no capture is under way, or, with graph_capture_record_stream_reuse, until the
// captured graph shows that those streams have joined. INVALID_ARGUMENT with a sentence for the default stream, for a mode that is none and
// for a stream that is capturing already; DRIVER. *error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_capture_begin(struct vram_pool *pool, uint64_t stream, enum vram_capture_mode mode,
                                                            struct vram_error *error);
// Ends it, also when it was invalidated (then DRIVER, and *graph is 0). *graph is a CUgraph, given to the caller. The pool remembers
// that a graph knows its addresses: keep a reference to the pool for as long as the graph is launched.
VRAM_API VRAM_NODISCARD enum vram_status vram_capture_end(struct vram_pool *pool, uint64_t stream, uint64_t *graph,
                                                          struct vram_error *error);
// The same for a capture that others begin and end on `stream` (a framework, through the runtime): to be called before it begins and
// after it has ended, on the thread that begins it. Where streams of several devices take part, call both for a pool of each device that
// did not begin it, with the stream where it was begun: requests on that device then go to that pool. Calls nest. INVALID_ARGUMENT
// for the default stream, and when there is nothing to leave; NO_HOST_MEMORY; leave also DRIVER, when a put-off free cannot be completed.
VRAM_API VRAM_NODISCARD enum vram_status vram_capture_enter(struct vram_pool *pool, uint64_t stream);
VRAM_API VRAM_NODISCARD enum vram_status vram_capture_leave(struct vram_pool *pool, uint64_t stream);

// Says that others capture on `stream` of the device, without saying where its memory is to come from (routes do): what a capture forbids
// holds from now on, for the requests that the option `pytorch` says. stream may be 0: one that is not known. To be called before the
// capture begins and after it has ended. Marks nest. INVALID_ARGUMENT, also for an end without a begin on the same device and stream;
// DRIVER, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_capture_mark_begin(struct vram_allocator *allocator, uint32_t device, uint64_t stream);
VRAM_API VRAM_NODISCARD enum vram_status vram_capture_mark_end(struct vram_allocator *allocator, uint32_t device, uint64_t stream);

// --- graphs ------------------------------------------------------------------------------------------------------------------------------
// CUDA graphs whose memory is safe: capture a region, launch it any number of times, destroy it.
//
// A graph remembers addresses. What it allocates while it is captured comes from a private pool that lives as long as a graph needs it;
// what it reads from outside must stay where it was. The functions here do the steps in their right order and turn the known mistakes
// into statuses with a sentence: the default stream, two captures at once, a call that waits inside a capture, graphs of one pool
// launched out of their order, a static input that was freed or moved.
//
// A graph is used by one thread at a time. It must be destroyed before its allocator.

struct vram_graph;
struct vram_host;

// All-zero means every default.
struct vram_graph_options {
    struct vram_pool *pool; // where its memory comes from: NULL, a pool of its own; that of an earlier graph (vram_graph_pool()), to share
    enum vram_capture_mode mode; // which unsafe calls of whom invalidate the capture
    bool keep_cache;             // do not give cached memory back before the capture, as torch.cuda.graph() does
    struct vram_host *host;      // pinned memory whose cache is given back then, too; NULL: none
};

// Begins the capture of a region on `stream` (not the default stream). Cached memory of the device is given back first. *graph is given to
// the caller: vram_graph_destroy(). INVALID_ARGUMENT with a sentence (default stream, another capture under way on this allocator's
// device, pool of another device), DRIVER, NO_HOST_MEMORY. error may be NULL here and below.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_begin(struct vram_allocator *allocator, uint32_t device, uint64_t stream,
                                                          const struct vram_graph_options *options, struct vram_graph **graph,
                                                          struct vram_error *error);
// Ends the capture and makes it launchable. DRIVER with a sentence when something in the region was not allowed; the graph can then only be
// destroyed, and its memory goes back with it.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_end(struct vram_graph *graph, struct vram_error *error);
// Declares memory that the graph reads or writes but did not allocate (an input buffer): a launch is refused once it is not a live block
// of the same size any more. address: of a live block of this allocator. INVALID_POINTER otherwise; NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_add_static(struct vram_graph *graph, uint64_t address);
// Launches the graph on `stream`. Graphs that share a pool use each other's memory again: in one round they must be launched in the order
// they were captured in (leaving some out is allowed); a round starts with the first of them. INVALID_ARGUMENT with a sentence for a graph
// that is not ready, out of order, or whose static memory is gone; DRIVER.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_launch(struct vram_graph *graph, uint64_t stream, struct vram_error *error);
// The pool of its memory: borrowed, valid while the graph lives.
VRAM_API struct vram_pool *vram_graph_pool(const struct vram_graph *graph);
// The driver's CUgraphExec, 0 before vram_graph_end() succeeded. Borrowed.
VRAM_API uint64_t vram_graph_exec(const struct vram_graph *graph);
// Ends a capture that is still under way, destroys the graph and gives its reference to the pool back; the memory goes at the next
// vram_empty_cache(). NULL is ignored.
VRAM_API void vram_graph_destroy(struct vram_graph *graph);

// One region of a sequence: does its work on `stream`, allocating from the allocator as always. What it returns other than OK ends the
// sequence.
typedef enum vram_status (*vram_graph_region)(uint64_t stream, void *user);
struct vram_graph_callable {
    vram_graph_region run;
    void *user;
};
// The counterpart of make_graphed_callables(): runs each region `warmups` times on `stream` outside a capture, then captures them in order
// into one shared pool. graphs: room for `count`; all are made, or none and graphs is untouched. Statuses as for begin and end, or a
// region's own.
VRAM_API VRAM_NODISCARD enum vram_status vram_graph_capture_all(struct vram_allocator *allocator, uint32_t device, uint64_t stream,
                                                                const struct vram_graph_callable *callables, size_t count, uint32_t warmups,
                                                                struct vram_graph **graphs, struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
