// vram/driver.h: where device memory comes from.
//
// A driver is the CUDA driver API behind one handle. There are three: NVIDIA's, found at run time; the simulated one of
// vram/sim.h, which needs no GPU; and a wrapper that fails chosen calls, for tests. An allocator borrows its driver: the
// driver must outlive every allocator made on it.
#ifndef VRAM_DRIVER_H
#define VRAM_DRIVER_H

#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_driver;

// Loads libcuda.so.1, or the file that the environment variable VRAM_LIBCUDA names, and resolves its functions by
// cuGetProcAddress. NO_DRIVER with the reason in *error where there is none; DRIVER when cuInit fails. *driver is given to the
// caller: vram_driver_destroy(). Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_cuda(struct vram_driver **driver, struct vram_error *error);

// Wraps `inner` (borrowed; it must outlive the wrapper) so that chosen calls fail. *driver is given to the caller.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_fault(struct vram_driver *inner, struct vram_driver **driver);
// From now on the nth (1 = the next) call of `call` fails with `result` (a CUresult, not 0) without reaching the inner driver;
// `call` is a driver function's base name ("cuMemAlloc") or NULL for any call that can fail. nth = 0 takes the fault back.
// One fault at a time. INVALID_ARGUMENT for an unknown name. Not while other threads use the driver.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_fault_set(struct vram_driver *driver, const char *call, uint64_t nth, int32_t result);
// How many calls have been failed on purpose since the wrapper was made.
VRAM_API uint64_t vram_driver_fault_count(const struct vram_driver *driver);

// Takes the handle back. NULL is ignored.
VRAM_API void vram_driver_destroy(struct vram_driver *driver);

#ifdef __cplusplus
}
#endif
#endif
