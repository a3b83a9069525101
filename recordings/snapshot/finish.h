// finish.h: from what a machine holds when its input is read to a model.
#ifndef VR_SNAPSHOT_FINISH_H
#define VR_SNAPSHOT_FINISH_H

#include "snapshot/machine.h"

// Makes *model (which must be zeroed, and is when it fails) of the value on top of the machine's stack, and moves the tables into it. The
// machine is of no use afterwards but for vr_machine_release(). BAD_INPUT when the value is no recording; LIMIT, NO_HOST_MEMORY.
enum vram_status vr_finish(struct vr_machine *machine, struct vr_model *model);

#endif
