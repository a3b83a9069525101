// savings.h: what paged memory would have saved on a device, as the report finds it.
#ifndef VR_EXPLORE_EXPLORED_SAVINGS_H
#define VR_EXPLORE_EXPLORED_SAVINGS_H

#include "explore/explored/explored.h"
#include "vram/replay.h"

// Makes at most so many further replays of the history. *share: how much of the work is done; when it is 1, *saving is what was found: NULL
// for pinned host memory. Borrowed. Statuses of vram_paged_savings_find(), LIMIT.
enum vram_status vr_explored_saving(struct vr_explored_recording *recording, struct vr_explored_device *device, size_t replays,
                                    double *share, const struct vram_paged_saving **saving, struct vram_error *error);

#endif
