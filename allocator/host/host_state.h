// host_state.h: the data structures of an allocator of pinned memory.
//
//   vram_host -- table: address -> block          every held block, in whatever state
//       |------- pools (the default pool, private pools)
//       |            bins: free blocks by size     kept: freed blocks that a captured graph uses
//       |------- contexts: idle events             lanes: per stream, the uses that wait for an event, oldest first
//       |------- deferred: uses of freed blocks without an event
//       `------- outgoing, stuck: blocks on their way back to the driver; refused by it. Not in the table any more.
//
// A block is live, being freed by one thread, pending until `fences` of its uses have passed, kept, or free. Its uses are attached to the
// block while it is live, being freed or kept; while it is pending, they are in lanes or deferred. A use belongs to one lane, and a lane
// lives as long as it has uses.
#ifndef VR_HOST_HOST_STATE_H
#define VR_HOST_HOST_STATE_H

#include <stdatomic.h>

#include "base/stat.h"
#include "config/options.h"
#include "driver/driver.h"
#include "host/host_table.h"
#include "os/os.h"
#include "vram/events.h"
#include "vram/host.h"

// The lock order. No driver call is made under the last lock, unless a comment says otherwise.
enum vr_host_lock_rank {
    VR_HOST_LOCK_POLL,   // vram_host.poll: one thread at a time queries events; lanes lose uses only under it
    VR_HOST_LOCK_RETURN, // vram_host.giving: one thread at a time returns memory, so a thread that needs the room waits for it
    VR_HOST_LOCK_SETUP,  // vram_host.setup: makes the home context, reserve segment and background thread once
    VR_HOST_LOCK_STATE,  // vram_host.mutex: everything else
};

enum vr_host_state { VR_HOST_LIVE, VR_HOST_FREEING, VR_HOST_PENDING, VR_HOST_KEPT, VR_HOST_FREE, VR_HOST_OUT };

// A CUDA context in which streams use blocks. Lives as long as the allocator.
struct vr_host_context {
    uint64_t handle;
    uint64_t *idle; // unused events of this context; has room for all that were made
    size_t idle_count;
    size_t idle_capacity;
    size_t made;
    struct vr_host_context *next;
};

// A stream and the uses that wait for it.
struct vr_host_lane {
    struct vr_host_context *context;
    uint64_t stream;
    size_t uses;               // number of uses that name this lane, in any list
    struct vr_host_use *first; // oldest with an event
    struct vr_host_use *last;
    struct vr_host_lane *previous, *next;
};

// One stream's use of one block.
struct vr_host_use {
    struct vr_host_lane *lane;
    struct vr_host_block *block;
    struct vr_host_use *next; // in a list of the block, the lane, deferred uses or idle uses
    uint64_t event;           // 0: no event yet
};

struct vr_host_block {
    uint64_t address;
    uint64_t size;
    uint64_t stream;    // of the request that it was handed out to
    uint32_t stack;     // of that request; 0: unknown
    uint64_t requested; // 0 unless live, being freed, pending or kept
    struct vram_host_pool *pool;
    struct vr_host_use *uses;
    struct vr_host_block *previous, *next; // in a bin, in the list of kept blocks, or on the way out (next only)
    uint32_t fences;                       // uses that have not passed, while pending
    enum vr_host_state state;
    enum vram_host_origin origin;
    bool captured; // handed out to, or used by, a stream that was capturing
};

// Eight bins per power of two; a bin holds [2^k (1 + j/8), 2^k (1 + (j + 1)/8)), last freed first.
enum { VR_HOST_BINS = 64 * 8 };

// `references` of the default pool never reaches 0.
struct vram_host_pool {
    struct vram_host *host;
    struct vram_pool_id id;
    uint32_t references; // of the caller, routes and requests in progress
    size_t blocks;       // its blocks in the table
    struct vr_host_block *kept;
    struct vram_host_pool *next;
    struct vr_host_block *bins[VR_HOST_BINS];
};

struct vr_host_route {
    struct vram_host_pool *pool;
    struct vram_route route;
    uint64_t thread;
};

// The reserve segment: cut from its start, and kept until the end.
struct vr_host_reserve {
    uint64_t address; // 0: no reserve segment
    uint64_t size;
    uint64_t used;
    enum vram_host_origin origin;
    bool tried; // made once, or not at all
};

struct vram_host {
    struct vram_driver *driver;
    bool owns_driver;
    uint32_t device;           // its context is the home context if the first caller has no current one
    atomic_uint_fast64_t home; // primary context in which memory is pinned; 0 until first needed
    int home_device;

    struct vr_mutex poll;
    struct vr_mutex giving;
    struct vr_mutex setup;
    struct vr_mutex mutex;

    // `mutex` guards all fields below.
    struct vr_options options;
    struct vr_host_table table;
    struct vram_host_pool *pools; // private ones
    struct vram_host_pool standard;
    uint64_t pools_made[2];
    struct vr_host_route *routes;
    size_t route_count, routes_capacity;
    struct vr_host_context *contexts;
    struct vr_host_lane *lanes;
    struct vr_host_use *deferred;
    struct vr_host_use *idle_uses;
    size_t waiting; // uses in lanes and deferred uses
    uint32_t pollers;
    struct vr_host_block *outgoing;
    struct vr_host_block *stuck;
    uint32_t with_driver; // blocks being returned by a thread now
    int64_t out_blocks;   // out of the table but still pinned: outgoing, stuck, or being returned
    int64_t out_bytes;
    struct vr_host_reserve reserve;
    struct vram_host_stats stats;
    int64_t most_requested; // largest requested_bytes ever, unaffected by resets of peaks

    _Atomic(const struct vr_host_listener *) listener; // changed under `mutex`; read without it to capture a stack
    vram_host_event_function event;                    // the program's listener, or NULL
    void *event_user;
    uint64_t stacks; // the numbering of the blocks' stacks (host_notify.h)

    // The background thread. `mutex` guards `running` and `ending`.
    struct vr_thread thread;
    struct vr_signal work;
    bool running;
    bool ending;
};

VR_INLINE void vr_host_lock(struct vram_host *host) { vr_mutex_lock(&host->mutex); }
VR_INLINE void vr_host_unlock(struct vram_host *host) { vr_mutex_unlock(&host->mutex); }

// With VRAM_CHECK=3 every public operation ends with a check of the whole state.
VR_INLINE enum vram_status vr_host_checked(struct vram_host *host, enum vram_status status) {
#if VRAM_CHECK >= 3
    struct vram_error error = {.message = ""};
    const enum vram_status state = vram_host_check(host, &error);
    assert(state == VRAM_OK && error.message[0] == '\0');
#else
    (void)host;
#endif
    return status;
}

#endif
