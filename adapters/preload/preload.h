// preload.h: the library that `vram run` preloads: it stands in every door through which a program reaches libcuda, and writes down
// what the program gets from the driver and gives back.
//
// A call comes in through an exported symbol, or through a pointer that dlsym() or cuGetProcAddress() gave out (filter.c, proc.c). Either
// way it arrives at a slot (doors.c), which knows the driver's own function; the handler of its kind (on_*.c) begins a watched call
// (calls.c), calls that function and gives the session (session.c) the outcome. The session owns the table of what is alive (live.c), the
// limit, and the recording (journal.c). Files call downwards in that order: doors, handlers, calls, process, session, journal; at the
// bottom notices, real, inside.
//
// Nothing here depends on having been initialised: everything is made at first use. While a thread is inside (pl_depth > 0), every door
// lets it pass: what the driver, the stack walker or our own allocator calls on the way is theirs, not the program's.
//
// Numbers of this file that are the driver's (results, flags, attributes) are those of cuda.h.
#ifndef PL_PRELOAD_H
#define PL_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PL_EXPORT __attribute__((visibility("default")))
// On the way of every call; and off it, so that the registers that it needs are saved only there.
#define PL_INLINE static inline __attribute__((always_inline))
#define PL_SELDOM __attribute__((noinline, cold))

enum { PL_DEVICES = 64 }; // that the limit and the accounts know
enum { PL_SUCCESS = 0, PL_INVALID_VALUE = 1, PL_OUT_OF_MEMORY = 2, PL_NOT_INITIALIZED = 3 };

typedef void pl_function(void);

// CUmemAllocationProp as far as it is read here: type, handle types, kind and number of the place.
struct pl_allocation_prop {
    int32_t type, requested_handle_types, location_type, location_id;
};
struct pl_array_v1 {
    uint32_t width, height, format, channels;
};
struct pl_array {
    uint64_t width, height;
    uint32_t format, channels;
};
struct pl_array3d_v1 {
    uint32_t width, height, depth, format, channels, flags;
};
struct pl_array3d {
    uint64_t width, height, depth;
    uint32_t format, channels, flags;
};

// --- real.c: the functions of the C library and of the driver behind us -------------------------------------------------

// The C library's own, found without asking any of them. NULL where there is none.
struct pl_libc {
    void *(*dlsym)(void *handle, const char *name);
    void *(*dlvsym)(void *handle, const char *name, const char *version);
    void *(*dlopen)(const char *file, int flags);
    void *(*dlmopen)(long space, const char *file, int flags);
    int (*dlclose)(void *library);
};
const struct pl_libc *pl_libc(void);

// What is asked of a driver on the way. Each may be NULL: an older driver, or none. X(member, exported name, parameters)
#define PL_DRIVER_CALLS(X)                                                                                                                 \
    X(ctx_get_device, cuCtxGetDevice, (int32_t * device))                                                                                  \
    X(ctx_get_current, cuCtxGetCurrent, (uint64_t * context))                                                                              \
    X(ctx_synchronize, cuCtxSynchronize, (void))                                                                                           \
    X(mem_get_info, cuMemGetInfo_v2, (uint64_t * free_bytes, uint64_t * total_bytes))                                                      \
    X(pointer_attribute, cuPointerGetAttribute, (void *data, int32_t attribute, uint64_t address))                                         \
    X(stream_is_capturing, cuStreamIsCapturing, (uint64_t stream, int32_t * status))                                                       \
    X(stream_is_capturing_ptsz, cuStreamIsCapturing_ptsz, (uint64_t stream, int32_t * status))                                             \
    X(device_get_mem_pool, cuDeviceGetMemPool, (uint64_t * pool, int32_t device))                                                          \
    X(pool_get_attribute, cuMemPoolGetAttribute, (uint64_t pool, int32_t attribute, void *value))                                          \
    X(primary_ctx_get_state, cuDevicePrimaryCtxGetState, (int32_t device, uint32_t * flags, int32_t * active))                             \
    X(ctx_push_current, cuCtxPushCurrent_v2, (uint64_t context))                                                                           \
    X(ctx_pop_current, cuCtxPopCurrent_v2, (uint64_t * context))                                                                           \
    X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, (int32_t * mode))                                                          \
    X(device_get_uuid, cuDeviceGetUuid, (unsigned char *uuid, int32_t device))                                                             \
    X(device_get_uuid_v2, cuDeviceGetUuid_v2, (unsigned char *uuid, int32_t device))                                                       \
    X(device_get_bus_id, cuDeviceGetPCIBusId, (char *text, int32_t length, int32_t device))

// One loaded copy of libcuda. There is one, but for programs that load it into several namespaces.
struct pl_driver {
    void *library; // a handle for dlsym(); NULL: whatever comes after us
#define PL_DRIVER_MEMBER(member, name, parameters) int32_t(*member) parameters;
    PL_DRIVER_CALLS(PL_DRIVER_MEMBER)
#undef PL_DRIVER_MEMBER
};
// The copy that `entry` lies in. Never NULL.
const struct pl_driver *pl_driver_of(pl_function *entry);
// The driver's function that an exported name stands for when nobody says which copy: the next one after us, or that of a loaded
// libcuda.so.1. NULL while there is none.
pl_function *pl_next(const char *name);

// --- doors.c ------------------------------------------------------------------------------------------------------------

// One function of a driver and the door that leads to it.
struct pl_slot {
    pl_function *real;
    const struct pl_driver *driver;
    bool per_thread; // the default stream is the thread's own
};

