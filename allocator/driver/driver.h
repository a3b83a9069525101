// driver.h: the driver interface: the CUDA driver API as one table of functions, implemented by cuda/, hip/, fault/, watch/ and the
// simulator.
//
// Every function takes the driver first, so that one process can have many simulators. Handles, addresses and sizes are always uint64_t
// (this code handles 80 GB devices on wasm32, too); cuda/ converts. Otherwise argument lists, result codes and the rules for the current
// context are those of the driver API.
#ifndef VR_DRIVER_DRIVER_H
#define VR_DRIVER_DRIVER_H

#include "base/base.h"
#include "driver/abi.h"
#include "vram/driver.h"

// One member per driver function that this project calls. calls.def has the rows: X(member, CUDA base name, exported name, version that
// introduced the ABI used, (parameters after self), (their names)).
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
    uint64_t (*clock_ns)(struct vram_driver *driver); // NULL: real time
    // Returns a number that changes whenever an event may have completed, or 0 if unknown; NULL: always unknown. Any thread, without a
    // lock.
    uint64_t (*progress)(struct vram_driver *driver);
    // Gets the memory available to programs on a device that shares it with the host; NULL: as the operating system says. Returns false if
    // unknown.
    bool (*host_available)(struct vram_driver *driver, int device, uint64_t *bytes);
    const char *kind; // "cuda", "hip", "sim", "fault" or "watch"; compared by strcmp, not by pointer
};

// Makes one driver call: vr_cu(driver, mem_alloc, &address, size).
#define vr_cu(driver, member, ...) ((driver)->calls->member((driver), __VA_ARGS__))

// Makes a call that cannot be made later, because a failure would lose the handle or the state that it releases or restores. Repeats a
// refused call: three refusals in a row lose nothing.
#define VR_CU_TRIES 4
#define VR_CU_INSIST(driver, ...)                                                                                                          \
    do                                                                                                                                     \
        for (int tries_ = 1; vr_cu(driver, __VA_ARGS__) != VR_CU_SUCCESS && tries_ < VR_CU_TRIES;) tries_++;                               \
    while (0)

VR_INLINE uint64_t vr_driver_progress(struct vram_driver *driver) { return driver->progress != NULL ? driver->progress(driver) : 0; }

// Gets the free and total bytes of the current context's device. If a device's memory is the host's, the driver counts page cache as used
// although requests can get it; so the available bytes are given instead.
vr_cu_result vr_driver_memory_info(struct vram_driver *driver, uint64_t *free_bytes, uint64_t *total_bytes);

// Returns the driver API's name of a result ("CUDA_ERROR_OUT_OF_MEMORY"). Never NULL.
const char *vr_cu_result_name(vr_cu_result result);

#endif
