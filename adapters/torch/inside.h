// inside.h: what the adapter's files share.
#ifndef VRAM_TORCH_INSIDE_H
#define VRAM_TORCH_INSIDE_H

#include "vram/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

// The allocator of the process, made if need be. A status; the failure is noted.
int vr_torch_first_use(struct vram_allocator **allocator);
// The options that the allocator is made with: those of the first variable that is set; "" without. Never NULL.
const char *vr_torch_environment_options(void);
// The status as int, noting a failure of a function of the library that gives no sentence of its own.
int vr_torch_answer(enum vram_status status, const char *what);
// The same with the sentence of a function that gives one.
int vr_torch_answer_error(enum vram_status status, const struct vram_error *error);
// What is free in the pools of tags (vram_torch_tag_begin()) goes back, with the rest of the cache. Statuses of vram_pool_empty_cache().
enum vram_status vr_torch_trim_tags(void);
// What torch.OutOfMemoryError says: PyTorch's first sentences, which programs and readers of logs look for, and vram's report. At most
// `capacity` bytes with the NUL.
void vr_torch_oom_message(const struct vram_oom *oom, char *text, size_t capacity);
// Leaves by a c10::OutOfMemoryError where vram_torch_use_oom_error() found it; else comes back.
void vr_torch_raise_oom(const char *function, const char *message);
// The end of a hook that failed: does not come back where PyTorch's function throws.
void vr_torch_raise_last(const char *function);

#ifdef __cplusplus
}
#endif
#endif
