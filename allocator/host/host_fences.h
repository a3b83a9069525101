// host_fences.h: uses of blocks by streams, and when they have passed.
#ifndef VR_HOST_HOST_FENCES_H
#define VR_HOST_HOST_FENCES_H

#include "host/host_state.h"

// Notes that a live block is used on a stream of a context; repeated uses count once. NO_HOST_MEMORY. Called with the state lock held.
enum vram_status vr_host_use_add(struct vram_host *host, struct vr_host_block *block, uint64_t context, uint64_t stream);
// Drops all uses attached to a block, without waiting for them. Called with the state lock held.
void vr_host_uses_drop(struct vram_host *host, struct vr_host_block *block);

// Records an event for each use of a block that is being freed, except where a capture forbids it. DRIVER, NO_HOST_MEMORY: events recorded
// so far stay with their uses. Called without locks.
enum vram_status vr_host_uses_fence(struct vram_host *host, const struct vr_host_block *block);
// Takes the events back from the uses of a block. Called with the state lock held.
void vr_host_uses_unfence(struct vr_host_block *block);
// Makes the block pending: uses with an event join their lane, the others are deferred. Called with the state lock held.
void vr_host_uses_queue(struct vram_host *host, struct vr_host_block *block);

// IF_FREE: checks which uses have passed, unless another thread is checking. NOW: always checks. WAIT: waits for all uses except those that
// a capture still holds back.
enum vr_host_poll { VR_HOST_POLL_IF_FREE, VR_HOST_POLL_NOW, VR_HOST_POLL_WAIT };
// Completes the frees of blocks whose uses have passed. This may send blocks out: call vr_host_give_back() afterwards. Returns the driver's
// first failure, which leaves its uses pending. Called without locks.
enum vram_status vr_host_poll(struct vram_host *host, enum vr_host_poll how);

// Frees a block whose uses have completed, or sends it out if it is too large to be kept. Called with the state lock held.
void vr_host_finish(struct vram_host *host, struct vr_host_block *block);

// Frees events, contexts, lanes and uses at the end. Only uses attached to blocks may be left; they are dropped.
void vr_host_fences_release(struct vram_host *host);

// The thread of pinned_use_background_threads, that looks for uses that have passed so that requests need not.

// Starts the thread if the options want it and it is not running. Without it, requests check themselves. Called without locks.
void vr_host_background_start(struct vram_host *host);
// Returns whether requests can leave checking to the thread. Called with the state lock held.
bool vr_host_background_serves(const struct vram_host *host);
// Wakes the thread because a use waits. Called with the state lock held.
void vr_host_background_wake(struct vram_host *host);
// Ends the thread and waits for its end.
void vr_host_background_end(struct vram_host *host);

#endif
