// unsimulated.c: every name that a CUDA runtime ever exported, from simulator/standins/facts/cudart.def, as a weak function that is counted
// and returns "not supported". A definition in another file replaces it. This file must not include headers with the prototypes, because
// its functions have no parameters. Each library's map selects the exported names (CMakeLists.txt).
#include "../common/missing.h"
#include "runtime.h"

#define STRING_OF(number) #number
#define NAME_OF(number)   "libcudart.so." STRING_OF(number)

// clang-format off
#define X(exported, base, first, last, result, parameters)                                   \
    int exported(void) __attribute__((weak));                                                \
    int exported(void) {                                                                     \
        vr_missing_count(NAME_OF(RT_MAJOR), #exported, __builtin_return_address(0));         \
        return rt_end(RT_NOT_SUPPORTED);                                                     \
    }
#define EXPORTED(exported, first, last) X(exported, exported, first, last, int, (void))
#include "../facts/cudart.def"
// clang-format on
