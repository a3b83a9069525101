// pickle.h: reads the opcodes of Python's pickles. Only data: whatever would make Python call or import something is refused.
#ifndef VR_PICKLE_H
#define VR_PICKLE_H

#include "snapshot/machine.h"
#include "snapshot/source.h"

// Runs the pickle at source->next until its STOP; its value is then the top of the machine's stack, and what follows is left.
// BAD_INPUT (damaged, or not plain data), IO, LIMIT, NO_HOST_MEMORY, with the offset of the opcode in the machine's error.
enum vram_status vr_pickle_read(struct vr_source *source, struct vr_machine *machine);

#endif
