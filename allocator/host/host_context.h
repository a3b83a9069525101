// host_context.h: which CUDA context is current while the driver is asked, and what its answers mean.
#ifndef VR_HOST_HOST_CONTEXT_H
#define VR_HOST_HOST_CONTEXT_H

#include "host/host_state.h"

// Returns the status of a driver result outside the allocation calls.
VR_INLINE enum vram_status vr_host_status(vr_cu_result result) { return result == VR_CU_SUCCESS ? VRAM_OK : VRAM_DRIVER; }

// Gets the primary context in which memory is pinned. The first call retains it: on the device of the caller's current context, or else on
// the device that the creator named. *context may be NULL. DRIVER. Called without the state lock.
enum vram_status vr_host_home(struct vram_host *host, uint64_t *context);
// Releases the home context at the end.
void vr_host_leave_home(struct vram_host *host);

// The thread's state before vr_host_enter().
struct vr_host_guard {
    struct vram_driver *driver;
    uint64_t previous;
    bool changed;
    bool relaxed; // the thread's capture mode was exchanged; `mode` is its own
    int mode;
};
// Makes `context` current, and the thread's calls harmless to captures in progress, which a cache's calls for events or memory must not
// invalidate. DRIVER, with nothing changed. Every success needs one vr_host_leave().
enum vram_status vr_host_enter(struct vram_host *host, uint64_t context, struct vr_host_guard *guard);
// For queries about streams: makes the home context current if the thread has no context.
enum vram_status vr_host_enter_any(struct vram_host *host, struct vr_host_guard *guard);
void vr_host_leave(struct vr_host_guard *guard);

// Checks whether `stream` takes part in a capture now. The default streams never do; *silent (may be NULL) says that a capture forbids
// querying them. DRIVER. A default stream's own context must be current; any context will do for other streams.
enum vram_status vr_host_is_capturing(struct vram_host *host, uint64_t stream, bool *capturing, bool *silent);
// Returns the driver's id of the capture in which `stream` takes part, or 0. A context must be current.
uint64_t vr_host_capture_id(struct vram_host *host, uint64_t stream);

// Returns the driver's time, which is virtual on the simulated driver.
uint64_t vr_host_now_ns(const struct vram_host *host);

#endif
