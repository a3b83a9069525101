// inside.h: shared by the adapter's files.
#ifndef VRAM_TORCH_INSIDE_H
#define VRAM_TORCH_INSIDE_H

#include "vram/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns the process's allocator, creating it if necessary. Returns a status; a failure is noted for vram_torch_error().
int vr_torch_first_use(struct vram_allocator **allocator);
// Returns the allocator's options: those of the first variable that is set, or "". Never returns NULL.
const char *vr_torch_environment_options(void);
// Returns the status as int, noting a failure of a library function that has no message of its own.
int vr_torch_answer(enum vram_status status, const char *what);
// Returns the status as int, noting a failure with the function's message.
int vr_torch_answer_error(enum vram_status status, const struct vram_error *error);
// Releases the free memory in the pools of tags (vram_torch_tag_begin()) together with the rest of the cache. Returns the statuses of
// vram_pool_empty_cache().
enum vram_status vr_torch_trim_tags(void);
// Writes the message of torch.OutOfMemoryError: PyTorch's first sentences, which programs and log readers look for, then vram's report. At
// most `capacity` bytes with the NUL.
void vr_torch_oom_message(const struct vram_oom *oom, char *text, size_t capacity);
// Throws a c10::OutOfMemoryError if vram_torch_use_oom_error() found the class; returns otherwise.
void vr_torch_raise_oom(const char *function, const char *message);
// Call at the end of a hook that failed. Does not return if PyTorch's function throws.
void vr_torch_raise_last(const char *function);

#ifdef __cplusplus
}
#endif
#endif
