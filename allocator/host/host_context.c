#include "host/host_context.h"
#include "vram/driver.h"

// --- home -----------------------------------------------------------------------------------------------------------------------

// Chooses the current context's device: pinning memory must not give a program that works on device 3 a context on device 0.
static enum vram_status choose_device(struct vram_host *host, int *device) {
    uint64_t current = 0;
    VR_TRY(vr_host_status(vr_cu(host->driver, ctx_get_current, &current)));
    *device = (int)host->device;
    return current == 0 ? VRAM_OK : vr_host_status(vr_cu(host->driver, ctx_get_device, device));
}

enum vram_status vr_host_home(struct vram_host *host, uint64_t *context) {
    uint64_t home = atomic_load_explicit(&host->home, memory_order_acquire);
    enum vram_status status = VRAM_OK;
    if (VR_UNLIKELY(home == 0)) {
        vr_mutex_lock(&host->setup);
        home = atomic_load_explicit(&host->home, memory_order_relaxed);
        if (home == 0) {
            status = choose_device(host, &host->home_device);
            if (status == VRAM_OK) status = vr_host_status(vr_cu(host->driver, primary_ctx_retain, &home, host->home_device));
            if (status == VRAM_OK) atomic_store_explicit(&host->home, home, memory_order_release);
        }
        vr_mutex_unlock(&host->setup);
    }
    if (status == VRAM_OK && context != NULL) *context = home;
    return status;
}

void vr_host_leave_home(struct vram_host *host) {
    if (atomic_load_explicit(&host->home, memory_order_relaxed) == 0) return;
    VR_CU_INSIST(host->driver, primary_ctx_release, host->home_device);
    atomic_store_explicit(&host->home, 0, memory_order_relaxed);
}

// --- guard ------------------------------------------------------------------------------------------------------------------------

enum vram_status vr_host_enter(struct vram_host *host, uint64_t context, struct vr_host_guard *guard) {
    *guard = (struct vr_host_guard){.driver = host->driver, .mode = VR_CU_STREAM_CAPTURE_MODE_RELAXED};
    VR_TRY(vr_host_status(vr_cu(host->driver, ctx_get_current, &guard->previous)));
    if (guard->previous != context) {
        VR_TRY(vr_host_status(vr_cu(host->driver, ctx_set_current, context)));
        guard->changed = true;
    }
    guard->relaxed = vr_cu(host->driver, thread_exchange_capture_mode, &guard->mode) == VR_CU_SUCCESS;
    return VRAM_OK;
}

enum vram_status vr_host_enter_any(struct vram_host *host, struct vr_host_guard *guard) {
    *guard = (struct vr_host_guard){.driver = host->driver};
    VR_TRY(vr_host_status(vr_cu(host->driver, ctx_get_current, &guard->previous)));
    if (guard->previous != 0) return VRAM_OK;
    uint64_t home = 0;
    VR_TRY(vr_host_home(host, &home));
    return vr_host_enter(host, home, guard);
}

void vr_host_leave(struct vr_host_guard *guard) {
    // VR_CU_INSIST: otherwise the thread would keep the context, or the relaxed mode.
    if (guard->relaxed) VR_CU_INSIST(guard->driver, thread_exchange_capture_mode, &guard->mode);
    if (guard->changed) VR_CU_INSIST(guard->driver, ctx_set_current, guard->previous);
}

// --- captures ---------------------------------------------------------------------------------------------------------------------

// The driver's answer for the legacy default stream while another stream that it waits for is capturing.
static bool is_implicit(vr_cu_result result) { return result == VR_CU_STREAM_CAPTURE_IMPLICIT; }

enum vram_status vr_host_is_capturing(struct vram_host *host, uint64_t stream, bool *capturing, bool *silent) {
    int state = VR_CU_STREAM_CAPTURE_STATUS_NONE;
    const vr_cu_result result = vr_cu(host->driver, stream_is_capturing, stream, &state);
    if (result != VR_CU_SUCCESS && !is_implicit(result)) return VRAM_DRIVER;
    *capturing = state != VR_CU_STREAM_CAPTURE_STATUS_NONE;
    if (silent != NULL) *silent = is_implicit(result);
    return VRAM_OK;
}

uint64_t vr_host_capture_id(struct vram_host *host, uint64_t stream) {
    int state = 0;
    uint64_t id = 0, graph = 0, count = 0;
    const uint64_t *frontier = NULL;
    const vr_cu_result result = vr_cu(host->driver, stream_get_capture_info, stream, &state, &id, &graph, &frontier, &count);
    return result == VR_CU_SUCCESS && state == VR_CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
}

uint64_t vr_host_now_ns(const struct vram_host *host) {
    return host->driver->clock_ns != NULL ? host->driver->clock_ns(host->driver) : vr_os_monotonic_ns();
}
