#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(struct vr_mutex), "vr_mutex must hold a pthread mutex");

static pthread_mutex_t *native(struct vr_mutex *mutex) { return (pthread_mutex_t *)(void *)mutex->storage; }

void vr_mutex_init(struct vr_mutex *mutex) { (void)pthread_mutex_init(native(mutex), NULL); }
void vr_mutex_destroy(struct vr_mutex *mutex) { (void)pthread_mutex_destroy(native(mutex)); }
void vr_mutex_lock(struct vr_mutex *mutex) { (void)pthread_mutex_lock(native(mutex)); }
void vr_mutex_unlock(struct vr_mutex *mutex) { (void)pthread_mutex_unlock(native(mutex)); }

void vr_os_yield(void) { (void)sched_yield(); }

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

static enum vram_status spawn(pthread_t *thread, void (*function)(void *argument), void *argument) {
    struct task *task = malloc(sizeof *task);
    if (task == NULL) return VRAM_NO_HOST_MEMORY;
    *task = (struct task){function, argument};
    if (pthread_create(thread, NULL, run_task, task) != 0) {
        free(task);
        return VRAM_NO_HOST_MEMORY;
    }
    return VRAM_OK;
}

unsigned vr_os_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    const int count = CPU_COUNT(&set);
    return count < 1 ? 1 : (unsigned)count;
}

enum vram_status vr_os_spawn_detached(void (*function)(void *argument), void *argument) {
    pthread_t thread;
    const enum vram_status status = spawn(&thread, function, argument);
    if (status == VRAM_OK) (void)pthread_detach(thread);
    return status;
}

_Static_assert(sizeof(pthread_t) <= sizeof(struct vr_thread), "vr_thread must hold a pthread_t");
_Static_assert(sizeof(pthread_cond_t) <= sizeof(struct vr_signal), "vr_signal must hold a pthread condition");

enum vram_status vr_thread_start(struct vr_thread *thread, void (*function)(void *argument), void *argument) {
    return spawn((pthread_t *)(void *)thread->storage, function, argument);
}

void vr_thread_join(struct vr_thread *thread) { (void)pthread_join(*(pthread_t *)(void *)thread->storage, NULL); }

static pthread_cond_t *native_signal(struct vr_signal *signal) { return (pthread_cond_t *)(void *)signal->storage; }

void vr_signal_init(struct vr_signal *signal) {
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(native_signal(signal), &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

void vr_signal_destroy(struct vr_signal *signal) { (void)pthread_cond_destroy(native_signal(signal)); }
void vr_signal_raise(struct vr_signal *signal) { (void)pthread_cond_broadcast(native_signal(signal)); }

void vr_signal_wait(struct vr_signal *signal, struct vr_mutex *mutex, uint64_t timeout_ns) {
    if (timeout_ns == UINT64_MAX) {
        (void)pthread_cond_wait(native_signal(signal), native(mutex));
        return;
    }
    const uint64_t end_ns = vr_os_monotonic_ns() + timeout_ns;
    const struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000u), .tv_nsec = (long)(end_ns % 1000000000u)};
    (void)pthread_cond_timedwait(native_signal(signal), native(mutex), &end);
}