// What is given out in place of `real`, which is the function called `exported`; `real` itself for a name that has no door.
// What is ours already comes back unchanged: that makes each call seen exactly once.
pl_function *pl_wrap(const char *exported, pl_function *real);
// Whether calls of this exported name pass through here.
bool pl_is_door(const char *exported);
// The exported name of the binary interface of `symbol` that `version` and `flags` of cuGetProcAddress() ask for; NULL: none of ours.
const char *pl_interface(const char *symbol, int version, uint64_t flags);

// --- proc.c -------------------------------------------------------------------------------------------------------------

#define PL_KNOWN_VERSION 13000 // the driver interface that doors.def was compared with
PL_EXPORT int32_t cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
PL_EXPORT int32_t cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);
// As pl_wrap(), for cuGetProcAddress and cuGetProcAddress_v2; NULL for other names.
pl_function *pl_wrap_lookup(const char *exported, pl_function *real);

// --- inside.c, session.c: what is going on ----------------------------------------------------------------------------

extern _Thread_local int pl_depth __attribute__((tls_model("initial-exec"), visibility("hidden")));
// Where the program called us from, and the frame of the door, which is there as long as the call; set by the doors.
struct pl_caller {
    const void *address, *frame;
};
extern _Thread_local struct pl_caller pl_caller __attribute__((tls_model("initial-exec"), visibility("hidden")));

// X(constant, tag in the recording)
#define PL_KINDS(X)                                                                                                                        \
    X(DEVICE, "device")                                                                                                                    \
    X(MANAGED, "managed")                                                                                                                  \
    X(ASYNC, "async")                                                                                                                      \
    X(PHYSICAL, "physical")                                                                                                                \
    X(ARRAY, "array")                                                                                                                      \
    X(PINNED, "pinned")                                                                                                                    \
    X(REGISTERED, "registered")
enum pl_kind {
#define PL_KIND(name, tag) PL_##name,
    PL_KINDS(PL_KIND)
#undef PL_KIND
        PL_KIND_COUNT
};

// A call that is being watched. pl_begin() fills it.
struct pl_call {
    const struct pl_slot *slot;
    struct pl_caller caller;
    uint64_t context; // current context, 0: none
    uint64_t serial;  // what is alive now is older than this
    uint64_t stream;
    uint64_t pool;
    uint32_t device; // of the current context
    bool has_device;
    int saved_errno;
    int cancel_state;
    bool refused;
    // What pl_charge() was called with.
    enum pl_kind kind;
    uint32_t target;  // device; VRAM_LOG_HOST for host memory. May be put right once the memory is there
    uint32_t limited; // whose limit was charged
    uint64_t charged_bytes;
};

// calls.c, inside.c. Opens a call: true when it is the program's own and is to be watched (then pl_end() must follow), false when it only
// passes through. errno is kept by pl_end().
bool pl_begin(const struct pl_slot *slot, struct pl_call *call);
// The same for calls that give memory back. Which context is current is asked for only where our allocator serves (--cache).
bool pl_begin_free(const struct pl_slot *slot, struct pl_call *call);
// A context may have ended: its handle may be that of another one, of another device.
void pl_contexts_changed(void);
void pl_end(const struct pl_call *call);

// A call that gives memory: first pl_charge(), then, if that says so, the driver, then pl_settle() in any case, which also ends the call.
// pl_charge() takes `size` bytes of `device` from the limit. False: they go past it, and the call is to fail with PL_OUT_OF_MEMORY (that is
// written down here).
bool pl_charge(struct pl_call *call, enum pl_kind kind, uint32_t device, uint64_t size);
// `key` tells the memory apart within its kind, and is its address where it has one; `size` is what it has. Neither is looked at unless
// `result` is PL_SUCCESS.
void pl_settle(struct pl_call *call, int32_t result, uint64_t key, uint64_t size);
// It is gone. Nothing happens when it is not known, or was born after pl_begin().
void pl_died(const struct pl_call *call, enum pl_kind kind, uint64_t key);
// All that the context held is gone.
void pl_context_gone(const struct pl_call *call, uint64_t context);
// The primary context of a device, once the program retained it; 0: it did not.
void pl_primary_context(uint32_t device, uint64_t context);
uint64_t pl_primary_context_of(uint32_t device);
// Physical memory: another reference to the handle, one less; it dies with the last reference and mapping.
void pl_retained(uint64_t handle, uint64_t address);
void pl_released(const struct pl_call *call, uint64_t handle);
void pl_mapped(const struct pl_call *call, uint64_t address, uint64_t size, uint64_t handle);
void pl_unmapped(const struct pl_call *call, uint64_t address, uint64_t size);
// What a pool of the driver holds now.
void pl_pool_holds(const struct pl_call *call, uint32_t device, uint64_t pool, uint64_t bytes);
// What --limit leaves of what the driver says. Unchanged without a limit.
void pl_limit_view(uint32_t device, uint64_t *free_bytes, uint64_t *total_bytes);

// Calls the driver's own function with the type of the door: PL_REAL(slot, (uint64_t), (address)).
#define PL_REAL(slot, parameters, arguments) (((int32_t(*) parameters)(slot)->real)arguments)

// --- the handlers: int32_t pl_on_<handler>(slot, parameters) ------------------------------------------------------------
// clang-format off
#define PL_WITH_SLOT(...) (const struct pl_slot *slot, __VA_ARGS__)
#define X(handler, symbol, exported, version, per_thread, parameters, arguments) int32_t pl_on_##handler PL_WITH_SLOT parameters;
#include "doors.def"
#undef X
#define X(handler, symbol, exported, version, per_thread, parameters, arguments) PL_EXPORT int32_t exported parameters;
#include "doors.def"
#undef X
// clang-format on

#endif
