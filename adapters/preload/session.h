// session.h: the state of the process as the doors see it, for the parts that hold or reset it.
#ifndef PL_SESSION_H
#define PL_SESSION_H

#include <stdatomic.h>

#include "preload.h"

// Held across fork().
void pl_session_lock(void);
void pl_session_unlock(void);
// In a child where nobody unlocked it: it is free.
void pl_session_renew(void);
// In the child of a fork, with the lock held: nothing of the parent's memory is the child's.
void pl_session_forget(void);
// The program ends.
void pl_session_close(void);

// Hooks around fork() and the end of the program. Called before anything is watched; any number of times. (process.c)
void pl_process_setup_now(void);
extern _Atomic(const char *) pl_process_mark __attribute__((visibility("hidden"))); // at 0: there is something to do
static inline void pl_process_setup(void) {
    if (*atomic_load_explicit(&pl_process_mark, memory_order_acquire) == 0) pl_process_setup_now();
}

#endif
