// paged_saving.h: what paged memory would have saved on one device (vram/replay.h), a few replays at a time.
#ifndef VR_REPLAY_PAGED_SAVING_H
#define VR_REPLAY_PAGED_SAVING_H

#include "vram/replay.h"
#include "vram/report.h"

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
