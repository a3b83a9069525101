// threads.c: threads by pthreads; mutexes and condition variables by the kernel's futexes.
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "os/os.h"
#include "os/single_threaded.h"

// A mutex is one futex word. An uncontended lock is one atomic instruction, and an unlock another: a third of the cost of a pthread mutex,
// and the hot path takes several. A zeroed mutex is free. In the child of a fork() a held mutex stays held.
enum { MUTEX_FREE, MUTEX_HELD, MUTEX_AWAITED };

static _Atomic uint32_t *word_of(struct vr_mutex *mutex) { return (_Atomic uint32_t *)(void *)mutex->storage; }

// Sleeps until woken or until the timeout (NULL: no timeout), or returns spuriously; returns at once if the word is not `expected`.
static void sleep_on(_Atomic uint32_t *word, uint32_t expected, const struct timespec *timeout) {
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, NULL, 0);
}
static void wake_up(_Atomic uint32_t *word, int threads) { (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0); }

void vr_mutex_init(struct vr_mutex *mutex) {
    assert(mutex != NULL);
    atomic_init(word_of(mutex), MUTEX_FREE);
}

void vr_mutex_destroy(struct vr_mutex *mutex) {
    assert(mutex != NULL && atomic_load(word_of(mutex)) == MUTEX_FREE); // it must not be held
    (void)mutex;
}

// A thread that had to wait leaves the word AWAITED, because others may be waiting, too.
VR_NOINLINE static void lock_contended(_Atomic uint32_t *word) {
    while (atomic_exchange_explicit(word, MUTEX_AWAITED, memory_order_acquire) != MUTEX_FREE) sleep_on(word, MUTEX_AWAITED, NULL);
}

VR_INLINE bool try_lock(_Atomic uint32_t *word) {
    uint32_t expected = MUTEX_FREE;
    if (vr_is_single_threaded() && atomic_load_explicit(word, memory_order_relaxed) == MUTEX_FREE) {
        atomic_store_explicit(word, MUTEX_HELD, memory_order_relaxed);
        return true;
    }
    return VR_LIKELY(atomic_compare_exchange_strong_explicit(word, &expected, MUTEX_HELD, memory_order_acquire, memory_order_relaxed));
}

void vr_mutex_lock(struct vr_mutex *mutex) {
    if (!try_lock(word_of(mutex))) lock_contended(word_of(mutex));
}

bool vr_mutex_try_lock(struct vr_mutex *mutex) { return try_lock(word_of(mutex)); }

void vr_mutex_unlock(struct vr_mutex *mutex) {
    _Atomic uint32_t *word = word_of(mutex);
    if (vr_is_single_threaded()) {
        atomic_store_explicit(word, MUTEX_FREE, memory_order_relaxed);
        return;
    }
    const uint32_t state = atomic_exchange_explicit(word, MUTEX_FREE, memory_order_release);
    assert(state != MUTEX_FREE);
    if (VR_UNLIKELY(state == MUTEX_AWAITED)) wake_up(word, 1);
}

void vr_os_yield(void) { (void)sched_yield(); }

// Uses the system call, because glibc has gettid() only since 2.30. Cached, because every recorded event needs it.
uint64_t vr_os_thread_id(void) {
    static _Thread_local uint64_t id;
    if (id == 0) id = (uint64_t)syscall(SYS_gettid);
    return id;
}

struct task {
    void (*function)(void *argument);
    void *argument;
};

static void *run_task(void *opaque) {
    struct task task = *(struct task *)opaque;
    free(opaque);
    task.function(task.argument);
    return NULL;
}

// Counts the processors that the process is bound to: in a container fewer than the machine has.
unsigned vr_os_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    const int count = CPU_COUNT(&set);
    return count < 1 ? 1 : (unsigned)count;
}

_Static_assert(sizeof(pthread_t) <= sizeof(struct vr_thread), "vr_thread must hold a pthread_t");
_Static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t), "the kernel looks at 32 bits");

enum vram_status vr_thread_start(struct vr_thread *thread, void (*function)(void *argument), void *argument) {
    assert(thread != NULL && function != NULL);
    struct task *task = malloc(sizeof *task);
    if (task == NULL) return VRAM_NO_HOST_MEMORY;
    *task = (struct task){function, argument};
    if (pthread_create((pthread_t *)(void *)thread->storage, NULL, run_task, task) != 0) {
        free(task);
        return VRAM_NO_HOST_MEMORY;
    }
    return VRAM_OK;
}

void vr_thread_join(struct vr_thread *thread) {
    assert(thread != NULL);
    const int failed = pthread_join(*(pthread_t *)(void *)thread->storage, NULL);
    assert(failed == 0); // it was started, is joined once, and is not the caller
    (void)failed;
}

// The number of raises.
static _Atomic uint32_t *raises_of(struct vr_signal *signal) { return (_Atomic uint32_t *)(void *)signal->storage; }

void vr_signal_init(struct vr_signal *signal) {
    assert(signal != NULL);
    atomic_init(raises_of(signal), 0);
}

void vr_signal_destroy(struct vr_signal *signal) {
    assert(signal != NULL);
    (void)signal;
}

void vr_signal_raise(struct vr_signal *signal) {
    assert(signal != NULL);
    atomic_fetch_add_explicit(raises_of(signal), 1, memory_order_release);
    wake_up(raises_of(signal), INT_MAX);
}

// The kernel's timeout uses the monotonic clock, so setting the time does not change it.
void vr_signal_wait(struct vr_signal *signal, struct vr_mutex *mutex, uint64_t timeout_ns) {
    assert(signal != NULL && mutex != NULL);
    const uint32_t raises = atomic_load_explicit(raises_of(signal), memory_order_acquire);
    const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000u), .tv_nsec = (long)(timeout_ns % 1000000000u)};
    vr_mutex_unlock(mutex);
    sleep_on(raises_of(signal), raises, timeout_ns == UINT64_MAX ? NULL : &timeout);
    vr_mutex_lock(mutex);
}
