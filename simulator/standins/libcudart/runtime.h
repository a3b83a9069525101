// runtime.h: the CUDA runtime over the driver API, so that programs run their memory behaviour on the simulated driver. It is a library of
// its own, not NVIDIA's runtime, and answers for itself.
//
// One tree, three libraries: RT_MAJOR is 11, 12 or 13, for libcudart.so.11.0, .so.12 and .so.13. Which names each exports are facts
// (simulator/standins/facts/cudart.def); what is not defined here answers 801 (unsimulated.c).
//
// Handles (streams, events, graphs, pools, arrays, kernels, libraries) are the driver's, numbers of errors too, as in CUDA. A call goes to
// the driver first; where the driver finds no current context, the primary one of the thread's device is made current and the call made
// again. Every call but those for errors remembers its error for cudaGetLastError().
#ifndef VR_STANDINS_LIBCUDART_RUNTIME_H
#define VR_STANDINS_LIBCUDART_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The calls' names are NVIDIA's: no header of ours declares them.
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#if RT_MAJOR == 11
enum { RUNTIME_VERSION = 11080 };
#elif RT_MAJOR == 12
enum { RUNTIME_VERSION = 12090 };
#else
enum { RUNTIME_VERSION = 13050 };
#endif

// What became a name's only interface with CUDA 13 is its second or third one before.
#if RT_MAJOR >= 13
#define RT_SECOND(name) name
#define RT_THIRD(name)  name
#else
#define RT_SECOND(name) name##_v2
#define RT_THIRD(name)  name##_v3
#endif
#define RT_PASTE(name, suffix) name##suffix
#define RT_TWIN(name, suffix)  RT_PASTE(name, suffix)

// Errors that this library gives by itself or looks for; all others are the driver's results, whose numbers the runtime shares.
enum {
    RT_SUCCESS = 0,
    RT_INVALID_VALUE = 1,
    RT_MEMORY_ALLOCATION = 2,
    RT_INITIALIZATION = 3,
    RT_INVALID_CONFIGURATION = 9,
    RT_INVALID_PITCH = 12,
    RT_INVALID_SYMBOL = 13,
    RT_INVALID_CHANNEL = 20,
    RT_INVALID_MEMCPY_DIRECTION = 21,
    RT_INSUFFICIENT_DRIVER = 35,
    RT_MISSING_CONFIGURATION = 52,
    RT_INVALID_DEVICE_FUNCTION = 98,
    RT_NO_DEVICE = 100,
    RT_INVALID_DEVICE = 101,
    RT_INVALID_CONTEXT = 201,
    RT_NO_IMAGE = 209,
    RT_INVALID_HANDLE = 400,
    RT_SYMBOL_NOT_FOUND = 500,
    RT_NOT_READY = 600,
    RT_CONTEXT_IS_DESTROYED = 709,
    RT_NOT_SUPPORTED = 801,
};

enum { RT_MOST_DEVICES = 64 };
#define RT_PER_THREAD ((uint64_t)2) // the driver's handle of the calling thread's default stream

struct rt_dim3 {
    unsigned x, y, z;
};

struct rt_ipc_handle {
    char reserved[64];
};

struct rt_location {
    int type, id;
};

// cudaChannelFormatDesc: the bits of each channel.
struct rt_channel {
    int x, y, z, w;
    int kind;
};
struct rt_extent {
    size_t width, height, depth;
};
struct rt_position {
    size_t x, y, z;
};
struct rt_pitched {
    void *pointer;
    size_t pitch, width, height;
};

// The runtime's copy in three dimensions (cudaMemcpy3DParms). In an array widths and positions count elements, elsewhere bytes.
struct rt_memcpy3d {
    uint64_t from_array;
    struct rt_position from_at;
    struct rt_pitched from;
    uint64_t to_array;
    struct rt_position to_at;
    struct rt_pitched to;
    struct rt_extent extent;
    int kind;
};

// One side of the driver's copy in three dimensions (CUDA_MEMCPY3D), and of the one between devices.
struct rt_copy_side {
    size_t x_bytes, y, z, level;
    int memory_type; // RT_MEMORY_...
    const void *host;
    uint64_t device, array;
    uint64_t context; // of a copy between devices; else 0
    size_t pitch, rows;
};
struct rt_copy {
    struct rt_copy_side from, to;
    size_t width_bytes, rows, planes;
};
enum { RT_MEMORY_ARRAY = 3, RT_MEMORY_UNIFIED = 4 };

