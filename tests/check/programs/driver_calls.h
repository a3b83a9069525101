// Declares the functions of the CUDA driver that the programs in driver/ call, without NVIDIA's headers, and defines two kernels.
#ifndef CHECK_PROGRAMS_DRIVER_CALLS_H
#define CHECK_PROGRAMS_DRIVER_CALLS_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

typedef struct stream *stream_handle;
typedef struct event *event_handle;
typedef struct graph *graph_handle;
typedef struct graph_exec *exec_handle;
typedef uint64_t address;

// CUmemAllocationProp and CUmemAccessDesc: pinned memory of a device.
struct allocation_properties {
    int type, handle_types, location_type, device;
    void *windows_data;
    unsigned char flags[8];
};
struct access {
    int location_type, device, permission;
};

enum { NON_BLOCKING = 1, WITHOUT_TIMES = 2, PINNED = 1, ON_A_DEVICE = 1, READ_AND_WRITE = 3, MIB = 1 << 20 };

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void *context, int device);
int cuCtxSetCurrent(void *context);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(address *result, size_t bytes);
int cuMemFree_v2(address memory);
int cuMemAllocAsync(address *result, size_t bytes, stream_handle stream);
int cuMemFreeAsync(address memory, stream_handle stream);
int cuMemAllocHost_v2(void *host, size_t bytes);
int cuMemFreeHost(void *host);
int cuMemHostRegister_v2(void *host, size_t bytes, unsigned flags);
int cuMemHostUnregister(void *host);
int cuMemsetD8_v2(address memory, unsigned char value, size_t bytes);
int cuMemsetD8Async(address memory, unsigned char value, size_t bytes, stream_handle stream);
int cuMemcpyHtoDAsync_v2(address target, const void *host, size_t bytes, stream_handle stream);
int cuMemcpyDtoHAsync_v2(void *host, address source, size_t bytes, stream_handle stream);
int cuMemcpyDtoDAsync_v2(address target, address source, size_t bytes, stream_handle stream);
int cuMemcpyDtoH_v2(void *host, address source, size_t bytes);
int cuMemAddressReserve(address *result, size_t bytes, size_t alignment, address hint, unsigned long long flags);
int cuMemAddressFree(address range, size_t bytes);
int cuMemCreate(uint64_t *handle, size_t bytes, const struct allocation_properties *properties, unsigned long long flags);
int cuMemRelease(uint64_t handle);
int cuMemMap(address range, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags);
int cuMemUnmap(address range, size_t bytes);
int cuMemSetAccess(address range, size_t bytes, const struct access *access, size_t count);
int cuStreamCreate(stream_handle *stream, unsigned flags);
int cuStreamSynchronize(stream_handle stream);
int cuStreamWaitEvent(stream_handle stream, event_handle event, unsigned flags);
int cuStreamBeginCapture_v2(stream_handle stream, int mode);
int cuStreamEndCapture(stream_handle stream, graph_handle *graph);
int cuEventCreate(event_handle *event, unsigned flags);
int cuEventDestroy_v2(event_handle event);
int cuEventRecord(event_handle event, stream_handle stream);
int cuGraphInstantiateWithFlags(exec_handle *exec, graph_handle graph, unsigned long long flags);
int cuGraphLaunch(exec_handle exec, stream_handle stream);
int cuModuleLoadData(void *module, const void *code);
int cuModuleGetFunction(void *function, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x, unsigned threads_y,
                   unsigned threads_z, unsigned shared, stream_handle stream, void **arguments, void **extra);

// A program whose set-up fails shows nothing about its mistake.
static inline void must(int result) {
    if (result == 0) return;
    fprintf(stderr, "the driver returned %d\n", result);
    exit(1);
}

static inline void begin(void) {
    void *context = NULL;
    must(cuInit(0));
    must(cuDevicePrimaryCtxRetain(&context, 0));
    must(cuCtxSetCurrent(context));
}

static inline stream_handle make_stream(void) {
    stream_handle stream = NULL;
    must(cuStreamCreate(&stream, NON_BLOCKING));
    return stream;
}

static inline event_handle make_event(void) {
    event_handle event = NULL;
    must(cuEventCreate(&event, WITHOUT_TIMES));
    return event;
}

// Memory that completed work has written.
static inline address make_written(size_t bytes) {
    address memory = 0;
    must(cuMemAlloc_v2(&memory, bytes));
    must(cuMemsetD8_v2(memory, 0, bytes));
    must(cuCtxSynchronize());
    return memory;
}

static inline uint64_t make_pages(size_t bytes) {
    uint64_t handle = 0;
    must(cuMemCreate(&handle, bytes, &(struct allocation_properties){.type = PINNED, .location_type = ON_A_DEVICE}, 0));
    return handle;
}

static inline void map_pages(address range, size_t bytes, uint64_t handle) {
    must(cuMemMap(range, bytes, 0, handle, 0));
    must(cuMemSetAccess(range, bytes, &(struct access){ON_A_DEVICE, 0, READ_AND_WRITE}, 1));
}

static inline void launch(const char *name, void **arguments, stream_handle stream) {
    static void *module;
    void *function = NULL;
    if (module == NULL) must(cuModuleLoadData(&module, kernel_code));
    must(cuModuleGetFunction(&function, module, name));
    must(cuLaunchKernel(function, 1024, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

// Launches fill(float *target, int count), which writes `target`.
static inline void launch_fill(address target, size_t bytes, stream_handle stream) {
    int count = (int)(bytes / 4);
    launch("_Z4fillPfi", (void *[]){&target, &count}, stream);
}

// Launches scale(float *target, const float *source, int count), which reads `source` and writes `target`.
static inline void launch_scale(address target, address source, size_t bytes, stream_handle stream) {
    int count = (int)(bytes / 4);
    launch("_Z5scalePfPKfi", (void *[]){&target, &source, &count}, stream);
}

#endif
