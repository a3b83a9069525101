// real.h: what of the C library and of the loader the other parts use.
#ifndef PL_REAL_H
#define PL_REAL_H

#include <stdatomic.h>

#include "preload.h"

// As strcmp() == 0, and whether a text begins so, without the C library.
bool pl_same(const char *text, const char *other);
bool pl_begins(const char *text, const char *start);
// The path of the library that holds the address, cut to fit; false for none. Under any lock but the loader's own.
bool pl_library_of(const void *address, char *name, size_t capacity);
// How many libraries have been closed so far: an address may be another library's after that.
extern _Atomic uint64_t pl_closed_libraries __attribute__((visibility("hidden")));
static inline uint64_t pl_libraries_closed(void) { return atomic_load_explicit(&pl_closed_libraries, memory_order_relaxed); }

// The lock of the table of drivers and of the doors' slots (doors.c). Held across fork(), so that the child finds them whole.
void pl_doors_lock(void);
void pl_doors_unlock(void);
// In a child where nobody unlocked it: it is free.
void pl_doors_renew(void);

#endif
