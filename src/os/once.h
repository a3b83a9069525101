// once.h: what is done once in a process, by whoever needs it first.
#ifndef VR_OS_ONCE_H
#define VR_OS_ONCE_H

#include <stdatomic.h>

#include "base/base.h"
#include "os/os.h"

// All-zero: not done yet.
struct vr_once {
    _Atomic int state; // 0 not, 1 being done, 2 done
};

// Returns when action() has been done, by this call or by another. action() must not come here again. Any thread; afterwards one load.
VR_INLINE void vr_once(struct vr_once *once, void (*action)(void)) {
    int expected = 0;
    if (VR_LIKELY(atomic_load_explicit(&once->state, memory_order_acquire) == 2)) return;
    if (atomic_compare_exchange_strong(&once->state, &expected, 1)) {
        action();
        atomic_store_explicit(&once->state, 2, memory_order_release);
    }
    while (atomic_load_explicit(&once->state, memory_order_acquire) != 2) vr_os_yield();
}

#endif
