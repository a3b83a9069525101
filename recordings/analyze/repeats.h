// repeats.h: the period in which a history's allocations (stack and size) repeat, and where its turns begin.
// Worked out a piece at a time, for those who must not wait.
#ifndef VR_ANALYZE_REPEATS_H
#define VR_ANALYZE_REPEATS_H

#include "analyze/view.h"

struct vr_repeats;

// Borrows the history. Given to the caller: vr_repeats_destroy(). NO_HOST_MEMORY.
enum vram_status vr_repeats_create(const struct vr_history *history, struct vr_repeats **repeats);
// NULL is ignored.
void vr_repeats_destroy(struct vr_repeats *repeats);
// Looks at up to `events` further events. *share: how much of all is done, 1 when it is finished. NO_HOST_MEMORY.
enum vram_status vr_repeats_go_on(struct vr_repeats *repeats, size_t events, double *share);
// Of what is finished: the events that turns begin with, ascending, and whether they are those of a loop, not layers say. *first is given
// to the caller (free(); NULL for none), once.
void vr_repeats_take(struct vr_repeats *repeats, size_t **first, size_t *count, bool *loop);

#endif
