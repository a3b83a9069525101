// vram/driver.h: drivers, through which an allocator gets device memory.
//
// A driver is the CUDA driver API behind one handle. There are four: NVIDIA's driver and AMD's HIP runtime, found at run time; the
// simulated driver, which needs no GPU; and a wrapper that makes chosen calls fail, for tests. An allocator borrows its driver: the driver
// must outlive every allocator made on it.
#ifndef VRAM_DRIVER_H
#define VRAM_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vram_driver;

// Loads libcuda.so.1, or the file that the environment variable VRAM_LIBCUDA names, and resolves its functions by cuGetProcAddress.
// NO_DRIVER if none exists, with the reason in *error; DRIVER if cuInit fails. The caller owns *driver and ends it with
// vram_driver_destroy(). Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_cuda(struct vram_driver **driver, struct vram_error *error);

// Loads AMD's driver the same way: libamdhip64.so.7, .6 or .5, or the file that VRAM_LIBHIP names. Results use CUresult's numbers, which
// HIP shares. Without ROCm 6 there is no virtual memory: expandable and paged segments return UNSUPPORTED. Not yet run on an AMD device.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_hip(struct vram_driver **driver, struct vram_error *error);
// Loads the machine's driver, which is the default of an allocator: NVIDIA's if it is usable, else AMD's. If VRAM_LIBCUDA is set and
// VRAM_LIBHIP is not, only NVIDIA's is tried. The error is that of the driver that is present, or NVIDIA's if neither is. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_system(struct vram_driver **driver, struct vram_error *error);

// Gets the CUDA version that the driver implements: 13000 for 13.0; for HIP its own version: 60300000 for 6.3. DRIVER.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_version(struct vram_driver *driver, int32_t *version);
// Gets the number of devices. DRIVER.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_devices(struct vram_driver *driver, uint32_t *count);

// Properties of a device, as the driver reports them.
struct vram_device_facts {
    char name[128];
    uint64_t total_bytes;
    uint64_t free_bytes; // now
    int32_t compute_major, compute_minor;
    int32_t multiprocessors;
    uint64_t granularity_bytes; // pages of expandable segments; 0 without virtual memory
    bool integrated;            // its memory is host memory
    bool virtual_memory;        // expandable segments are possible
    bool file_handles;          // pages can be shared as file descriptors
    bool fabric_handles;        // pages can be shared across machines
    bool rdma;                  // pages can be registered with network cards
    bool memory_pools;          // cudaMallocAsync works
    bool managed;
    bool multicast;
    bool host_register;     // cudaHostRegister
    bool unified_addresses; // one address space with the host
};
// Queries a device (a number below vram_driver_devices()). A device without a primary context gets one for the moment, to read its free
// bytes. INVALID_ARGUMENT, DRIVER.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_device_facts(struct vram_driver *driver, uint32_t device,
                                                                  struct vram_device_facts *facts, struct vram_error *error);
// Checks whether work on `device` could use memory of `peer`. INVALID_ARGUMENT, DRIVER.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_can_access_peer(struct vram_driver *driver, uint32_t device, uint32_t peer, bool *can);

// Wraps `inner` (borrowed; must outlive the wrapper) so that chosen calls fail. The caller owns *driver.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_fault(struct vram_driver *inner, struct vram_driver **driver);
// Makes the nth call of `call` from now on (1 = the next) fail with `result` (a CUresult, not 0) without reaching the inner driver. `call`
// is the base name of a driver function ("cuMemAlloc"), or NULL for any call that can fail. nth = 0 clears the fault. One fault at a time.
// INVALID_ARGUMENT for an unknown name. Must not run while other threads use the driver.
VRAM_API VRAM_NODISCARD enum vram_status vram_driver_fault_set(struct vram_driver *driver, const char *call, uint64_t nth, int32_t result);
// Returns how many calls the wrapper has made fail since it was created.
VRAM_API uint64_t vram_driver_fault_count(const struct vram_driver *driver);

// Destroys the handle. NULL is ignored.
VRAM_API void vram_driver_destroy(struct vram_driver *driver);

#ifdef __cplusplus
}
#endif
#endif
