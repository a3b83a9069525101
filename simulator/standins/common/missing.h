// missing.h: counts the calls of a program that a stand-in does not simulate, by function and caller, for `vram sim --missing`.
//
// Each stand-in contains missing.c. The counts of a program and its children are rows of one shared-memory file named by VRAM_SIM_MISSING,
// so the counts of a killed process remain, and a forked child continues in the same rows. Rows are only added. Two threads may add the
// same row, so readers must add up equal rows.
#ifndef VR_STANDINS_COMMON_MISSING_H
#define VR_STANDINS_COMMON_MISSING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VR_MISSING_MAGIC UINT64_C(0x32676e697373696d) // "missing2"
#define VR_MISSING_ROWS  4096                         // further functions are not counted

// Used instead of a library's name: the row counts uses of an unknown size (simulator/standins/common/sizes.def).
#define VR_MISSING_SIZE "size"

enum vr_missing_state { VR_MISSING_EMPTY, VR_MISSING_READY };

// One function called by one module. Texts are truncated and NUL-terminated; they are written before the state becomes READY and never
// changed again.
struct vr_missing_row {
    _Atomic uint32_t state;
    uint32_t unused;
    _Atomic uint64_t count;
    _Atomic uint64_t bytes; // of a size: its upper bound, if the library can tell; 0: unknown
    char function[96], library[32];
    char module[240]; // file of the caller; only its end if it is too long
};

struct vr_missing_file {
    _Atomic uint64_t magic;
    _Atomic uint64_t used; // rows taken; may exceed VR_MISSING_ROWS
    struct vr_missing_row rows[VR_MISSING_ROWS];
};

// Counts a call of `function` of `library` ("libcuda") that is not simulated. `caller` is __builtin_return_address(0) of the exported
// function. Any thread. Does nothing if counting is off.
__attribute__((visibility("hidden"))) void vr_missing_count(const char *library, const char *function, const void *caller);

// Records that the size `function` may be as large as `bytes`.
__attribute__((visibility("hidden"))) void vr_missing_stake(const char *function, uint64_t bytes);

// Returns the file of the module that contains the code address; never NULL.
__attribute__((visibility("hidden"))) const char *vr_missing_module(const void *caller);

#endif
