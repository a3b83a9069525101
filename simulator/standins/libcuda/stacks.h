// stacks.h: call stacks of the program, taken and resolved by libvram if VRAM_SIM_STACKS names it.
#ifndef VR_STANDINS_LIBCUDA_STACKS_H
#define VR_STANDINS_LIBCUDA_STACKS_H

#include "vram/stack.h"

// Functions of libvram and a table of stacks; `table` is NULL if it is not available.
struct vr_libcuda_stacks {
    struct vram_stacks *table;
    uint32_t (*take)(struct vram_stacks *, enum vram_stack_kind, uint32_t);
    size_t (*frames_of)(struct vram_stacks *, uint32_t, struct vram_frame *, size_t);
    const char *(*module_of)(struct vram_stacks *, uint32_t, const char *const *, size_t);
};

// Opens libvram at the first call, and returns the same object at every call. Any thread.
const struct vr_libcuda_stacks *vr_libcuda_stacks(void);

// Returns whether the name is that of a function of the driver or the runtime, such as cuMemcpyDtoH_v2 or cudaMemcpyAsync.
bool vr_libcuda_is_api(const char *name);

#endif
