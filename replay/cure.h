// cure.h: the searches by replays for what would have helped: a cure of an out-of-memory event, and what paged memory would have saved.
#ifndef VR_REPLAY_CURE_H
#define VR_REPLAY_CURE_H

#include "vram/oom.h"
#include "vram/replay.h"
#include "vram/report.h"

// ---- The search for what would have let one out-of-memory event fit (vram/oom.h), a few replays at a time.

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

// ---- What paged memory would have saved on one device (vram/replay.h), a few replays at a time.

struct vr_paged_search;

// Of the report's device only its peaks and its last out of memory count, now. Borrows the recording. end_ns: monotonic time at which the
// search ends; 0: none. *search is given to the caller: vr_paged_search_end(). NO_HOST_MEMORY.
enum vram_status vr_paged_search_begin(const struct vram_recording *recording, const struct vram_report_device *device, uint64_t end_ns,
                                       struct vr_paged_search **search);
// Goes on for at most so many replays. *share: how much of the most it can take was done, 1 when all is known. As vr_cure_go_on().
enum vram_status vr_paged_search_go_on(struct vr_paged_search *search, size_t replays, double *share, struct vram_error *error);
// Borrowed until vr_paged_search_end(); LONG while it is not known.
const struct vram_paged_saving *vr_paged_search_so_far(const struct vr_paged_search *search);
// NULL is ignored.
void vr_paged_search_end(struct vr_paged_search *search);

#endif
