// timeline.h: memory timelines of PyTorch's profiler, as export_memory_timeline("....raw.json.gz") writes them.
#ifndef VR_SNAPSHOT_TIMELINE_H
#define VR_SNAPSHOT_TIMELINE_H

#include "model/model.h"
#include "snapshot/input.h"

// Whether JSON that begins so is one: a list of lists of numbers.
bool vr_timeline_begins(const unsigned char *text, size_t length);

// Reads a timeline into *model (zeroed; zeroed again on failure). A row is [nanoseconds, action, bytes, category]: action 1 (there before)
// and 2 (made) are an alloc, 4 (destroyed; negative bytes) is a free_requested and a free_completed; 3 moves bytes from one category to
// another, in two rows. The timeline names no allocation: a row that destroys ends the newest one of its size and category. Addresses are
// made up, stacks are the category alone. Source: torch/profiler/_memory_profiler.py, export_memory_timeline_raw(). BAD_INPUT (also for a
// row that ends what never began), LIMIT, IO, NO_HOST_MEMORY.
enum vram_status vr_timeline_read(struct vr_input *input, struct vr_model *model, struct vram_error *error);

#endif
