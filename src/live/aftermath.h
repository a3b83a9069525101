// aftermath.h: a snapshot that is taken because memory ran out also says who else held the device.
#ifndef VR_LIVE_AFTERMATH_H
#define VR_LIVE_AFTERMATH_H

#include "vram/oom.h"
#include "vram/snapshot.h"

struct vr_aftermath {
    struct vram_accounts accounts;
    uint64_t device_total_bytes;
};

// vram_snapshot() of everything and vram_snapshot_save(), with `aftermath` (borrowed) among the settings.
enum vram_status vr_snapshot_after(struct vram_allocator *allocator, const struct vr_aftermath *aftermath,
                                   struct vram_recording **recording, struct vram_error *error);
enum vram_status vr_snapshot_save_after(struct vram_allocator *allocator, const struct vr_aftermath *aftermath, const char *pattern,
                                        struct vram_error *error);
// Writes it into the file that a history of the allocator is streamed into; OK where there is none. IO, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_stream_aftermath(struct vram_allocator *allocator, const struct vr_aftermath *aftermath);

#endif
