// real.h: odds and ends that the parts of the preloaded library share.
#ifndef PL_REAL_H
#define PL_REAL_H

#include "preload.h"

// As strcmp() == 0, and whether a text begins so, without the C library.
bool pl_same(const char *text, const char *other);
bool pl_begins(const char *text, const char *start);
// The path of the library that holds the address, cut to fit; false for none. Under any lock but the loader's own.
bool pl_library_of(const void *address, char *name, size_t capacity);
// How many libraries have been closed so far: an address may be another library's after that.
uint64_t pl_libraries_closed(void);
// A record for `vram run`: a word, and two details, each with a NUL at its end.
void pl_list(const char *what, const char *detail, const char *more);
// Whether a file may have that size: a write past the limit of the process would end it with a signal.
bool pl_may_grow(uint64_t size_bytes);

#endif
