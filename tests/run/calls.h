// calls.h: the driver functions that program.c and nasty.c use, reached in one of the three ways of CUDA programs: CALLS_LINKED (symbols),
// CALLS_PROC (all through cuGetProcAddress(), as the CUDA runtime does), CALLS_DLSYM (dlopen() and dlsym()).
#ifndef TEST_RUN_CALLS_H
#define TEST_RUN_CALLS_H

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

// X(base name, exported name, parameters)
#define CALLS(X)                                                                                                                           \
    X(cuInit, cuInit, (unsigned flags))                                                                                                    \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (uint64_t * context, int device))                                                \
    X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (int device))                                                               \
    X(cuCtxSetCurrent, cuCtxSetCurrent, (uint64_t context))                                                                                \
    X(cuCtxCreate, cuCtxCreate_v2, (uint64_t * context, unsigned flags, int device))                                                       \
    X(cuCtxDestroy, cuCtxDestroy_v2, (uint64_t context))                                                                                   \
    X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (uint64_t * size, int device))                                                                \
    X(cuMemGetInfo, cuMemGetInfo_v2, (uint64_t * free_bytes, uint64_t * total_bytes))                                                      \
    X(cuMemAlloc, cuMemAlloc_v2, (uint64_t * address, uint64_t size))                                                                      \
    X(cuMemAllocPitch, cuMemAllocPitch_v2, (uint64_t * address, uint64_t * pitch, uint64_t width, uint64_t height, unsigned element))      \
    X(cuMemAllocManaged, cuMemAllocManaged, (uint64_t * address, uint64_t size, unsigned flags))                                           \
    X(cuArrayCreate, cuArrayCreate_v2, (uint64_t * array, const void *what))                                                               \
    X(cuArrayDestroy, cuArrayDestroy, (uint64_t array))                                                                                    \
    X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, (uint64_t * handle, uint64_t address))                                     \
    X(cuMemFree, cuMemFree_v2, (uint64_t address))                                                                                         \
    X(cuMemAllocAsync, cuMemAllocAsync, (uint64_t * address, uint64_t size, uint64_t stream))                                              \
    X(cuMemFreeAsync, cuMemFreeAsync, (uint64_t address, uint64_t stream))                                                                 \
    X(cuStreamCreate, cuStreamCreate, (uint64_t * stream, unsigned flags))                                                                 \
    X(cuStreamSynchronize, cuStreamSynchronize, (uint64_t stream))                                                                         \
    X(cuStreamBeginCapture, cuStreamBeginCapture_v2, (uint64_t stream, int mode))                                                          \
    X(cuStreamEndCapture, cuStreamEndCapture, (uint64_t stream, uint64_t * graph))                                                         \
    X(cuMemAllocHost, cuMemAllocHost_v2, (uint64_t * host, uint64_t size))                                                                 \
    X(cuMemHostAlloc, cuMemHostAlloc, (uint64_t * host, uint64_t size, unsigned flags))                                                    \
    X(cuMemFreeHost, cuMemFreeHost, (uint64_t host))                                                                                       \
    X(cuMemHostRegister, cuMemHostRegister_v2, (uint64_t host, uint64_t size, unsigned flags))                                             \
    X(cuMemHostUnregister, cuMemHostUnregister, (uint64_t host))                                                                           \
    X(cuMemAddressReserve, cuMemAddressReserve, (uint64_t * address, uint64_t size, uint64_t alignment, uint64_t hint, uint64_t flags))    \
    X(cuMemAddressFree, cuMemAddressFree, (uint64_t address, uint64_t size))                                                               \
    X(cuMemCreate, cuMemCreate, (uint64_t * handle, uint64_t size, const void *prop, uint64_t flags))                                      \
    X(cuMemRelease, cuMemRelease, (uint64_t handle))                                                                                       \
    X(cuMemMap, cuMemMap, (uint64_t address, uint64_t size, uint64_t offset, uint64_t handle, uint64_t flags))                             \
    X(cuMemUnmap, cuMemUnmap, (uint64_t address, uint64_t size))

#define X(base, exported, parameters) extern int(*call_##base) parameters;
CALLS(X)
#undef X

// Ends the program at once, even in a child of vfork().
#define CHECK(expression)                                                                                                                  \
    do {                                                                                                                                   \
        if (!(expression)) {                                                                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #expression);                                                               \
            _exit(98);                                                                                                                     \
        }                                                                                                                                  \
    } while (0)

// Finds all functions; ends the program if one is missing.
void calls_load(void);
// The primary context of device 0, valid after begin(), which finds the functions, starts the driver and makes the context current.
extern uint64_t context;
void begin(void);

#endif
