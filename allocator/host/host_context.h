// host_context.h: which CUDA context is current while the driver is asked, and what its answers mean.
#ifndef VR_HOST_HOST_CONTEXT_H
#define VR_HOST_HOST_CONTEXT_H

#include "host/host_state.h"

// Status of a driver result outside the allocation calls.
VR_INLINE enum vram_status vr_host_status(vr_cu_result result) { return result == VR_CU_SUCCESS ? VRAM_OK : VRAM_DRIVER; }

// The primary context that memory is pinned in: retained at the first call, of the device whose context the caller has current, or
// else of the one that the creator named. *context may be NULL. DRIVER. Without the state lock.
enum vram_status vr_host_home(struct vram_host *host, uint64_t *context);
// Releases it, at the end.
void vr_host_leave_home(struct vram_host *host);

// What a thread had before vr_host_enter().
struct vr_host_guard {
    struct vram_driver *driver;
    uint64_t previous;
    bool changed;
    bool relaxed; // the thread's capture mode was exchanged; `mode` is its own
    int mode;
};
// Makes `context` current, and the thread's calls harmless to captures under way (they may not be broken by a cache that asks for
// events or memory). DRIVER, then nothing changed. Every success needs one vr_host_leave().
enum vram_status vr_host_enter(struct vram_host *host, uint64_t context, struct vr_host_guard *guard);
// For questions about streams: the home context where the thread has none.
enum vram_status vr_host_enter_any(struct vram_host *host, struct vr_host_guard *guard);
void vr_host_leave(struct vr_host_guard *guard);

// Whether `stream` takes part in a capture now. The default streams never do; they are silent (*silent, may be NULL) where a capture
// forbids asking them. DRIVER. The context of a default
// stream must be current, any context for another one.
enum vram_status vr_host_is_capturing(struct vram_host *host, uint64_t stream, bool *capturing, bool *silent);
// The driver's id of the capture that `stream` takes part in; 0 for none. With a context current.
uint64_t vr_host_capture_id(struct vram_host *host, uint64_t stream);

// Driver time: virtual on the simulated driver.
uint64_t vr_host_now_ns(const struct vram_host *host);

#endif
