// missing.h: what a program wanted of a stand-in and did not get, counted by function and by who called, for `vram sim --missing`.
//
// Every stand-in compiles missing.c into itself. The counts of all of them, in a program and its children, are rows of one file in shared
// memory that the variable VRAM_SIM_MISSING names: what a killed process wanted is there, and a fork goes on in the same rows. Rows are
// only ever added; two threads may add the same one, so whoever reads adds up equal ones.
#ifndef VR_STANDINS_COMMON_MISSING_H
#define VR_STANDINS_COMMON_MISSING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VR_MISSING_MAGIC UINT64_C(0x32676e697373696d) // "missing2"
#define VR_MISSING_ROWS  4096                         // what does not fit is not counted

// In place of a library's name: what is counted is no function but a size that was used and that nobody knows
// (simulator/standins/common/sizes.def).
#define VR_MISSING_SIZE "size"

enum vr_missing_state { VR_MISSING_EMPTY, VR_MISSING_READY };

// One function that a module called. Texts are cut to fit and end with a NUL; they are written before the state is READY, then never again.
struct vr_missing_row {
    _Atomic uint32_t state;
    uint32_t unused;
    _Atomic uint64_t count;
    _Atomic uint64_t bytes; // of a size: what it may come to at most, as far as the library can tell; 0: it cannot
    char function[96], library[32];
    char module[240]; // the file that called; its end where it is too long
};

struct vr_missing_file {
    _Atomic uint64_t magic;
    _Atomic uint64_t used; // rows begun, may exceed VR_MISSING_ROWS
    struct vr_missing_row rows[VR_MISSING_ROWS];
};

// A call of `function` of `library` ("libcuda") that is not simulated; `caller` is __builtin_return_address(0) of the exported function.
// Any thread; nothing happens where nobody counts.
__attribute__((visibility("hidden"))) void vr_missing_count(const char *library, const char *function, const void *caller);

// The size `function` may have come to so many bytes.
__attribute__((visibility("hidden"))) void vr_missing_stake(const char *function, uint64_t bytes);

// The file of the module that an address of code lies in; never NULL.
__attribute__((visibility("hidden"))) const char *vr_missing_module(const void *caller);

#endif
