// live_host.h: pinned host memory in a history and in snapshots.
#ifndef VR_LIVE_LIVE_HOST_H
#define VR_LIVE_LIVE_HOST_H

#include "live/live_model.h"

// Records this pinned memory from now on, instead of the previous one (NULL: none). Called with the tracer's mutex held.
void vr_tracer_record_host(struct vr_tracer *tracer, struct vram_host *host);
// Copies the recorded pinned memory as one more device, with its history if requested. NO_HOST_MEMORY.
enum vram_status vr_copy_host(struct vr_copied *copied);
// Copies only the state of the recorded pinned memory. Calls at() at that moment, under the pinned allocator's mutex; not if memory runs
// out.
enum vram_status vr_copy_host_state(struct vr_copied *copied, void (*at)(void *user), void *user);

#endif
