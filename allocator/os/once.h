// once.h: what is done once in a process, by whoever needs it first.
#ifndef VR_OS_ONCE_H
#define VR_OS_ONCE_H

#include <stdatomic.h>

#include "base/base.h"
#include "os/os.h"

// All-zero: not done yet.
struct vr_once {
    _Atomic uint64_t state; // 0 not, UINT64_MAX done, else being done by the process of this number
};

// Returns when action() has been done, by this call or by another. action() must not come here again. Any thread; afterwards one load.
// In a process that was forked while another thread was at it, which is not there, it is done anew.
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
