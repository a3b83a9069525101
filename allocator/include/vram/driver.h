// vram/driver.h: where device memory comes from.
//
// A driver is the CUDA driver API behind one handle. There are four: NVIDIA's and AMD's HIP runtime, found at run time; the simulated one,
// which needs no GPU (below); and a wrapper that fails chosen calls, for tests. An allocator borrows its driver: the driver must outlive
// every allocator made on it.
#ifndef VRAM_DRIVER_H
#define VRAM_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_driver;

// Loads libcuda.so.1, or the file that the environment variable VRAM_LIBCUDA names, and resolves its functions by
// cuGetProcAddress. NO_DRIVER with the reason in *error where there is none; DRIVER when cuInit fails. *driver is given to the
// caller: vram_driver_destroy(). Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_cuda(struct vram_driver **driver, struct vram_error *error);

// The same for AMD's devices: loads libamdhip64.so.7, .6 or .5, or the file that VRAM_LIBHIP names. Results are CUresult's numbers, which
// HIP shares. Without ROCm 6 there is no virtual memory: expandable and paged segments say UNSUPPORTED. Has run on no AMD device yet.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_hip(struct vram_driver **driver, struct vram_error *error);
// The machine's: NVIDIA's where it can be used, else AMD's. What an allocator takes that is given no driver. Only NVIDIA's where
// VRAM_LIBCUDA names a file and VRAM_LIBHIP none. The error is that of the one that is there, of NVIDIA's when neither is. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_system(struct vram_driver **driver, struct vram_error *error);

// The CUDA version that the driver implements: 13000 for 13.0; HIP's for HIP: 60300000 for 6.3. DRIVER.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_version(struct vram_driver *driver, int32_t *version);
// How many devices it has. DRIVER.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_devices(struct vram_driver *driver, uint32_t *count);

// What a device can do, as the driver says.
struct vram_device_facts {
    char name[128];
    uint64_t total_bytes;
    uint64_t free_bytes; // now
    int32_t compute_major, compute_minor;
    int32_t multiprocessors;
    uint64_t granularity_bytes; // pages of expandable segments; 0 without virtual memory
    bool integrated;            // its memory is the host's
    bool virtual_memory;        // expandable segments are possible
    bool file_handles;          // pages can be shared as file descriptors
    bool fabric_handles;        // pages can be shared across machines
    bool rdma;                  // pages can be registered with network cards
    bool memory_pools;          // cudaMallocAsync
    bool managed;
    bool multicast;
    bool host_register;     // cudaHostRegister
    bool unified_addresses; // one address space with the host
};
// Asks the driver about a device (a number below vram_driver_devices()). Makes its primary context for a moment, where it has none, to
// learn what is free. INVALID_ARGUMENT, DRIVER.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_device_facts(struct vram_driver *driver, uint32_t device,
                                                                  struct vram_device_facts *facts, struct vram_error *error);
// Whether work of `device` could use memory of `peer`. INVALID_ARGUMENT, DRIVER.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_can_access_peer(struct vram_driver *driver, uint32_t device, uint32_t peer, bool *can);

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
