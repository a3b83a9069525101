// live_host.h: pinned host memory in a history and in snapshots.
#ifndef VR_LIVE_LIVE_HOST_H
#define VR_LIVE_LIVE_HOST_H

#include "live/live_model.h"

// From now on this memory (NULL: none) is recorded, and none before. With the tracer's mutex.
void vr_tracer_record_host(struct vr_tracer *tracer, struct vram_host *host);
// Copies the memory that is recorded as one device more, with its history where one is asked for. NO_HOST_MEMORY.
enum vram_status vr_copy_host(struct vr_copied *copied);
// Only what it looks like. at() is called at that moment, under the memory's mutex; not where there is no memory for it.
enum vram_status vr_copy_host_state(struct vr_copied *copied, void (*at)(void *user), void *user);

#endif
