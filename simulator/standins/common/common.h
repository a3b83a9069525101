// common.h: services for the stand-ins of NVIDIA's libraries: the driver, work on streams, memory, and objects that store settings.
//
// A stand-in computes nothing. A call that would compute becomes one launch on its handle's stream, which takes time and makes a node in a
// capture. Outputs of calls (handles, sizes, results) are written. Everything goes through libcuda.so.1, which is the simulated driver
// under `vram sim`. Functions here may be called from any thread; objects are not locked, like NVIDIA's.
#ifndef VR_STANDINS_COMMON_COMMON_H
#define VR_STANDINS_COMMON_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "missing.h"

// The calls have NVIDIA's names, which none of our headers declares. Each library's version script says which are exported.
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
// A stand-in uses few of its functions' parameters.
#pragma GCC diagnostic ignored "-Wunused-parameter"

// The driver functions that are used. Results are CUresult values; 0 is success.
struct standin_driver {
#define X(member, symbol, version, parameters) int(*member) parameters;
#include "common_driver.def"
#undef X
};

// Returns the functions of libcuda.so.1, which is loaded and initialized once per process; NULL on failure. Missing functions return 801.
const struct standin_driver *standin_driver(void);
// Like standin_driver(), but also makes sure that a context is current: the caller's, else the primary one of device 0. NULL on failure.
const struct standin_driver *standin_begin(void);

// Launches one piece of work, which becomes a node in a capture. Returns the driver's result.
int standin_work(uint64_t stream);
// Memory that a piece of work uses, which `vram check` receives with the work's name.
struct standin_operand {
    const void *address;
    uint64_t bytes;  // 0: the operand counts as absent
    uint64_t effect; // STANDIN_READS, _USES or _WRITES; plus STANDIN_OPEN if it uses at least `bytes`, and at most the rest of the block
};
enum { STANDIN_READS, STANDIN_USES, STANDIN_WRITES, STANDIN_OPEN = 4, STANDIN_OPERANDS = 16 };
// Like standin_work(), for work whose name and operands `vram check` receives. count: at most STANDIN_OPERANDS.
int standin_work_on(uint64_t stream, const char *name, const struct standin_operand *operands, size_t count);
// Hides the thread's calls of the driver from `vram check`, until it is called with false. Only for calls that the real library does not
// make.
void standin_hide(bool hidden);
// Tells `vram check` that two ranks make different calls of a collective. Both are phrases.
void standin_disagreement(const char *mine, const char *theirs);
// Takes the program's stack. Returns its id, or 0 if there is none.
uint32_t standin_stack(void);
// Writes the frames of a stack, innermost first, one per line, beginning at the caller of the outermost function of a library.
void standin_stack_text(uint32_t stack, char *text, size_t capacity);
// Zeroes device memory in stream order. Does nothing if address or bytes is 0.
int standin_zero(const void *address, size_t bytes, uint64_t stream);
// Writes a result of zeros: to the device in stream order, or to the host after waiting for the stream, as NVIDIA's libraries do. result
// may be NULL.
int standin_result(void *result, size_t bytes, bool on_device, uint64_t stream);
// Returns whether the address is device memory. Managed memory is not.
bool standin_is_device(const void *address);
// Allocates device memory for the library itself. Returns NULL if the driver refuses or bytes is 0.
void *standin_take(size_t bytes);
void standin_give(void *address);
// Counts a call that is not simulated, for `vram sim --missing`. Use in an exported function.
#define STANDIN_MISSING(name) vr_missing_count(standin_library_name, (name), __builtin_return_address(0))

// Version that the library reports, in its own encoding.
extern const int standin_library_version;
extern const char standin_library_name[]; // file name, such as "libcublas.so.13"
// Returns a part of a version encoded as major * 10000 + minor * 100 + patch: 0 major, 1 minor, 2 patch. Returns -1 for other parts.
int standin_version_part(int part);

// --- devices ---------------------------------------------------------------------------------------------------------------------------
// Returns the compute capability of the current device as 10 * major + minor, 0 without a device.
int standin_capability(void);

// --- objects ---------------------------------------------------------------------------------------------------------------------------
// First member of objects that programs hold by handle. Detects handles of another kind and destroyed ones, unless their memory was reused.
struct standin_object {
    uint64_t kind;
    struct standin_kept *kept; // settings by number
};

// Creates an object of `bytes`, zero except for its kind. Returns NULL if out of memory.
void *standin_new(uint64_t kind, size_t bytes);
bool standin_is(const void *object, uint64_t kind);
// Frees an object and its settings. Returns false if it is not of that kind.
bool standin_destroy(void *object, uint64_t kind);

// Stores a copy of a value under a number, replacing an earlier one. Returns false if out of memory.
bool standin_keep(void *object, int64_t number, const void *value, size_t bytes);
// Returns the value stored under a number, or NULL. Valid until the number is stored again or the object is destroyed.
const void *standin_kept(const void *object, int64_t number, size_t *bytes);

// --- sizes -----------------------------------------------------------------------------------------------------------------------------
enum standin_size {
#define X(name) STANDIN_##name,
#include "size_names.def"
#undef X
};

struct standin_size_row {
    enum standin_size what;
    int from_version, below_version;       // of the library; 0: no limit
    int from_capability, below_capability; // 10 * major + minor; 0: no limit
    uint64_t bytes;
    const char *source; // NULL: the size is unknown and `bytes` is a guess
};

// Returns the row for a library's version on the current device. Every size has one.
const struct standin_size_row *standin_size(enum standin_size what, int version);
// Reports the upper bound that an unknown size may have in this call; `vram fit` shows it.
void standin_size_stake(enum standin_size what, uint64_t bytes);

#endif
