// single_threaded.h: whether this process has one thread, so that a lock need not be an atomic instruction.
//
// Uses glibc's flag (since 2.32; the symbol is weak because older versions lack it). glibc clears it when a second thread is created,
// before that thread runs, and never sets it again. Everything the first thread wrote before happens before everything the second does.
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
