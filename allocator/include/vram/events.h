// vram/events.h: every event of an allocator told to a function of the program as it happens, with a context of the program's own.
//
// For programs that keep a history of their own, or that must know segments as they come and go (a network card's registrations, another
// process's mirror). vram/history.h keeps events without any code; both may be on, and neither sees the other. While nobody listens nothing
// of it costs anything.
#ifndef VRAM_EVENTS_H
#define VRAM_EVENTS_H

#include "vram/allocator.h"
#include "vram/host.h"

#ifdef __cplusplus
extern "C" {
#endif

enum vram_event_action {
    VRAM_EVENT_ALLOC,          // a block is handed out
    VRAM_EVENT_FREE_REQUESTED, // the client gives it back
    VRAM_EVENT_FREE_COMPLETED, // no stream uses it any more
    VRAM_EVENT_SEGMENT_ALLOC,  // memory was got from the driver
    VRAM_EVENT_SEGMENT_FREE,   // and is given back
    VRAM_EVENT_SEGMENT_MAP,    // pages of an expandable segment were mapped, or memory that slept woke (vram/sleep.h)
    VRAM_EVENT_SEGMENT_UNMAP,
    VRAM_EVENT_OOM,      // a request failed for lack of memory
    VRAM_EVENT_SNAPSHOT, // a snapshot was taken
    VRAM_EVENT_ANNOTATE, // a live block got a name
    VRAM_EVENT_ACTIONS
};

// What stands in PyTorch's TraceEntry. The words of the calling thread are those of vram_metadata() and vram_compile_context(), which
// may be asked for inside of the callback: it runs on the thread that caused the event.
struct vram_event {
    enum vram_event_action action;
    uint32_t device;
    uint64_t address;    // OOM: the driver's free bytes; SNAPSHOT: 0
    uint64_t size_bytes; // of a block what was asked for; of a segment or a range of one its bytes; OOM: the rounded request
    uint64_t stream;
    struct vram_pool_id pool; // (0, 0): a default pool
    uint64_t time_ns;         // since 1970
    void *context;    // of the call that is under way, else of the block or segment; NULL: none, or one of a former listener that had
                      // another user or release function. Borrowed for the call
    const char *name; // ANNOTATE: the name; NULL else
};

// Which calls take a context; each level includes those before. As the argument `context` of PyTorch's _record_memory_history().
enum vram_context_level { VRAM_CONTEXT_NEVER, VRAM_CONTEXT_STATE, VRAM_CONTEXT_ALLOC, VRAM_CONTEXT_ALL };

// A context is whatever the program says a call was made in (its own call stack, a request's id): the allocator keeps it at the block and
// at the segment that the call made, for as long as these live.
struct vram_event_listener {
    // Under the locks that order the event: must be quick, and must call no function of this allocator but those of the thread's words.
    // NULL: only contexts are kept.
    void (*event)(const struct vram_event *event, void *user);
    // Called without any lock, once for a call that may need it: gives one reference, or NULL for no context. NULL: there are none.
    void *(*take_context)(void *user);
    // One reference more, or less: of a context that take_context gave. Without contexts NULL. Release under any lock of the allocator, and
    // on any thread: must not call it.
    void (*retain_context)(void *context, void *user);
    void (*release_context)(void *context, void *user);
    enum vram_context_level level;
    void *user;
};

// From now on events go to this listener, which is copied, in place of the one before: contexts that live blocks have stay, and are given
// back to the functions that they came from. NULL: nobody listens any more, and every context is given back before this returns;
// vram_destroy() does the same. When it returns no call of the former listener is under way but in other threads' take_context. Not inside
// of a callback, nor NULL while another thread walks blocks. INVALID_ARGUMENT for a take_context without the other two; NO_HOST_MEMORY.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_set_event_listener(struct vram_allocator *allocator,
                                                                                   const struct vram_event_listener *listener);
// The context in which the live block at `address` was handed out, with a reference that is given to the caller; NULL where it has none.
// INVALID_POINTER.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_block_context(struct vram_allocator *allocator, uint64_t address,
                                                                              void **context);

// --- pinned host memory ---------------------------------------------------------------------------------------------------------------
// Told of every event of pinned memory (ALLOC, FREE_*, SEGMENT_ALLOC and SEGMENT_FREE: each block is a segment of its own), under the lock
// that orders them: must be quick, and must not call this allocator. device is 0, size_bytes what the block really has, context NULL: who
// wants one keeps it by the address, from ALLOC to FREE_COMPLETED. A free may complete on another thread, the background one included.
typedef void (*vram_host_event_function)(const struct vram_event *event, void *user);
// From now on events go to this function in place of the one before; NULL: nobody listens. When it returns no call of the former one is
// under way. A history (vram/history.h) is not disturbed.
VRAM_API VRAM_EXPERIMENTAL void vram_host_set_event_listener(struct vram_host *host, vram_host_event_function event, void *user);

struct vram_host_block_view {
    void *pointer;
    uint64_t size_bytes;      // what the block really has
    uint64_t requested_bytes; // what was asked for; 0 for a free block
    enum vram_block_state state;
    struct vram_pool_id pool;
};
typedef bool (*vram_host_visitor)(const struct vram_host_block_view *block, void *user);
// Visits all blocks of one moment, by ascending address, without a lock; the visitor says false to end it. NO_HOST_MEMORY.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_host_walk(struct vram_host *host, vram_host_visitor visit, void *user);

#ifdef __cplusplus
}
#endif
#endif
