// kineto.h: traces of PyTorch's profiler (Kineto, Chrome's trace format) with memory events in them.
#ifndef VR_SNAPSHOT_KINETO_H
#define VR_SNAPSHOT_KINETO_H

#include "model/model.h"
#include "snapshot/input.h"

// Whether JSON that begins so is such a trace: its first key tells.
bool vr_kineto_begins(const unsigned char *text, size_t length);

// Reads a trace into *model (zeroed; zeroed again on failure), of all that is in it only what concerns memory. A `[memory]` event of a
// device with positive bytes is an alloc, with negative ones a free_requested and a free_completed; `[OutOfMemory]` is an oom. Stacks are
// the operators and Python functions of the same thread that were under way. user_annotation becomes marks START and END. BAD_INPUT (also
// for a trace without memory events), LIMIT, IO, NO_HOST_MEMORY.
enum vram_status vr_kineto_read(struct vr_input *input, struct vr_model *model, struct vram_error *error);

#endif
