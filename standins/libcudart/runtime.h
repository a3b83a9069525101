// runtime.h: a small CUDA runtime: the documented calls over the driver API, so that programs built with `nvcc -cudart shared` run their
// memory behaviour on the simulated driver. Kernels do nothing. It is a library of its own, not NVIDIA's runtime, and answers for itself.
//
// Handles (streams, events, graphs, pools) are the driver's, numbers of errors too, as in CUDA. Every call but those for errors makes the
// primary context of the thread's device current where no context is, and remembers its error for cudaGetLastError().
#ifndef VR_STANDINS_LIBCUDART_RUNTIME_H
#define VR_STANDINS_LIBCUDART_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The calls' names are NVIDIA's: no header of ours declares them. libcudart.map says which are exported.
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { RUNTIME_VERSION = 13000 };

// Errors that this library gives by itself; all others are the driver's results, whose numbers the runtime shares.
enum {
    RT_SUCCESS = 0,
    RT_INVALID_VALUE = 1,
    RT_MEMORY_ALLOCATION = 2,
    RT_INVALID_SYMBOL = 13,
    RT_INVALID_MEMCPY_DIRECTION = 21,
    RT_INSUFFICIENT_DRIVER = 35,
    RT_MISSING_CONFIGURATION = 52,
    RT_INVALID_DEVICE_FUNCTION = 98,
    RT_NO_DEVICE = 100,
    RT_INVALID_DEVICE = 101,
    RT_SYMBOL_NOT_FOUND = 500,
    RT_NOT_READY = 600,
    RT_NOT_SUPPORTED = 801,
};

enum { RT_ATTRIBUTES = 256, RT_MOST_DEVICES = 64 };
#define RT_PER_THREAD ((uint64_t)2) // the driver's handle of the calling thread's default stream

struct rt_ipc_handle {
    char reserved[64];
};

// The driver: what is called of it.
struct rt_driver {
#define X(member, symbol, version, parameters) int(*member) parameters;
#include "cudart_driver.def"
#undef X
};

// Loads libcuda.so.1 and initializes it, once per process. *driver is untouched on failure.
int rt_load(const struct rt_driver **driver);
// The same, and makes sure that a context is current.
int rt_begin(const struct rt_driver **driver);
// Remembers an error for cudaGetLastError() and gives it back.
int rt_end(int error);
// The calling thread's device.
int rt_device(void);
// The symbol of the driver, by its own resolver. NULL where it has none.
void *rt_driver_symbol(const char *symbol, int version, uint64_t flags);

// A handle as the driver's; the default stream is the thread's own in programs built for that.
static inline uint64_t rt_stream(const void *stream, bool per_thread) {
    const uint64_t handle = (uint64_t)(uintptr_t)stream;
    return per_thread && handle == 0 ? RT_PER_THREAD : handle;
}

// One runtime call that is one call of the driver.
#define RT_CALL(expression)                                                                                                                \
    do {                                                                                                                                   \
        const struct rt_driver *driver = NULL;                                                                                             \
        int rt_error_ = rt_begin(&driver);                                                                                                 \
        if (rt_error_ == RT_SUCCESS) rt_error_ = (expression);                                                                             \
        return rt_end(rt_error_);                                                                                                          \
    } while (0)

// A call with a stream, and its twin for programs whose default stream is the thread's own. The body sees `on`, the driver's handle.
#define RT_STREAM_CALL(name, parameters, expression)                                                                                       \
    int name parameters {                                                                                                                  \
        const uint64_t on = rt_stream(stream, false);                                                                                      \
        RT_CALL(expression);                                                                                                               \
    }                                                                                                                                      \
    int name##_ptsz parameters {                                                                                                           \
        const uint64_t on = rt_stream(stream, true);                                                                                       \
        RT_CALL(expression);                                                                                                               \
    }

#endif
