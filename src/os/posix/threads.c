// threads.c: mutexes, threads and condition variables, which are those of pthreads.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "os/os.h"

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(struct vr_mutex), "vr_mutex must hold a pthread mutex");

static pthread_mutex_t *native(struct vr_mutex *mutex) { return (pthread_mutex_t *)(void *)mutex->storage; }

void vr_mutex_init(struct vr_mutex *mutex) {
    assert(mutex != NULL);
    const int failed = pthread_mutex_init(native(mutex), NULL);
    assert(failed == 0);
    (void)failed;
}

void vr_mutex_destroy(struct vr_mutex *mutex) {
    assert(mutex != NULL);
    const int failed = pthread_mutex_destroy(native(mutex));
    assert(failed == 0); // EBUSY: somebody holds it
    (void)failed;
}

// On the hot path, where each instruction is counted: an ordinary mutex fails only where it is none. No errorcheck mutex either: in the
// child of a fork the thread that unlocks has another id than the one that locked.
void vr_mutex_lock(struct vr_mutex *mutex) { (void)pthread_mutex_lock(native(mutex)); }
void vr_mutex_unlock(struct vr_mutex *mutex) { (void)pthread_mutex_unlock(native(mutex)); }

void vr_os_yield(void) { (void)sched_yield(); }

// By the system call: glibc has gettid() from 2.30 on. Kept, for it is asked at every recorded event.
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

// Those that the process is bound to: in a container fewer than the machine has.
unsigned vr_os_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    const int count = CPU_COUNT(&set);
    return count < 1 ? 1 : (unsigned)count;
}

_Static_assert(sizeof(pthread_t) <= sizeof(struct vr_thread), "vr_thread must hold a pthread_t");
_Static_assert(sizeof(pthread_cond_t) <= sizeof(struct vr_signal), "vr_signal must hold a pthread condition");

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
    assert(failed == 0); // it was started, once, and is not the caller
    (void)failed;
}

static pthread_cond_t *native_signal(struct vr_signal *signal) { return (pthread_cond_t *)(void *)signal->storage; }

// By the monotonic clock: a wait is no shorter or longer when somebody sets the time.
void vr_signal_init(struct vr_signal *signal) {
    assert(signal != NULL);
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(native_signal(signal), &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

void vr_signal_destroy(struct vr_signal *signal) {
    assert(signal != NULL);
    (void)pthread_cond_destroy(native_signal(signal));
}

void vr_signal_raise(struct vr_signal *signal) {
    assert(signal != NULL);
    (void)pthread_cond_broadcast(native_signal(signal));
}

void vr_signal_wait(struct vr_signal *signal, struct vr_mutex *mutex, uint64_t timeout_ns) {
    assert(signal != NULL && mutex != NULL);
    if (timeout_ns == UINT64_MAX) {
        (void)pthread_cond_wait(native_signal(signal), native(mutex));
        return;
    }
    const uint64_t end_ns = vr_os_monotonic_ns() + timeout_ns;
    const struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000u), .tv_nsec = (long)(end_ns % 1000000000u)};
    (void)pthread_cond_timedwait(native_signal(signal), native(mutex), &end);
}
