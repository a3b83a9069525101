// layers.h: whether turns that repeat are the layers of one pass, told by the call stacks.
#ifndef VR_ANALYZE_LAYERS_H
#define VR_ANALYZE_LAYERS_H

#include "analyze/view.h"

// *pass is set to 1 + the frame of the forward pass that all allocations between the first and the last turn were made in: a function
// called `forward` or `__call__`, at one line of it. 0: there is none. The steps of a loop have no such frame: a pass through a whole model
// goes through several lines of its function, and a training step leaves it. NO_HOST_MEMORY.
enum vram_status vr_layers_pass(const struct vr_view *view, const size_t *first, size_t count, bool loop, uint32_t *pass);

#endif
