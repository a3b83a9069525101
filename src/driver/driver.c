#include "driver/driver.h"

static const struct {
    vr_cu_result result;
    const char *name;
} names[] = {
#define NAME(constant) {VR_CU_##constant, "CUDA_ERROR_" #constant},
    {VR_CU_SUCCESS, "CUDA_SUCCESS"},
    NAME(INVALID_VALUE) NAME(OUT_OF_MEMORY) NAME(NOT_INITIALIZED) NAME(DEINITIALIZED) NAME(NO_DEVICE) NAME(INVALID_DEVICE)
        NAME(INVALID_CONTEXT) NAME(PEER_ACCESS_UNSUPPORTED) NAME(PEER_ACCESS_ALREADY_ENABLED) NAME(PEER_ACCESS_NOT_ENABLED)
            NAME(OPERATING_SYSTEM) NAME(INVALID_HANDLE) NAME(NOT_FOUND) NAME(NOT_READY) NAME(ILLEGAL_ADDRESS) NAME(CONTEXT_IS_DESTROYED)
                NAME(HOST_MEMORY_ALREADY_REGISTERED) NAME(HOST_MEMORY_NOT_REGISTERED) NAME(NOT_PERMITTED) NAME(NOT_SUPPORTED) NAME(UNKNOWN)
                    NAME(ILLEGAL_STATE) NAME(STREAM_CAPTURE_UNSUPPORTED) NAME(STREAM_CAPTURE_INVALIDATED) NAME(STREAM_CAPTURE_MERGE)
                        NAME(STREAM_CAPTURE_UNMATCHED) NAME(STREAM_CAPTURE_UNJOINED) NAME(STREAM_CAPTURE_ISOLATION)
                            NAME(STREAM_CAPTURE_IMPLICIT) NAME(CAPTURED_EVENT) NAME(STREAM_CAPTURE_WRONG_THREAD) NAME(INVALID_IMAGE)
                                NAME(NO_BINARY_FOR_GPU) NAME(UNSUPPORTED_LIMIT) NAME(INVALID_PTX) NAME(FILE_NOT_FOUND)
                                    NAME(LAUNCH_OUT_OF_RESOURCES) NAME(COOPERATIVE_LAUNCH_TOO_LARGE) NAME(GRAPH_EXEC_UPDATE_FAILURE)
                                        NAME(INVALID_CLUSTER_SIZE)
#undef NAME
};

const char *vr_cu_result_name(vr_cu_result result) {
    for (size_t i = 0; i < VR_COUNT_OF(names); i++)
        if (names[i].result == result) return names[i].name;
    return "an unknown CUresult";
}

void vram_driver_destroy(struct vram_driver *driver) {
    if (driver != NULL) driver->destroy(driver);
}
