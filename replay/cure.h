// cure.h: searches by replays: the cure of an out-of-memory event, and what paged memory would have saved.
#ifndef VR_REPLAY_CURE_H
#define VR_REPLAY_CURE_H

#include "vram/oom.h"
#include "vram/replay.h"
#include "vram/report.h"

// ---- The search for the cure of an out-of-memory event (vram/oom.h), a few replays at a time.

struct vr_cure_search;

// Begins the search for the device's last out-of-memory event, `oom`, which is read only during this call. Borrows the recording. end_ns:
// monotonic time at which the search ends; 0: no end. The caller owns *search: vr_cure_end(). NO_HOST_MEMORY.
enum vram_status vr_cure_begin(const struct vram_recording *recording, uint32_t device, const struct vram_report_oom *oom, uint64_t end_ns,
                               struct vr_cure_search **search);
// Continues for at most `replays` replays of the history. *share is the completed share of the maximum work; 1 when the cure is known,
// after which the replays' memory is freed. NO_HOST_MEMORY, and statuses of vram_replay_whatif(); the search may then be begun again.
enum vram_status vr_cure_go_on(struct vr_cure_search *search, size_t replays, double *share, struct vram_error *error);
// Returns the cure, borrowed until vr_cure_end(); UNFINISHED while it is unknown.
const struct vram_cure *vr_cure_so_far(const struct vr_cure_search *search);
// Finds the initial memory state from which replays with the settings in force fail as when `oom` was recorded: an empty cache or, if the
// ring lost the beginning, the memory state at the beginning of the recording. COLD if neither reproduces the failure. Returns the statuses
// of vram_replay_whatif().
enum vram_status vr_cure_start(const struct vram_recording *recording, uint32_t device, const struct vram_report_oom *oom,
                               enum vram_whatif_start *start, struct vram_error *error);
// NULL is ignored.
void vr_cure_end(struct vr_cure_search *search);

// ---- The search for what paged memory would have saved on one device (vram/replay.h), a few replays at a time.

struct vr_paged_search;

// Begins the search; reads only the peaks and the last out-of-memory error of the report's device, and only during this call. Borrows the
// recording. end_ns: monotonic time at which the search ends; 0: no end. The caller owns *search: vr_paged_search_end(). NO_HOST_MEMORY.
enum vram_status vr_paged_search_begin(const struct vram_recording *recording, const struct vram_report_device *device, uint64_t end_ns,
                                       struct vr_paged_search **search);
// Continues for at most `replays` replays. *share is the completed share of the maximum work, 1 when the saving is known. Returns the
// statuses of vr_cure_go_on().
enum vram_status vr_paged_search_go_on(struct vr_paged_search *search, size_t replays, double *share, struct vram_error *error);
// Returns the saving, borrowed until vr_paged_search_end(); LONG while it is unknown.
const struct vram_paged_saving *vr_paged_search_so_far(const struct vr_paged_search *search);
// NULL is ignored.
void vr_paged_search_end(struct vr_paged_search *search);

#endif
