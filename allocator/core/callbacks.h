// callbacks.h: runs the callbacks that clients registered.
#ifndef VR_CORE_CALLBACKS_H
#define VR_CORE_CALLBACKS_H

#include "core/device.h"

// Runs the free callbacks. Sets *freed if a callback freed something. Call it without locks; the device's context is current before and
// after. DRIVER if the context cannot be made current again.
enum vram_status vr_run_callbacks(struct vr_device *device, uint64_t size_bytes, bool *freed);

#endif
