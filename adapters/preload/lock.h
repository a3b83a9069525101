// lock.h: the session's lock, in one word. Locking without contention takes one atomic instruction, and none before the second thread is
// created (glibc reports that since 2.32; the symbol is weak for older versions).
#ifndef PL_LOCK_H
#define PL_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PL_LOCK_FREE, PL_LOCK_HELD, PL_LOCK_AWAITED };

extern char __libc_single_threaded __attribute__((weak));
static inline bool pl_is_single_threaded(void) { return &__libc_single_threaded != NULL && __libc_single_threaded != 0; }

// lock.c: wait and wake by the kernel's futex. These are not cancellation points.
void pl_lock_wait(_Atomic uint32_t *word);
void pl_lock_wake(_Atomic uint32_t *word);

static inline void pl_lock(_Atomic uint32_t *word) {
    uint32_t expected = PL_LOCK_FREE;
    if (pl_is_single_threaded() && atomic_load_explicit(word, memory_order_relaxed) == PL_LOCK_FREE) {
        atomic_store_explicit(word, PL_LOCK_HELD, memory_order_relaxed);
        return;
    }
    if (!atomic_compare_exchange_strong_explicit(word, &expected, PL_LOCK_HELD, memory_order_acquire, memory_order_relaxed))
        pl_lock_wait(word);
}

static inline void pl_unlock(_Atomic uint32_t *word) {
    if (pl_is_single_threaded()) {
        atomic_store_explicit(word, PL_LOCK_FREE, memory_order_relaxed);
        return;
    }
    if (atomic_exchange_explicit(word, PL_LOCK_FREE, memory_order_release) == PL_LOCK_AWAITED) pl_lock_wake(word);
}

#endif
