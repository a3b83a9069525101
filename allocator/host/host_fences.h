// host_fences.h: uses of blocks by streams, and when they have passed.
#ifndef VR_HOST_HOST_FENCES_H
#define VR_HOST_HOST_FENCES_H

#include "host/host_state.h"

// Notes that a live block is used on a stream of a context; a use that is there already is enough. NO_HOST_MEMORY. Under the state lock.
enum vram_status vr_host_use_add(struct vram_host *host, struct vr_host_block *block, uint64_t context, uint64_t stream);
// Gives all uses of a block up that hang on it, without waiting for them. Under the state lock.
void vr_host_uses_drop(struct vram_host *host, struct vr_host_block *block);

// Records an event for each use of a block that is being freed, except where a capture forbids it. DRIVER, NO_HOST_MEMORY: the events
// recorded so far stay with their uses. Without locks.
enum vram_status vr_host_uses_fence(struct vram_host *host, const struct vr_host_block *block);
// Takes the events back from the uses of a block. Under the state lock.
void vr_host_uses_unfence(struct vr_host_block *block);
// Makes the block pending: uses with an event join their lane, the others are deferred. Under the state lock.
void vr_host_uses_queue(struct vram_host *host, struct vr_host_block *block);

// IF_FREE: looks which uses have passed, unless another thread is doing so. NOW: always. WAIT: waits for them, except for those that a
// capture still holds back.
enum vr_host_poll { VR_HOST_POLL_IF_FREE, VR_HOST_POLL_NOW, VR_HOST_POLL_WAIT };
// Completes the frees of blocks whose uses have passed; blocks may have been sent out afterwards (vr_host_give_back()). The first
// failure of the driver is returned; what it concerns stays pending. Without locks.
enum vram_status vr_host_poll(struct vram_host *host, enum vr_host_poll how);

// A block whose uses are over is free, or on its way out where it is too large to be kept. Under the state lock.
void vr_host_finish(struct vram_host *host, struct vr_host_block *block);

// Frees events, contexts, lanes and uses, at the end; no use is left but those of blocks, which are forgotten.
void vr_host_fences_release(struct vram_host *host);

// The thread of pinned_use_background_threads, that looks for uses that have passed so that requests need not.

// Starts the thread where the options want it and it does not run. Without it, requests look themselves. Without locks.
void vr_host_background_start(struct vram_host *host);
// Whether requests can leave looking to the thread. Under the state lock.
bool vr_host_background_serves(const struct vram_host *host);
// There is something to look for. Under the state lock.
void vr_host_background_wake(struct vram_host *host);
// Ends the thread and waits until it has ended.
void vr_host_background_end(struct vram_host *host);

#endif
