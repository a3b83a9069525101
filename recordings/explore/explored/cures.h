// cures.h: what would have let a device's last out-of-memory event fit, as the report finds it.
#ifndef VR_EXPLORE_EXPLORED_CURES_H
#define VR_EXPLORE_EXPLORED_CURES_H

#include "explore/explored/explored.h"
#include "vram/oom.h"

// Makes at most so many further replays of the history. *share: how much of the work is done; when it is 1, *cure is what was found: NULL
// where nothing failed, UNFINISHED where the history is too long to be replayed while somebody waits. Borrowed. Statuses of
// vram_cures_find(), LIMIT.
enum vram_status vr_explored_cure(struct vr_explored_recording *recording, struct vr_explored_device *device, size_t replays, double *share,
                                  const struct vram_cure **cure, struct vram_error *error);

// oom.c of analyze about a device, its last events examined; facts are of the arena. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_explored_ooms(struct vr_explored_recording *recording, struct vr_explored_device *device, uint64_t memory_bytes,
                                  struct vr_arena *arena, struct vram_report_device *facts);

#endif
