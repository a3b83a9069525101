// unsupported.c: every name that NVML ever exported, from simulator/standins/facts/nvml.def, as a weak function that is counted and returns
// "not supported". A definition in another file replaces it. This file must not include headers with the prototypes.
#include "../common/missing.h"

#define NOT_SUPPORTED 3

// clang-format off
#define X(exported, base, first, last, result, parameters)                                    \
    __attribute__((weak, visibility("default"))) int exported(void);                          \
    int exported(void) {                                                                      \
        vr_missing_count("libnvidia-ml", #exported, __builtin_return_address(0));             \
        return NOT_SUPPORTED;                                                                 \
    }
#include "../facts/nvml.def"
#undef X
// clang-format on
