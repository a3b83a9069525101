// callbacks.h: runs the callbacks that clients registered.
#ifndef VR_CORE_CALLBACKS_H
#define VR_CORE_CALLBACKS_H

#include "core/device.h"

// Runs the free callbacks. Call it without any lock; the device's context is current before and after. *freed: whether a callback freed
// something. DRIVER if the context cannot be made current again.
enum vram_status vr_run_callbacks(struct vr_device *device, uint64_t size_bytes, bool *freed);

#endif
