#define _GNU_SOURCE
#include "lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

// Leaves the word AWAITED after waiting, since other threads may be waiting.
void pl_lock_wait(_Atomic uint32_t *word) {
    const int saved = errno;
    while (atomic_exchange_explicit(word, PL_LOCK_AWAITED, memory_order_acquire) != PL_LOCK_FREE)
        (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, PL_LOCK_AWAITED, NULL, NULL, 0);
    errno = saved;
}

void pl_lock_wake(_Atomic uint32_t *word) {
    const int saved = errno;
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}
