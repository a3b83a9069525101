// rmm.h: logs of RMM's logging_resource_adaptor.
#ifndef VR_SNAPSHOT_RMM_H
#define VR_SNAPSHOT_RMM_H

#include "model/model.h"
#include "snapshot/input.h"

// How every such log begins.
#define VR_RMM_MAGIC        "Thread,Time,Action,Pointer,Size,Stream"
#define VR_RMM_MAGIC_LENGTH 38

// Reads a log into *model (zeroed; zeroed again on failure). A free is a free_requested and a free_completed, as the log does not tell them
// apart; a failed allocation is an oom. Times are of a day that is not told: microseconds since its midnight, going on after the next one.
// BAD_INPUT names the line; LIMIT, IO, NO_HOST_MEMORY.
enum vram_status vr_rmm_read(struct vr_input *input, struct vr_model *model, struct vram_error *error);

#endif
