// callbacks.h: what clients asked to be called for.
#ifndef VR_CORE_CALLBACKS_H
#define VR_CORE_CALLBACKS_H

#include "core/device.h"

// Runs the free callbacks, without any lock, with the device's context current before and after. *freed: one of them freed something.
// DRIVER when the context cannot be made current again.
enum vram_status vr_run_callbacks(struct vr_device *device, uint64_t size_bytes, bool *freed);

#endif
