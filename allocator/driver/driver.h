// driver.h: the driver seam. The CUDA driver API as one table of functions; cuda/, sim/ and fault/ fill it.
//
// Every function takes the driver first, so that many simulators live in one process. Handles, addresses and sizes are
// uint64_t everywhere (wasm32 and 80 GB cards meet in this code); cuda/ converts at the border. The argument lists are
// those of the driver API otherwise, as are the result codes and the rules of which thread's current context counts.
#ifndef VR_DRIVER_DRIVER_H
#define VR_DRIVER_DRIVER_H

#include "base/base.h"
#include "driver/abi.h"
#include "vram/driver.h"

// One row per driver function that this project calls. calls.def holds the rows: X(member, CUDA base name, exported name,
// version that introduced the ABI used, (parameters after self), (their names)).
struct vr_driver_calls {
#define X(member, symbol, exported, version, parameters, arguments) vr_cu_result(*member) VR_WITH_SELF parameters;
#define VR_WITH_SELF(...)                                           (struct vram_driver * self, __VA_ARGS__)
#include "driver/calls.def"
#undef X
};

// The head of every driver. An implementation embeds it as its first member.
struct vram_driver {
    const struct vr_driver_calls *calls; // never NULL
    void (*destroy)(struct vram_driver *driver);
    uint64_t (*clock_ns)(struct vram_driver *driver); // NULL where time passes by itself
    // A number that is another one whenever an event may have come to pass since, and 0 where that cannot be told; NULL: it never can. Any
    // thread, without a lock.
    uint64_t (*progress)(struct vram_driver *driver);
    // What programs can have of the memory that `device` shares with the host; NULL: what the operating system says. False: not known.
    bool (*host_available)(struct vram_driver *driver, int device, uint64_t *bytes);
    const char *kind; // "cuda", "hip", "sim" or "fault"; compared by pointer-independent strcmp
};

// vr_cu(driver, mem_alloc, &address, size): one driver call.
#define vr_cu(driver, member, ...) ((driver)->calls->member((driver), __VA_ARGS__))

// The same of a call that nobody can make later, so that what it gives back or takes back would be lost. A driver that refuses is asked
// again: three refusals in a row lose nothing.
#define VR_CU_TRIES 4
#define VR_CU_INSIST(driver, ...)                                                                                                          \
    do                                                                                                                                     \
        for (int tries_ = 1; vr_cu(driver, __VA_ARGS__) != VR_CU_SUCCESS && tries_ < VR_CU_TRIES;) tries_++;                               \
    while (0)

VR_INLINE uint64_t vr_driver_progress(struct vram_driver *driver) { return driver->progress != NULL ? driver->progress(driver) : 0; }

// What is free of the current context's device, and its total. Of a device whose memory is the host's the driver counts what files take in
// the page cache as used; a request gets it all the same, so that here what is available counts.
vr_cu_result vr_driver_memory_info(struct vram_driver *driver, uint64_t *free_bytes, uint64_t *total_bytes);

// The driver API's name of a result ("CUDA_ERROR_OUT_OF_MEMORY"); never NULL.
const char *vr_cu_result_name(vr_cu_result result);

#endif
