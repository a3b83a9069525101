// session.h: locks, resets and closes the session.
#ifndef PL_SESSION_H
#define PL_SESSION_H

#include <stdatomic.h>

#include "preload.h"

// The lock is held across fork().
void pl_session_lock(void);
void pl_session_unlock(void);
// Makes the lock free in a child where its owner does not exist.
void pl_session_renew(void);
// Call in the child of a fork, with the lock held: drops all memory, which is the parent's.
void pl_session_forget(void);
// Call at the program's end.
void pl_session_close(void);

// Installs the hooks for fork() and the program's end (process.c). Call before anything is watched; repeated calls are harmless.
void pl_process_setup_now(void);
extern _Atomic(const char *) pl_process_mark __attribute__((visibility("hidden"))); // points to 0 if pl_process_setup_now() has work
static inline void pl_process_setup(void) {
    if (*atomic_load_explicit(&pl_process_mark, memory_order_acquire) == 0) pl_process_setup_now();
}

#endif
