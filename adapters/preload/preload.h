// preload.h: the library that `vram run` preloads. It intercepts every way in which a program calls libcuda, and records the memory that
// the program allocates and frees.
//
// A call arrives through an exported symbol, or through a pointer that dlsym() or cuGetProcAddress() returned (filter.c, proc.c). Either
// way it reaches a slot (doors.c), which has the driver's own function. The handler of its kind (on_*.c) begins a watched call (calls.c),
// calls that function and passes the result to the session (session.c). The session owns the table of live memory (live.c), the limit, and
// the recording (journal.c). Files call downwards in that order: doors, handlers, calls, process, session, journal; at the bottom notices,
// real, inside.
//
// Nothing here needs initialization: everything is created at first use. While a thread is inside (pl_depth > 0), every door passes its
// calls through: they come from the driver, the stack walker or our own allocator, not from the program.
//
// The driver's numbers in this file (results, flags, attributes) are those of cuda.h.
#ifndef PL_PRELOAD_H
#define PL_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PL_EXPORT __attribute__((visibility("default")))
// PL_INLINE: on the path of every call. PL_SELDOM: rare code, kept out of that path so that it saves fewer registers.
#define PL_INLINE static inline __attribute__((always_inline))
#define PL_SELDOM __attribute__((noinline, cold))

enum { PL_DEVICES = 64 }; // devices covered by the limit and the accounts
enum { PL_SUCCESS = 0, PL_INVALID_VALUE = 1, PL_OUT_OF_MEMORY = 2, PL_NOT_INITIALIZED = 3 };

typedef void pl_function(void);

// The members of CUmemAllocationProp that are read here: type, handle types, kind and number of the location.
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

// --- real.c: the functions of the C library and of the driver that we replace ------------------------------------------------

// The C library's own functions, found without calling any of them. NULL if absent.
struct pl_libc {
    void *(*dlsym)(void *handle, const char *name);
    void *(*dlvsym)(void *handle, const char *name, const char *version);
    void *(*dlopen)(const char *file, int flags);
    void *(*dlmopen)(long space, const char *file, int flags);
    int (*dlclose)(void *library);
};
const struct pl_libc *pl_libc(void);

// The driver's functions that we call ourselves. Each may be NULL if the driver is old or missing. X(member, exported name, parameters)
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

// A loaded copy of libcuda. There is more than one only if the program loads it into several namespaces.
struct pl_driver {
    void *library; // a handle for dlsym(); NULL: the next library after us
#define PL_DRIVER_MEMBER(member, name, parameters) int32_t(*member) parameters;
    PL_DRIVER_CALLS(PL_DRIVER_MEMBER)
#undef PL_DRIVER_MEMBER
};
// Returns the copy that contains `entry`. Never returns NULL.
const struct pl_driver *pl_driver_of(pl_function *entry);
// Returns the driver's function of an exported name if no copy is specified: the next one after us, or that of a loaded libcuda.so.1.
// Returns NULL while there is none.
pl_function *pl_next(const char *name);

// --- doors.c ------------------------------------------------------------------------------------------------------------

// The driver's function behind a door, and the copy of libcuda that contains it.
struct pl_slot {
    pl_function *real;
    const struct pl_driver *driver;
    bool per_thread; // the default stream is per thread
};

// Returns the door for `real`, which is the function called `exported`, or `real` itself if the name has no door. Returns a door unchanged,
// so that each call is seen exactly once.
pl_function *pl_wrap(const char *exported, pl_function *real);
// Returns whether calls of this exported name pass through a door.
bool pl_is_door(const char *exported);
// Returns the exported name of the binary interface of `symbol` for `version` and `flags` of cuGetProcAddress(); NULL if it has no door.
const char *pl_interface(const char *symbol, int version, uint64_t flags);

// --- proc.c -------------------------------------------------------------------------------------------------------------

#define PL_KNOWN_VERSION 13000 // the driver interface that doors.def was checked against
PL_EXPORT int32_t cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
PL_EXPORT int32_t cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);
// Returns the door for cuGetProcAddress and cuGetProcAddress_v2, as pl_wrap() does; NULL for other names.
pl_function *pl_wrap_lookup(const char *exported, pl_function *real);

// --- inside.c, session.c: watched calls -------------------------------------------------------------------------------

extern _Thread_local int pl_depth __attribute__((tls_model("initial-exec"), visibility("hidden")));
// The program's call address and the frame of the door, which exists as long as the call. Set by the doors.
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

// A watched call. pl_begin() fills it.
struct pl_call {
    const struct pl_slot *slot;
    struct pl_caller caller;
    uint64_t context; // current context; 0: none
    uint64_t serial;  // all memory now live is older than this
    uint64_t stream;
    uint64_t pool;
    uint32_t device; // of the current context
    bool has_device;
    int saved_errno;
    int cancel_state;
    bool refused;
    // The arguments of pl_charge().
    enum pl_kind kind;
    uint32_t target;  // device; VRAM_LOG_HOST for host memory; may be corrected once the memory exists
    uint32_t limited; // device whose limit was charged
    uint64_t charged_bytes;
};

// calls.c, inside.c. Begins a call. Returns true if it is the program's own and is watched; then call pl_end(), which restores errno.
// Returns false if it only passes through.
bool pl_begin(const struct pl_slot *slot, struct pl_call *call);
// Begins a call that frees memory, as pl_begin() does. Queries the current context only if our allocator serves (--cache).
bool pl_begin_free(const struct pl_slot *slot, struct pl_call *call);
// Call when a context may have ended: its handle may be reused for another device.
void pl_contexts_changed(void);
void pl_end(const struct pl_call *call);

// Charges `size` bytes against the limit of `device`, at the start of a call that allocates. If it returns true, call the driver. Returns
// false if the limit is exceeded, which is recorded; the call must then fail with PL_OUT_OF_MEMORY. Call pl_settle() in both cases, which
// also ends the call.
bool pl_charge(struct pl_call *call, enum pl_kind kind, uint32_t device, uint64_t size);
// Records the outcome. `key` identifies the memory within its kind and is its address if it has one; `size` is its size. Both are ignored
// unless `result` is PL_SUCCESS.
void pl_settle(struct pl_call *call, int32_t result, uint64_t key, uint64_t size);
// Records that memory was freed. Ignores memory that is unknown or newer than pl_begin().
void pl_died(const struct pl_call *call, enum pl_kind kind, uint64_t key);
// Records that a context and all its memory are gone.
void pl_context_gone(const struct pl_call *call, uint64_t context);
// Set and return the primary context of a device that the program retained; 0: none.
void pl_primary_context(uint32_t device, uint64_t context);
uint64_t pl_primary_context_of(uint32_t device);
// Track physical memory: add and drop a reference to the handle, map and unmap. The memory is freed when its last reference and mapping are
// gone.
void pl_retained(uint64_t handle, uint64_t address);
void pl_released(const struct pl_call *call, uint64_t handle);
void pl_mapped(const struct pl_call *call, uint64_t address, uint64_t size, uint64_t handle);
void pl_unmapped(const struct pl_call *call, uint64_t address, uint64_t size);
// Records the bytes that a pool of the driver reserves now.
void pl_pool_holds(const struct pl_call *call, uint32_t device, uint64_t pool, uint64_t bytes);
// Reduces the driver's figures to what --limit leaves. Changes nothing without a limit.
void pl_limit_view(uint32_t device, uint64_t *free_bytes, uint64_t *total_bytes);

// Calls the driver's own function, with the door's type: PL_REAL(slot, (uint64_t), (address)).
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
