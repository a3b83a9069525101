// unsimulated.c: every name that libcuda ever exported, from simulator/standins/facts/cuda.def, as a weak function that is counted and
// returns "not supported". To simulate a function, define it in another file; the definition replaces the weak one. This file must not
// include headers with the prototypes, because its functions have no parameters.
#include "../common/missing.h"
#include "driver/abi.h"
#include "names.h"

#define UNSIMULATED __attribute__((weak, visibility("default")))

// clang-format off
#define X(exported, base, first, last, result, parameters)                                   \
    UNSIMULATED int exported(void);                                                          \
    int exported(void) {                                                                     \
        vr_missing_count("libcuda", #exported, __builtin_return_address(0));                 \
        return VR_CU_NOT_SUPPORTED;                                                          \
    }
#include "../facts/cuda.def"
#undef X

// Sorted by base name, like the table.
const struct vr_libcuda_name vr_libcuda_names[] = {
#define X(exported, base, first, last, result, parameters) {#base, #exported, (vr_libcuda_function *)exported, first, last},
#include "../facts/cuda.def"
#undef X
};
// clang-format on

const size_t vr_libcuda_name_count = sizeof vr_libcuda_names / sizeof vr_libcuda_names[0];
