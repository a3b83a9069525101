// real.h: access to the C library and the loader for the other files.
#ifndef PL_REAL_H
#define PL_REAL_H

#include <stdatomic.h>

#include "preload.h"

// Compare like strcmp() == 0, and check a prefix, without the C library.
bool pl_same(const char *text, const char *other);
bool pl_begins(const char *text, const char *start);
// Stores the path of the library that contains the address, cut to fit. Returns false if there is none. May be called with any lock held
// except the loader's.
bool pl_library_of(const void *address, char *name, size_t capacity);
// The number of closed libraries. When it changes, an address may belong to another library.
extern _Atomic uint64_t pl_closed_libraries __attribute__((visibility("hidden")));
static inline uint64_t pl_libraries_closed(void) { return atomic_load_explicit(&pl_closed_libraries, memory_order_relaxed); }

// Guards the table of drivers and the doors' slots (doors.c). Held across fork(), so that the child finds both consistent.
void pl_doors_lock(void);
void pl_doors_unlock(void);
// Makes the lock free in a child where its owner does not exist.
void pl_doors_renew(void);

#endif
