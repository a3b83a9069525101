// hip.h: the rooms of the stand-in for AMD's HIP runtime. Each of HIP's calls is one of the simulated CUDA driver, which has the same
// arguments and results. hip_runtime.c, hip_runtime.c and hip_kernels.c have what differs.
#ifndef VR_STANDINS_HIP_HIP_H
#define VR_STANDINS_HIP_HIP_H

#include "../common/common.h"
#include "driver/abi.h"

// The driver's functions of allocator/driver/calls.def, as the driver seam declares them.
struct hip_cuda {
#define X(member, symbol, exported, version, parameters, arguments) int(*member) parameters;
#include "driver/calls.def"
#undef X
};

// The driver, and a context of the thread's current device as HIP gives one by itself; NULL where there is none.
const struct hip_cuda *hip_begin(void);
// The same without a context, for what asks about devices.
const struct hip_cuda *hip_driver(void);
// A function of the driver that allocator/driver/calls.def has no row of, put into the pointer to a function at `function`. False where the
// driver lacks it. `context`: the thread gets one, as by hip_begin().
bool hip_named(const char *symbol, int version, bool context, void *function);
// Remembers a result for hipGetLastError(), and gives it.
int hip_end(int result);
int hip_last(bool forget);
// The thread's device by its number. A CUresult's number.
int hip_use_device(int device);

// dim3, by value.
struct hip_extent {
    unsigned x, y, z;
};

#endif
