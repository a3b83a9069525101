// Declares the functions of the CUDA runtime that the programs in runtime/ and reports/ call, without NVIDIA's headers, and defines two
// kernels.
#ifndef CHECK_PROGRAMS_RUNTIME_CALLS_H
#define CHECK_PROGRAMS_RUNTIME_CALLS_H
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

typedef struct stream *stream_handle;
typedef struct event *event_handle;
typedef struct graph *graph_handle;
typedef struct graph_node *node_handle;
typedef struct graph_exec *exec_handle;
struct ipc_handle {
    char bytes[64];
};
struct grid {
    unsigned x, y, z;
};

enum {
    FROM_HOST = 1,
    TO_HOST = 2,
    ON_DEVICE = 3,
    NON_BLOCKING = 1,
    BLOCKING = 0,
    MAPPED = 2,
    MANAGED_GLOBAL = 1,
    SHARED_EVENT = 6,
    MIB = 1 << 20
};
#define PER_THREAD ((stream_handle)2)

int cudaSetDevice(int device);
int cudaDeviceSynchronize(void);
int cudaDeviceEnablePeerAccess(int device, unsigned flags);
int cudaMalloc(void *address, size_t bytes);
int cudaMallocAsync(void *address, size_t bytes, stream_handle stream);
int cudaMallocHost(void *address, size_t bytes);
int cudaHostAlloc(void *address, size_t bytes, unsigned flags);
int cudaHostRegister(void *address, size_t bytes, unsigned flags);
int cudaHostUnregister(void *address);
int cudaMallocManaged(void *address, size_t bytes, unsigned flags);
int cudaFree(void *address);
int cudaFreeAsync(void *address, stream_handle stream);
int cudaFreeHost(void *address);
int cudaMemcpy(void *target, const void *source, size_t bytes, int kind);
int cudaMemcpyAsync(void *target, const void *source, size_t bytes, int kind, stream_handle stream);
int cudaMemcpyPeerAsync(void *target, int target_device, const void *source, int source_device, size_t bytes, stream_handle stream);
int cudaMemset(void *address, int value, size_t bytes);
int cudaMemsetAsync(void *address, int value, size_t bytes, stream_handle stream);
int cudaStreamCreateWithFlags(stream_handle *stream, unsigned flags);
int cudaStreamDestroy(stream_handle stream);
int cudaStreamSynchronize(stream_handle stream);
int cudaStreamWaitEvent(stream_handle stream, event_handle event, unsigned flags);
int cudaStreamBeginCapture(stream_handle stream, int mode);
int cudaStreamEndCapture(stream_handle stream, graph_handle *graph);
int cudaEventCreateWithFlags(event_handle *event, unsigned flags);
int cudaEventDestroy(event_handle event);
int cudaEventRecord(event_handle event, stream_handle stream);
int cudaEventSynchronize(event_handle event);
int cudaGraphCreate(graph_handle *graph, unsigned flags);
int cudaGraphAddMemcpyNode1D(node_handle *node, graph_handle graph, const node_handle *before, size_t count, void *target,
                             const void *source, size_t bytes, int kind);
int cudaGraphInstantiate(exec_handle *exec, graph_handle graph, unsigned long long flags);
int cudaGraphLaunch(exec_handle exec, stream_handle stream);
int cudaIpcGetMemHandle(struct ipc_handle *handle, void *address);
int cudaIpcOpenMemHandle(void *address, struct ipc_handle handle, unsigned flags);
int cudaIpcCloseMemHandle(void *address);
int cudaIpcGetEventHandle(struct ipc_handle *handle, event_handle event);
int cudaIpcOpenEventHandle(event_handle *event, struct ipc_handle handle);
int cudaLibraryLoadData(void *library, const char *code, void *jit, void **jit_values, unsigned jit_count, void *load, void **load_values,
                        unsigned load_count);
int cudaLibraryGetKernel(void *kernel, void *library, const char *name);
int cudaLaunchKernel(const void *kernel, struct grid blocks, struct grid threads, void **arguments, size_t shared, stream_handle stream);

// A program whose set-up fails shows nothing about its mistake.
static inline void must(int result) {
    if (result == 0) return;
    fprintf(stderr, "the runtime returned %d\n", result);
    exit(1);
}

static inline stream_handle make_stream(unsigned flags) {
    stream_handle stream = NULL;
    must(cudaStreamCreateWithFlags(&stream, flags));
    return stream;
}

static inline event_handle make_event(void) {
    event_handle event = NULL;
    must(cudaEventCreateWithFlags(&event, 2)); // without times
    return event;
}

// Memory of the device that completed work has written.
static inline void *make_written(size_t bytes) {
    void *address = NULL;
    must(cudaMalloc(&address, bytes));
    must(cudaMemset(address, 0, bytes));
    must(cudaDeviceSynchronize());
    return address;
}

static inline void *kernel_of(const char *name) {
    static void *library;
    void *kernel = NULL;
    if (library == NULL) must(cudaLibraryLoadData(&library, kernel_code, NULL, NULL, 0, NULL, NULL, 0));
    must(cudaLibraryGetKernel(&kernel, library, name));
    return kernel;
}

// Launches fill(float *target, int count), which writes `target`.
static inline void launch_fill(void *target, size_t bytes, stream_handle stream) {
    int count = (int)(bytes / 4);
    void *arguments[] = {&target, &count};
    must(cudaLaunchKernel(kernel_of("_Z4fillPfi"), (struct grid){1024, 1, 1}, (struct grid){256, 1, 1}, arguments, 0, stream));
}

// Launches scale(float *target, const float *source, int count), which reads `source` and writes `target`.
static inline void launch_scale(void *target, const void *source, size_t bytes, stream_handle stream) {
    int count = (int)(bytes / 4);
    void *arguments[] = {&target, &source, &count};
    must(cudaLaunchKernel(kernel_of("_Z5scalePfPKfi"), (struct grid){1024, 1, 1}, (struct grid){256, 1, 1}, arguments, 0, stream));
}

#endif