// The driver's description of an array (CUDA_ARRAY3D_DESCRIPTOR).
struct rt_array_descriptor {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
};

// The driver: what is called of it here and there. Calls that are only handed on stand in cudart_forward.def.
struct rt_driver {
#define X(member, symbol, version, parameters) int(*member) parameters;
#include "cudart_driver.def"
#undef X
};

// Loads libcuda.so.1 and initializes it, once per process. *driver is untouched on failure.
int rt_load(const struct rt_driver **driver);
// The same, and makes sure that a context is current.
int rt_begin(const struct rt_driver **driver);
// Whether the driver's answer means that no context is current, and one was made current since: call again.
bool rt_again(int error);
// Remembers an error for cudaGetLastError() and gives it back.
int rt_end(int error);
// The calling thread's device.
int rt_device(void);
// The primary context of a device, retained by this library until cudaDeviceReset().
int rt_primary(int device, uint64_t *context);
// The symbol of the driver, by its own resolver. NULL where it has none.
void *rt_driver_symbol(const char *symbol, int version, uint64_t flags);
// The same for a call that is handed on, found once: *slot begins as NULL. Where the driver has none, a function that answers 801.
void *rt_forward(void *_Atomic *slot, const char *symbol, int version);

// The driver's handle of a kernel that is named by its address on the host, or as its handle already. What is neither is for the driver to
// refuse.
int rt_kernel(const void *function, uint64_t *kernel);
// The same the other way: the host's address of a kernel, or the handle where it was not registered.
const void *rt_kernel_address(uint64_t kernel);
// The driver's answer to a call about a kernel: what it does not know is no device function.
int rt_kernel_error(int error);
// Whether an execution context is a green one; *context is the context that it stands for. What is neither is the driver's to refuse.
bool rt_is_green(const struct rt_driver *driver, uint64_t execution, uint64_t *context);
// Where a registered device variable lies on the thread's device.
int rt_variable(const struct rt_driver *driver, const void *symbol, uint64_t *address, size_t *bytes);

// The format and the channels of an array's elements, by the runtime's description, and back.
int rt_format_of(const struct rt_channel *channel, struct rt_array_descriptor *array);
struct rt_channel rt_channel_of(const struct rt_array_descriptor *array);
// The runtime's copy in three dimensions as the driver's, and back.
int rt_copy_of(const struct rt_driver *driver, const struct rt_memcpy3d *wanted, struct rt_copy *copy);
int rt_copy_back(const struct rt_driver *driver, const struct rt_copy *copy, struct rt_memcpy3d *answer);
// A copy of bytes between any two places, as the driver's.
struct rt_copy rt_copy_line(uint64_t to, uint64_t from, size_t bytes);

// A handle as the driver's; the default stream is the thread's own in programs built for that.
static inline uint64_t rt_stream(const void *stream, bool per_thread) {
    const uint64_t handle = (uint64_t)(uintptr_t)stream;
    return per_thread && handle == 0 ? RT_PER_THREAD : handle;
}
static inline uint64_t rt_address(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

// One runtime call that is one call of the driver; the expression sees `driver` and writes results on success only.
#define RT_CALL(expression)                                                                                                                \
    do {                                                                                                                                   \
        const struct rt_driver *driver = NULL;                                                                                             \
        int rt_error_ = rt_load(&driver);                                                                                                  \
        if (rt_error_ == RT_SUCCESS) rt_error_ = (expression);                                                                             \
        if (rt_error_ != RT_SUCCESS && rt_again(rt_error_)) rt_error_ = (expression);                                                      \
        return rt_end(rt_error_);                                                                                                          \
    } while (0)

// A call with a stream, and its twin for programs whose default stream is the thread's own. The body sees `on`, the driver's handle.
#define RT_STREAM_CALL(name, parameters, expression)                                                                                       \
    RT_TWINS(name, _ptsz, parameters, rt_stream(stream, false), rt_stream(stream, true), expression)
// A call on the default stream that has such a twin.
#define RT_DEFAULT_CALL(name, parameters, expression) RT_TWINS(name, _ptds, parameters, 0, RT_PER_THREAD, expression)
#define RT_TWINS(name, suffix, parameters, legacy, own, expression)                                                                        \
    int name parameters {                                                                                                                  \
        const uint64_t on = (legacy);                                                                                                      \
        RT_CALL(expression);                                                                                                               \
    }                                                                                                                                      \
    int RT_TWIN(name, suffix) parameters {                                                                                                 \
        const uint64_t on = (own);                                                                                                         \
        RT_CALL(expression);                                                                                                               \
    }

#endif
