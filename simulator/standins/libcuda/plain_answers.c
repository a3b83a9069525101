// plain_answers.c: functions whose answer is the same whatever happened: there is no profiler, no network card and no other operating
// system.
#include "libcuda.h"

static vr_cu_result enter_driver(void) {
    struct vr_sim *sim;
    return vr_libcuda_enter(&sim);
}

// Of Windows only.
vr_cu_result cuDeviceGetLuid(char *luid, unsigned *mask, int device) {
    (void)luid;
    (void)mask;
    (void)device;
    const vr_cu_result result = enter_driver();
    return result == VR_CU_SUCCESS ? VR_CU_NOT_SUPPORTED : result;
}

// Success where no profiler listens.
vr_cu_result cuProfilerStart(void) { return enter_driver(); }
vr_cu_result cuProfilerStop(void) { return enter_driver(); }

// No network card writes to this memory.
vr_cu_result cuFlushGPUDirectRDMAWrites(int target, int scope) {
    enum { CURRENT_CONTEXT = 0, TO_OWNER = 100, TO_ALL_DEVICES = 200 };
    const vr_cu_result result = enter_driver();
    if (result != VR_CU_SUCCESS) return result;
    return target == CURRENT_CONTEXT && (scope == TO_OWNER || scope == TO_ALL_DEVICES) ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

// --- the log of errors: this driver writes none ---------------------------------------------------------------------------

vr_cu_result cuLogsRegisterCallback(const void *callback, void *argument, uint64_t *handle) {
    (void)argument;
    if (callback == NULL) return VR_CU_INVALID_VALUE;
    if (handle != NULL) *handle = (uint64_t)(uintptr_t)callback;
    return VR_CU_SUCCESS;
}

vr_cu_result cuLogsUnregisterCallback(uint64_t handle) { return handle == 0 ? VR_CU_INVALID_VALUE : VR_CU_SUCCESS; }

vr_cu_result cuLogsCurrent(unsigned *position, unsigned flags) {
    if (position == NULL || flags != 0) return VR_CU_INVALID_VALUE;
    *position = 0;
    return VR_CU_SUCCESS;
}

vr_cu_result cuLogsDumpToMemory(unsigned *position, char *text, uint64_t *size_bytes, unsigned flags) {
    if (text == NULL || size_bytes == NULL || flags != 0) return VR_CU_INVALID_VALUE;
    if (position != NULL) *position = 0;
    *size_bytes = 0;
    return VR_CU_SUCCESS;
}
