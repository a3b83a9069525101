// on_oom.h: what VRAM_ON_OOM asks for when memory runs out: a snapshot, or a page that says why and what would have helped.
#ifndef VR_ENTRY_ON_OOM_H
#define VR_ENTRY_ON_OOM_H

#include <stdatomic.h>

#include "vram/allocator.h"

struct vr_watch {
    struct vram_allocator *allocator;
    const char *pattern; // of the file's name
    bool report;         // a page instead of a snapshot
    _Atomic uint32_t failures;
};

// A vram_oom_observer; user is the struct vr_watch. On the failing thread, without a lock: asks NVML, takes a snapshot, and for a page
// replays it on the simulated driver for at most two seconds. The device is not allocated from. After 16 failures it does nothing. Nobody
// could be told that it failed: the request's own failure is what the program sees.
void vr_on_oom(const struct vram_oom *oom, void *user);

#endif
