// misplaced.h: data that is no recording but has one inside, or a part of one: what to do about it, in the refusal.
#ifndef VR_SNAPSHOT_MISPLACED_H
#define VR_SNAPSHOT_MISPLACED_H

#include "snapshot/machine.h"

// A dictionary without `segments` and `device_traces` / a list, in place of a recording. BAD_INPUT with a line; OK where it is none of
// these.
enum vram_status vr_misplaced_dict(struct vr_machine *machine, const uint64_t *pairs, size_t count);
enum vram_status vr_misplaced_list(struct vr_machine *machine, const uint64_t *items, size_t count);

#endif
