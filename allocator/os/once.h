// once.h: runs an action once per process, at its first use.
#ifndef VR_OS_ONCE_H
#define VR_OS_ONCE_H

#include <stdatomic.h>

#include "base/base.h"
#include "os/os.h"

// A zeroed struct means not done yet.
struct vr_once {
    _Atomic uint64_t state; // 0: not done; UINT64_MAX: done; otherwise the id of the process that is running the action
};

// Returns once action() has run, in this call or another. action() must not use the same vr_once. Any thread; afterwards the cost is one
// load. If a process was forked while another thread was running the action, the child runs it again.
VR_INLINE void vr_once(struct vr_once *once, void (*action)(void)) {
    uint64_t state = atomic_load_explicit(&once->state, memory_order_acquire);
    if (VR_LIKELY(state == UINT64_MAX)) return;
    const uint64_t own = vr_os_process_id();
    for (; state != UINT64_MAX; state = atomic_load_explicit(&once->state, memory_order_acquire)) {
        if (state == own) {
            vr_os_yield();
        } else if (atomic_compare_exchange_strong(&once->state, &state, own)) {
            action();
            atomic_store_explicit(&once->state, UINT64_MAX, memory_order_release);
        }
    }
}

#endif
