// real.h: odds and ends that the parts of the preloaded library share.
#ifndef PL_REAL_H
#define PL_REAL_H

#include "preload.h"

// How many libraries have been closed so far: an address may be another library's after that.
uint64_t pl_libraries_closed(void);
// A line for `vram run`: a word, and two details, separated by tabs.
void pl_list(const char *what, const char *detail, const char *more);

#endif
