// fit_unreached.h: parts of a program that found no device, because NVIDIA's runtime is linked into them.
#ifndef CLI_FIT_UNREACHED_H
#define CLI_FIT_UNREACHED_H

#include <stdbool.h>
#include <stddef.h>

#include "fit_run.h"

// What is said of the first such module of a run; false where there is none. `whole`: the program used no device memory at all.
bool fit_unreached_text(const struct fit_run *run, bool whole, char *text, size_t capacity);
// That module's file; NULL where there is none. Borrowed from the run.
const char *fit_unreached_module(const struct fit_run *run);

#endif
