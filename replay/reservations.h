// reservations.h: the address space that the expandable segments of a history reserved (replay.md §the-room-at-the-end). No recording says
// where a reservation begins or ends; what is mapped, and what else is in use at the same time, tells some of it.
#ifndef VR_REPLAY_RESERVATIONS_H
#define VR_REPLAY_RESERVATIONS_H

#include "replay/start.h"

struct vr_reservations {
    // By segment of the start state: where the reservation begins whose first mapped range it is, which is below it where a range there was
    // mapped later. Its own address for all others.
    uint64_t *bases;
    // And where it ends at the latest, because something else begins there at the same time; UINT64_MAX: nothing does.
    uint64_t *ends;
    // The shortest distance from the beginning of a reservation that was made inside the history to what lies behind it at the same time;
    // UINT64_MAX: nothing does. Of those of the start state it is not known whether they begin further below.
    uint64_t shortest;
};

// longest: how long a reservation is at most, UINT64_MAX where that is not known. vr_reservations_release() also after a failure.
// NO_HOST_MEMORY, LIMIT.
enum vram_status vr_reservations_find(const struct vr_recorded_device *recorded, const struct vr_start *start, uint64_t longest,
                                      struct vr_reservations *reservations);
void vr_reservations_release(struct vr_reservations *reservations);

#endif
