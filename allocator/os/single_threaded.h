// single_threaded.h: whether this process has one thread, so that a lock need not be an atomic instruction.
//
// glibc says so (since 2.32; the symbol is weak, because older ones have none) until a second thread is made, before that thread runs, and
// never again afterwards. What the first thread wrote until then happened before all that the second does.
#ifndef VR_OS_SINGLE_THREADED_H
#define VR_OS_SINGLE_THREADED_H

#include "base/base.h"

#if defined(__wasm__)
VR_INLINE bool vr_is_single_threaded(void) { return true; }
#else
extern char __libc_single_threaded __attribute__((weak));
VR_INLINE bool vr_is_single_threaded(void) { return &__libc_single_threaded != NULL && __libc_single_threaded != 0; }
#endif

#endif
