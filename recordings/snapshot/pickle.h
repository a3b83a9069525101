// pickle.h: reads the opcodes of Python's pickles. Only data: whatever would make Python call or import something is refused.
#ifndef VR_SNAPSHOT_PICKLE_H
#define VR_SNAPSHOT_PICKLE_H

#include "snapshot/machine.h"
#include "snapshot/input.h"

// Runs the pickle at input->next until its STOP; its value is then the top of the machine's stack, and what follows is left.
// BAD_INPUT (damaged, or not plain data), IO, LIMIT, NO_HOST_MEMORY, with the offset of the opcode in the machine's error.
enum vram_status vr_pickle_read(struct vr_input *input, struct vr_machine *machine);

#endif
