// check_stacks.h: the stacks of the checker's findings. All functions may be called from any thread.
#ifndef VR_STANDINS_LIBCUDA_CHECK_STACKS_H
#define VR_STANDINS_LIBCUDA_CHECK_STACKS_H

#include "base/text.h"

// Returns the calling thread's stack: of machine code and Python and, on a thread of PyTorch's engine, that of the backward pass's caller.
// VR_SIM_STACK_HIDDEN while the thread's calls are hidden; 0 if stacks are not available.
uint32_t vr_libcuda_check_stack(void);
// The checker does not get the thread's calls of the driver, or gets them again. Returns what held before.
bool vr_libcuda_check_hide(bool hidden);
bool vr_libcuda_check_is_hidden(void);
// Returns whether the calling thread runs Python. True if that is not known.
bool vr_libcuda_runs_python(void);

// Appends the lines of a stack's frames.
void vr_libcuda_check_frames(struct vr_text *text, uint32_t stack);
// Appends a field without the characters that separate fields and lines.
void vr_libcuda_check_field(struct vr_text *text, const char *field);

#endif
