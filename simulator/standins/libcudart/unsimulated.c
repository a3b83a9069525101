// unsimulated.c: every name that a CUDA runtime ever exported, from simulator/standins/facts/cudart.def. Here each is a weak function that
// answers "not supported" and is counted; a definition in another file takes its place. This file includes no header with the prototypes:
// arguments are taken as they come. Which names a library exports, its map says (CMakeLists.txt).
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
