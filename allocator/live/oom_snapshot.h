// oom_snapshot.h: a snapshot that is taken because memory ran out also says who else held the device.
#ifndef VR_LIVE_OOM_SNAPSHOT_H
#define VR_LIVE_OOM_SNAPSHOT_H

#include "vram/accounts.h"
#include "vram/oom.h"
#include "vram/snapshot.h"

struct vr_oom_facts {
    struct vram_accounts accounts;
    uint64_t device_total_bytes;
    uint64_t limit_bytes; // of the process on that device; UINT64_MAX: none
};

// vram_snapshot() of everything and vram_snapshot_save(), with `oom_facts` (borrowed) among the settings.
enum vram_status vr_snapshot_at_oom(struct vram_allocator *allocator, const struct vr_oom_facts *oom_facts,
                                    struct vram_recording **recording, struct vram_error *error);
enum vram_status vr_snapshot_save_at_oom(struct vram_allocator *allocator, const struct vr_oom_facts *oom_facts, const char *pattern,
                                         struct vram_error *error);
// Writes it into the file that a history of the allocator is streamed into; OK where there is none. IO, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_history_at_oom(struct vram_allocator *allocator, const struct vr_oom_facts *facts);

#endif
