// threads.c: WebAssembly, as used by the page and the command, has one thread: no lock is ever contended.
#include "os/os.h"

void vr_mutex_init(struct vr_mutex *mutex) { (void)mutex; }
void vr_mutex_destroy(struct vr_mutex *mutex) { (void)mutex; }
void vr_mutex_lock(struct vr_mutex *mutex) { (void)mutex; }
bool vr_mutex_try_lock(struct vr_mutex *mutex) {
    (void)mutex;
    return true;
}
void vr_mutex_unlock(struct vr_mutex *mutex) { (void)mutex; }
void vr_os_yield(void) {}
uint64_t vr_os_thread_id(void) { return 1; }
unsigned vr_os_processors(void) { return 1; }
enum vram_status vr_thread_start(struct vr_thread *thread, void (*function)(void *argument), void *argument) {
    (void)thread;
    (void)function;
    (void)argument;
    return VRAM_UNSUPPORTED;
}
void vr_thread_join(struct vr_thread *thread) { (void)thread; }
void vr_signal_init(struct vr_signal *signal) { (void)signal; }
void vr_signal_destroy(struct vr_signal *signal) { (void)signal; }
void vr_signal_raise(struct vr_signal *signal) { (void)signal; }
void vr_signal_wait(struct vr_signal *signal, struct vr_mutex *mutex, uint64_t timeout_ns) {
    (void)signal;
    (void)mutex;
    (void)timeout_ns;
}
