// Every name of the facts that nothing else here defines answers 801.
#include "runtime.h"

// clang-format off
#define X(name, base, first, last, type, parameters)                                 \
    int name(void) __attribute__((weak));                                            \
    int name(void) { return rt_missing(#name); }
#define EXPORTED(name, first, last) X(name, name, first, last, int, (void))
// clang-format on
static int rt_missing(const char *name) {
    (void)name;
    return rt_end(RT_NOT_SUPPORTED);
}
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
#include "../facts/cudart.def"
