// host_background.h: the thread of pinned_use_background_threads, that looks for uses that have passed so that requests need not.
#ifndef VR_HOST_HOST_BACKGROUND_H
#define VR_HOST_HOST_BACKGROUND_H

#include "host/host_state.h"

// Starts the thread where the options want it and it does not run. Without it, requests look themselves. Without locks.
void vr_host_background_start(struct vram_host *host);
// Whether requests can leave looking to the thread. Under the state lock.
bool vr_host_background_serves(const struct vram_host *host);
// There is something to look for. Under the state lock.
void vr_host_background_wake(struct vram_host *host);
// Ends the thread and waits until it has ended.
void vr_host_background_end(struct vram_host *host);

#endif
