// notices.h: writes records for `vram run` into the file that VRAM_RUN_LIST names.
#ifndef PL_NOTICES_H
#define PL_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

// Writes a record: a word and two details, each with a terminating NUL.
void pl_list(const char *what, const char *detail, const char *more);
// Reports something that cannot be recorded, which `vram run` prints: a word and a detail. Each text is reported once per process. May be
// called with any lock held.
void pl_missed(const char *what, const char *detail);
// Returns whether a file may have that size: writing beyond the process's limit would kill it with a signal.
bool pl_may_grow(uint64_t size_bytes);

// The lock is held across fork().
void pl_notices_lock(void);
void pl_notices_unlock(void);
// Makes the lock free in a child where its owner does not exist.
void pl_notices_renew(void);

#endif
