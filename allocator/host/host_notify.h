// host_notify.h: reports events of pinned blocks to one listener, and to a program's (vram/events.h), under the allocator's mutex. Each
// block is a segment of its own.
#ifndef VR_HOST_HOST_NOTIFY_H
#define VR_HOST_HOST_NOTIFY_H

#include "host/host_state.h"

enum vr_host_action {
    VR_HOST_ACTION_ALLOC,
    VR_HOST_ACTION_FREE_REQUESTED,
    VR_HOST_ACTION_FREE_COMPLETED,
    VR_HOST_ACTION_SEGMENT_ALLOC,
    VR_HOST_ACTION_SEGMENT_FREE,
    VR_HOST_ACTION_OOM, // without a block: size and stream are the request's, address is the memory that the system had available
};

// Must live until no thread can be in a call on the allocator any more.
struct vr_host_listener {
    // stack: of the current call, else of the block. Must be quick and must not call the allocator.
    void (*record)(enum vr_host_action what, const struct vr_host_block *block, uint32_t stack, void *user);
    // Captures the stack of the caller without its `skip` innermost frames, if requests (or frees) need one. Called without a lock.
    uint32_t (*gather)(bool frees, uint32_t skip, void *user);
    uint64_t stacks; // identifies the numbering of its stacks, not 0; a change makes blocks forget their stacks
    void *user;
};
// Replaces the listener; NULL removes it. Any thread. After the return, the previous listener is not called any more.
void vr_host_set_listener(struct vram_host *host, const struct vr_host_listener *listener);

// Called before any lock is taken, in the function that the program called.
VR_NOINLINE void vr_host_gather_now(struct vram_host *host, bool frees);
VR_INLINE void vr_host_gather(struct vram_host *host, bool frees) {
    if (VR_UNLIKELY(atomic_load_explicit(&host->listener, memory_order_acquire) != NULL)) vr_host_gather_now(host, frees);
}
VR_NOINLINE void vr_host_notify_now(struct vram_host *host, enum vr_host_action what, const struct vr_host_block *block);
VR_INLINE void vr_host_notify(struct vram_host *host, enum vr_host_action what, const struct vr_host_block *block) {
    if (VR_UNLIKELY(atomic_load_explicit(&host->listener, memory_order_relaxed) != NULL)) vr_host_notify_now(host, what, block);
}
// Also stores the current stack in the block.
VR_NOINLINE void vr_host_notify_hand_out_now(struct vram_host *host, struct vr_host_block *block);
VR_INLINE void vr_host_notify_hand_out(struct vram_host *host, struct vr_host_block *block) {
    if (VR_UNLIKELY(atomic_load_explicit(&host->listener, memory_order_relaxed) != NULL)) vr_host_notify_hand_out_now(host, block);
}

// A copy of a block at one moment.
struct vr_host_facts {
    uint64_t address;
    uint64_t size;
    uint64_t requested; // 0 for a free block
    uint64_t stream;
    struct vram_pool_id pool;
    uint32_t stack;
    enum vr_host_state state;
};
// Copies all blocks, by ascending address, into memory that the caller frees. Calls at(), which may be NULL, at the moment of the copy,
// under the mutex. NO_HOST_MEMORY.
enum vram_status vr_host_copy(struct vram_host *host, struct vr_host_facts **blocks, size_t *count, void (*at)(void *user), void *user);

#endif
