// vram/events.h: passes every event of an allocator to a function of the program as it happens, with the program's own context.
//
// For programs that keep their own history, or that must track segments as they come and go (a network card's registrations, another
// process's mirror). vram/history.h records events without any code; both may be on, and neither sees the other. Without a listener there
// is no cost.
#ifndef VRAM_EVENTS_H
#define VRAM_EVENTS_H

#include "vram/allocator.h"
#include "vram/host.h"

#ifdef __cplusplus
extern "C" {
#endif

enum vram_event_action {
    VRAM_EVENT_ALLOC,          // a block was handed out
    VRAM_EVENT_FREE_REQUESTED, // the program freed it
    VRAM_EVENT_FREE_COMPLETED, // no stream uses it any more
    VRAM_EVENT_SEGMENT_ALLOC,  // memory was obtained from the driver
    VRAM_EVENT_SEGMENT_FREE,   // memory was returned to the driver
    VRAM_EVENT_SEGMENT_MAP,    // pages of an expandable segment were mapped, or a sleeping pool woke (vram/sleep.h)
    VRAM_EVENT_SEGMENT_UNMAP,
    VRAM_EVENT_OOM,      // a request failed for lack of memory
    VRAM_EVENT_SNAPSHOT, // a snapshot was taken
    VRAM_EVENT_ANNOTATE, // a live block got a name
    VRAM_EVENT_ACTIONS
};

// The fields of PyTorch's TraceEntry. The callback runs on the thread that caused the event, so it may read that thread's metadata with
// vram_metadata() and vram_compile_context().
struct vram_event {
    enum vram_event_action action;
    uint32_t device;
    uint64_t address;    // OOM: the driver's free bytes; SNAPSHOT: 0
    uint64_t size_bytes; // of a block: as requested; of a segment or a range of one: its bytes; OOM: the rounded request
    uint64_t stream;
    struct vram_pool_id pool; // (0, 0): a default pool
    uint64_t time_ns;         // since 1970
    // Context of the call in progress, else of the block or segment. NULL: no context, or one from an earlier listener with another user or
    // release function. Borrowed for the call.
    void *context;
    const char *name; // ANNOTATE: the name; otherwise NULL
};

// Which calls take a context; each level includes those before it. As the argument `context` of PyTorch's _record_memory_history().
enum vram_context_level { VRAM_CONTEXT_NEVER, VRAM_CONTEXT_STATE, VRAM_CONTEXT_ALLOC, VRAM_CONTEXT_ALL };

// A context is whatever the program attaches to a call (its own call stack, a request's id). The allocator keeps it with the block, and
// with the segment that the call made, for as long as these live.
struct vram_event_listener {
    // Called under the locks that order the event: must be quick and must not call this allocator, except to read the thread's metadata.
    // NULL: only contexts are kept.
    void (*event)(const struct vram_event *event, void *user);
    // Called without any lock, once per call that may need it. Returns one reference, or NULL if the call has no context. Without this
    // function there are no contexts.
    void *(*take_context)(void *user);
    // Add or drop one reference to a context that take_context returned; NULL without take_context. release_context may be called on any
    // thread, possibly under locks of the allocator, so it must not call the allocator.
    void (*retain_context)(void *context, void *user);
    void (*release_context)(void *context, void *user);
    enum vram_context_level level;
    void *user;
};

// Replaces the listener with this one, which is copied. Contexts of live blocks stay and are released by the functions they came from.
// NULL: removes the listener and releases every context before returning; vram_destroy() does the same. After the return, no call of the
// former listener is running, except take_context on other threads. Must not be called inside a callback; must not be called with NULL
// while another thread walks blocks. INVALID_ARGUMENT for a take_context without the other two functions; NO_HOST_MEMORY.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_set_event_listener(struct vram_allocator *allocator,
                                                                                   const struct vram_event_listener *listener);
// Gets the context in which the live block at `address` was allocated, with a reference that the caller must release; NULL if it has no
// context. INVALID_POINTER.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_block_context(struct vram_allocator *allocator, uint64_t address,
                                                                              void **context);

// --- pinned host memory ---------------------------------------------------------------------------------------------------------------
// Receives every event of pinned memory (ALLOC, FREE_*, SEGMENT_ALLOC and SEGMENT_FREE: each block is a segment of its own), under the lock
// that orders them: must be quick and must not call this allocator. device is 0, size_bytes the block's full size, context NULL: to keep a
// context, store it by address from ALLOC to FREE_COMPLETED. A free may complete on another thread, including the background thread.
typedef void (*vram_host_event_function)(const struct vram_event *event, void *user);
// Replaces the listener; NULL removes it. After the return, no call of the former listener is running. A history (vram/history.h) is
// unaffected.
VRAM_API VRAM_EXPERIMENTAL void vram_host_set_event_listener(struct vram_host *host, vram_host_event_function event, void *user);

struct vram_host_block_view {
    void *pointer;
    uint64_t size_bytes;      // of the block; at least the requested bytes
    uint64_t requested_bytes; // as the caller asked; 0 for a free block
    enum vram_block_state state;
    struct vram_pool_id pool;
};
typedef bool (*vram_host_visitor)(const struct vram_host_block_view *block, void *user);
// Visits all blocks as of one moment, by ascending address, without a lock; stops when the visitor returns false. NO_HOST_MEMORY.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_host_walk(struct vram_host *host, vram_host_visitor visit, void *user);

#ifdef __cplusplus
}
#endif
#endif
