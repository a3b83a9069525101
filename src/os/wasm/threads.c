// threads.c: WebAssembly as the page uses it has one thread: nothing is ever held by another.
#include "os/os.h"

void vr_mutex_init(struct vr_mutex *mutex) { (void)mutex; }
void vr_mutex_destroy(struct vr_mutex *mutex) { (void)mutex; }
void vr_mutex_lock(struct vr_mutex *mutex) { (void)mutex; }
void vr_mutex_unlock(struct vr_mutex *mutex) { (void)mutex; }
void vr_os_yield(void) {}
uint64_t vr_os_thread_id(void) { return 1; }
