// common.h: what every stand-in for one of NVIDIA's libraries needs: the driver, work on a stream, memory, objects that keep what is set.
//
// A stand-in computes nothing. A call that would compute is one launch on the stream of its handle, so that the stream has its time and a
// capture its node; what a call tells its caller (handles, sizes, results) is written. All of it goes through libcuda.so.1 as loaded: the
// simulated driver under `vram sim`. Functions here are safe to call from any thread; objects are the caller's, as NVIDIA's are.
#ifndef VR_STANDINS_COMMON_COMMON_H
#define VR_STANDINS_COMMON_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "missing.h"

// The names of the calls are NVIDIA's: no header of ours declares them. The version script of a library says which are exported.
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
// A stand-in uses few of the parameters that its functions have.
#pragma GCC diagnostic ignored "-Wunused-parameter"

// The driver: what is called of it. Numbers of results are CUresult's, 0 is success.
struct standin_driver {
#define X(member, symbol, version, parameters) int(*member) parameters;
#include "common_driver.def"
#undef X
};

// libcuda.so.1, loaded and initialized once per process; NULL where that fails. A function that it lacks answers 801.
const struct standin_driver *standin_driver(void);
// The same, and a context is current: the caller's, or the primary one of device 0. NULL where that fails.
const struct standin_driver *standin_begin(void);

// One launch of work. In a capture it is a node. Gives the driver's result.
int standin_work(uint64_t stream);
// Fills device memory with zeros in stream order. Nothing where address or bytes are 0.
int standin_zero(const void *address, size_t bytes, uint64_t stream);
// Writes a result of zeros: to the device in stream order, or to the host, for which the caller waits as NVIDIA's does. result may be NULL.
int standin_result(void *result, size_t bytes, bool on_device, uint64_t stream);
// Whether an address is memory of a device (managed memory is not).
bool standin_is_device(const void *address);
// Device memory that a library takes for itself. NULL where the driver refuses, or for no bytes.
void *standin_take(size_t bytes);
void standin_give(void *address);
// Counts a call that is not simulated, for `vram sim --missing`; in an exported function.
#define STANDIN_MISSING(name) vr_missing_count(standin_library_name, (name), __builtin_return_address(0))

// The version that the library tells of itself, in its own way of counting.
extern const int standin_library_version;
extern const char standin_library_name[]; // the file, as "libcublas.so.13"
// A version's part: 0 major, 1 minor, 2 patch, for a version that counts major * 10000 + minor * 100 + patch. -1 for another part.
int standin_version_part(int part);

// --- devices ---------------------------------------------------------------------------------------------------------------------------
// Compute capability of the current device as 10 * major + minor; 0 without one.
int standin_capability(void);

// --- objects ---------------------------------------------------------------------------------------------------------------------------
// What a program holds by handle begins with this. A handle of another kind, or one that was destroyed, is told apart where memory allows.
struct standin_object {
    uint64_t kind;
    struct standin_kept *kept; // what was set by number
};

// A new object of `bytes`, all zero but its kind. NULL without memory.
void *standin_new(uint64_t kind, size_t bytes);
bool standin_is(const void *object, uint64_t kind);
// Frees an object and what it keeps. False when it is none of that kind.
bool standin_destroy(void *object, uint64_t kind);

// Keeps a copy of a value by number in place of the earlier one. False without memory.
bool standin_keep(void *object, int64_t number, const void *value, size_t bytes);
// The value of a number; NULL when nothing was kept. It stays until the number is kept again or the object is destroyed.
const void *standin_kept(const void *object, int64_t number, size_t *bytes);

// --- sizes -----------------------------------------------------------------------------------------------------------------------------
enum standin_size {
#define X(name) STANDIN_##name,
#include "size_names.def"
#undef X
};

struct standin_size_row {
    enum standin_size what;
    int from_version, below_version;       // of the library; 0: any
    int from_capability, below_capability; // 10 * major + minor; 0: any
    uint64_t bytes;
    const char *source; // NULL: not known; the bytes are a guess
};

// The row that holds for a library's version on the current device. There is one for every size.
const struct standin_size_row *standin_size(enum standin_size what, int version);
// What a size that is not known may be at most in this call, for `vram fit` to say.
void standin_size_stake(enum standin_size what, uint64_t bytes);

#endif
