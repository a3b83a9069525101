// cure.h: the search for what would have let one out-of-memory event fit (vram/oom.h), a few replays at a time.
#ifndef VR_REPLAY_CURE_H
#define VR_REPLAY_CURE_H

#include "vram/oom.h"
#include "vram/replay.h"

struct vr_cure_search;

// The search for the device's last out-of-memory event, `oom`, which is looked at now only. Borrows the recording. end_ns: monotonic time
// at which the search ends; 0: none. *search is given to the caller: vr_cure_end(). NO_HOST_MEMORY.
enum vram_status vr_cure_begin(const struct vram_recording *recording, uint32_t device, const struct vram_report_oom *oom, uint64_t end_ns,
                               struct vr_cure_search **search);
// Goes on for at most so many replays of the history. *share: how much of the most it can take was done, 1 when the cure is known; what the
// replays needed is given back then. NO_HOST_MEMORY, and what vram_replay_whatif() gives; the search can begin anew then.
enum vram_status vr_cure_go_on(struct vr_cure_search *search, size_t replays, double *share, struct vram_error *error);
// Borrowed until vr_cure_end(); UNFINISHED while it is not known.
const struct vram_cure *vr_cure_so_far(const struct vr_cure_search *search);
// The memory to begin replays with so that today's setting fails as it did when `oom` was recorded: an empty cache, or, where the ring lost
// the beginning, the memory as it lay when the recording began. COLD where neither shows the failure. Statuses of vram_replay_whatif().
enum vram_status vr_cure_start(const struct vram_recording *recording, uint32_t device, const struct vram_report_oom *oom,
                               enum vram_whatif_start *start, struct vram_error *error);
// NULL is ignored.
void vr_cure_end(struct vr_cure_search *search);

#endif
