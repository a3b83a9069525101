// runtime.h: the CUDA runtime on top of the driver API, so that programs with the runtime run on the simulated driver. It is a library of
// its own, not NVIDIA's runtime.
//
// One source tree builds three libraries: RT_MAJOR is 11, 12 or 13, for libcudart.so.11.0, .so.12 and .so.13. The exported names are facts
// (simulator/standins/facts/cudart.def); names not defined here return 801 (unsimulated.c).
//
// Handles (streams, events, graphs, pools, arrays, kernels, libraries) are the driver's, and so are error numbers, as in CUDA. A call goes
// to the driver first. If the driver has no current context, the primary context of the thread's device is made current and the call is
// repeated. Every call except the error functions stores its error for cudaGetLastError().
#ifndef VR_STANDINS_LIBCUDART_RUNTIME_H
#define VR_STANDINS_LIBCUDART_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The calls have NVIDIA's names, which none of our headers declares.
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#if RT_MAJOR == 11
enum { RUNTIME_VERSION = 11080 };
#elif RT_MAJOR == 12
enum { RUNTIME_VERSION = 12090 };
#else
enum { RUNTIME_VERSION = 13050 };
#endif

// These names have one version in CUDA 13, which is the second or third version of CUDA 11 and 12.
#if RT_MAJOR >= 13
#define RT_SECOND(name) name
#define RT_THIRD(name)  name
#else
#define RT_SECOND(name) name##_v2
#define RT_THIRD(name)  name##_v3
#endif
#define RT_PASTE(name, suffix) name##suffix
#define RT_TWIN(name, suffix)  RT_PASTE(name, suffix)

// Errors that this library returns or checks itself; all others are the driver's results, which have the same numbers.
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
#define RT_PER_THREAD ((uint64_t)2) // driver's handle of the per-thread default stream

struct rt_dim3 {
    unsigned x, y, z;
};

struct rt_ipc_handle {
    char reserved[64];
};

struct rt_location {
    int type, id;
};

// cudaChannelFormatDesc: bits per channel.
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

// The runtime's three-dimensional copy (cudaMemcpy3DParms). Widths and positions count elements in arrays, bytes in memory.
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

// One side of the driver's three-dimensional copy (CUDA_MEMCPY3D), and of the copy between devices.
struct rt_copy_side {
    size_t x_bytes, y, z, level;
    int memory_type; // RT_MEMORY_...
    const void *host;
    uint64_t device, array;
    uint64_t context; // of a copy between devices; otherwise 0
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

// Driver functions called by hand-written code. Those of forwarded calls are in cudart_forward.def.
struct rt_driver {
#define X(member, symbol, version, parameters) int(*member) parameters;
#include "cudart_driver.def"
#undef X
};

// Loads and initializes libcuda.so.1, once per process. *driver is unchanged on failure.
int rt_load(const struct rt_driver **driver);
// Like rt_load(), and makes sure that a context is current.
int rt_begin(const struct rt_driver **driver);
// Returns true if the driver failed for lack of a current context and one is current now: repeat the call.
bool rt_again(int error);
// Stores an error for cudaGetLastError() and returns it.
int rt_end(int error);
// Returns the calling thread's device.
int rt_device(void);
// Gets the primary context of a device, which this library retains until cudaDeviceReset().
int rt_primary(int device, uint64_t *context);
// Looks up a driver symbol with the driver's resolver. Returns NULL if the driver lacks it.
void *rt_driver_symbol(const char *symbol, int version, uint64_t flags);
// Like rt_driver_symbol(), for a forwarded call: cached in *slot, which starts as NULL. Returns a function that returns 801 if the driver
// lacks the symbol.
void *rt_forward(void *_Atomic *slot, const char *symbol, int version);

// Gets the driver's handle of a kernel from its host address. A handle is returned unchanged; the driver refuses anything else.
int rt_kernel(const void *function, uint64_t *kernel);
// Returns the host address of a kernel, or its handle if it is not registered.
const void *rt_kernel_address(uint64_t kernel);
// Converts the driver's result of a call about a kernel: an unknown kernel is an invalid device function.
int rt_kernel_error(int error);
// Returns whether the execution context is a green context. Sets *context to its context. The driver refuses anything that is neither.
bool rt_is_green(const struct rt_driver *driver, uint64_t execution, uint64_t *context);
// Gets the address of a registered device variable on the thread's device.
int rt_variable(const struct rt_driver *driver, const void *symbol, uint64_t *address, size_t *bytes);

// These convert an array's format and channels from the runtime's description, and back.
int rt_format_of(const struct rt_channel *channel, struct rt_array_descriptor *array);
struct rt_channel rt_channel_of(const struct rt_array_descriptor *array);
// These convert the runtime's three-dimensional copy to the driver's, and back.
int rt_copy_of(const struct rt_driver *driver, const struct rt_memcpy3d *wanted, struct rt_copy *copy);
int rt_copy_back(const struct rt_driver *driver, const struct rt_copy *copy, struct rt_memcpy3d *answer);
// Makes the driver's copy of bytes between any two places.
struct rt_copy rt_copy_line(uint64_t to, uint64_t from, size_t bytes);

// Converts a stream handle to the driver's. Stream 0 is the per-thread stream in programs built for that.
static inline uint64_t rt_stream(const void *stream, bool per_thread) {
    const uint64_t handle = (uint64_t)(uintptr_t)stream;
    return per_thread && handle == 0 ? RT_PER_THREAD : handle;
}
static inline uint64_t rt_address(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

// Body of a runtime call that is one driver call. The expression may use `driver` and must write results only on success.
#define RT_CALL(expression)                                                                                                                \
    do {                                                                                                                                   \
        const struct rt_driver *driver = NULL;                                                                                             \
        int rt_error_ = rt_load(&driver);                                                                                                  \
        if (rt_error_ == RT_SUCCESS) rt_error_ = (expression);                                                                             \
        if (rt_error_ != RT_SUCCESS && rt_again(rt_error_)) rt_error_ = (expression);                                                      \
        return rt_end(rt_error_);                                                                                                          \
    } while (0)

// Defines a call with a stream and its variant for the per-thread default stream. The expression uses `on`, the driver's handle.
#define RT_STREAM_CALL(name, parameters, expression)                                                                                       \
    RT_TWINS(name, _ptsz, parameters, rt_stream(stream, false), rt_stream(stream, true), expression)
// Defines a call on the default stream and its per-thread variant.
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
