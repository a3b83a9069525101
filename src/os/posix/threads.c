#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
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

enum vram_status vr_os_spawn_detached(void (*function)(void *argument), void *argument) {
    struct task *task = malloc(sizeof *task);
    if (task == NULL) return VRAM_NO_HOST_MEMORY;
    *task = (struct task){function, argument};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_task, task) != 0) {
        free(task);
        return VRAM_NO_HOST_MEMORY;
    }
    (void)pthread_detach(thread);
    return VRAM_OK;
}
