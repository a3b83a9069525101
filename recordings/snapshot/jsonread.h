// jsonread.h: reads JSON into a machine.
#ifndef VR_SNAPSHOT_JSONREAD_H
#define VR_SNAPSHOT_JSONREAD_H

#include "snapshot/machine.h"
#include "snapshot/input.h"

// Reads one JSON value and nothing after it but white space; it is then the top of the machine's stack. NaN and Infinity are accepted, as
// Python writes them. BAD_INPUT, IO, LIMIT (nesting beyond 500 levels), NO_HOST_MEMORY, with the offset in the machine's error.
enum vram_status vr_json_read(struct vr_input *input, struct vr_machine *machine);

#endif
