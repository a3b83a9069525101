// notices.h: records for `vram run`, in the file that VRAM_RUN_LIST names.
#ifndef PL_NOTICES_H
#define PL_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

// A record: a word, and two details, each with a NUL at its end.
void pl_list(const char *what, const char *detail, const char *more);
// Something that cannot be recorded, for `vram run` to print: a word and a detail. Each text once per process. Under any lock.
void pl_missed(const char *what, const char *detail);
// Whether a file may have that size: a write past the limit of the process would end it with a signal.
bool pl_may_grow(uint64_t size_bytes);

// Held across fork().
void pl_notices_lock(void);
void pl_notices_unlock(void);
// In a child where nobody unlocked it: it is free.
void pl_notices_renew(void);

#endif
