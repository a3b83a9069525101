// hip.h: internals of the stand-in for AMD's HIP runtime. Most HIP calls map to a call of the simulated CUDA driver with the same arguments
// and results. hip_runtime.c and hip_kernels.c contain the others.
#ifndef VR_STANDINS_HIP_HIP_H
#define VR_STANDINS_HIP_HIP_H

#include "../common/common.h"
#include "driver/abi.h"

// Driver functions, one per row of allocator/driver/calls.def.
struct hip_cuda {
#define X(member, symbol, exported, version, parameters, arguments) int(*member) parameters;
#include "driver/calls.def"
#undef X
};

// Returns the driver after making a context of the thread's current device current, as HIP does implicitly; NULL on failure.
const struct hip_cuda *hip_begin(void);
// Like hip_begin(), but without a context; for queries about devices.
const struct hip_cuda *hip_driver(void);
// Finds a driver function that has no row in allocator/driver/calls.def and stores it in the function pointer at `function`. `context`:
// also make a context current, as hip_begin() does. Returns false if the driver lacks the function.
bool hip_named(const char *symbol, int version, bool context, void *function);
// Stores a result for hipGetLastError() and returns it.
int hip_end(int result);
int hip_last(bool forget);
// Sets the thread's device by its number. Returns a CUresult value.
int hip_use_device(int device);

// dim3, passed by value.
struct hip_extent {
    unsigned x, y, z;
};

#endif
