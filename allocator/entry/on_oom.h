// on_oom.h: runs VRAM_ON_OOM's action when memory runs out: writes a snapshot, or a report with the cause and what would have helped.
#ifndef VR_ENTRY_ON_OOM_H
#define VR_ENTRY_ON_OOM_H

#include <stdatomic.h>

#include "vram/allocator.h"

struct vr_watch {
    struct vram_allocator *allocator;
    const char *pattern; // for the file name
    bool report;         // a report instead of a snapshot
    _Atomic uint32_t failures;
};

// A vram_oom_observer whose user is the struct vr_watch. Called on the failing thread, without a lock. Asks NVML, takes a snapshot, and for
// a report replays it on the simulated driver for at most two seconds. Does not allocate from the device. Does nothing after 16 failures.
// Its own failures are not reported: the program sees the request's failure.
void vr_on_oom(const struct vram_oom *oom, void *user);

#endif
