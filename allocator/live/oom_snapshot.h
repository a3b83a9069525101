// oom_snapshot.h: snapshots taken when memory ran out, which also record the other holders of the device.
#ifndef VR_LIVE_OOM_SNAPSHOT_H
#define VR_LIVE_OOM_SNAPSHOT_H

#include "vram/accounts.h"
#include "vram/oom.h"
#include "vram/snapshot.h"

struct vr_oom_facts {
    struct vram_accounts accounts;
    uint64_t device_total_bytes;
    uint64_t limit_bytes; // of the process on that device; UINT64_MAX: no limit
};

// vram_snapshot() and vram_snapshot_save() of everything, with `oom_facts` (borrowed) among the settings.
enum vram_status vr_snapshot_at_oom(struct vram_allocator *allocator, const struct vr_oom_facts *oom_facts,
                                    struct vram_recording **recording, struct vram_error *error);
enum vram_status vr_snapshot_save_at_oom(struct vram_allocator *allocator, const struct vr_oom_facts *oom_facts, const char *pattern,
                                         struct vram_error *error);
// Writes the facts into the file to which the allocator's history is streamed; OK without such a file. IO, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_history_at_oom(struct vram_allocator *allocator, const struct vr_oom_facts *facts);

#endif
