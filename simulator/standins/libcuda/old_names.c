// old_names.c: earlier binary interfaces of a function that mean what the newest simulated one means, and newer ones with more to say.
#include "sim/sim_abi.h"
#include "libcuda.h"

vr_cu_result cuCtxCreate(uint64_t *context, unsigned flags, int device) { return cuCtxCreate_v2(context, flags, device); }

// Part of the multiprocessors is for programs that share a device through a server of its own (MPS), which there is none of.
vr_cu_result cuCtxCreate_v3(uint64_t *context, const void *affinities, int affinity_count, unsigned flags, int device) {
    if ((affinities == NULL) != (affinity_count == 0) || affinity_count < 0) return VR_CU_INVALID_VALUE;
    return affinity_count > 0 ? VR_CU_UNSUPPORTED_EXEC_AFFINITY : cuCtxCreate_v2(context, flags, device);
}

vr_cu_result cuCtxCreate_v4(uint64_t *context, const struct vr_cu_context_params *params, unsigned flags, int device) {
    if (params == NULL) return cuCtxCreate_v2(context, flags, device);
    if (params->graphics != NULL) return params->affinities == NULL ? VR_CU_NOT_SUPPORTED : VR_CU_INVALID_VALUE;
    return cuCtxCreate_v3(context, params->affinities, params->affinity_count, flags, device);
}

vr_cu_result cuCtxDestroy(uint64_t context) { return cuCtxDestroy_v2(context); }
vr_cu_result cuCtxPushCurrent(uint64_t context) { return cuCtxPushCurrent_v2(context); }
vr_cu_result cuCtxPopCurrent(uint64_t *context) { return cuCtxPopCurrent_v2(context); }
vr_cu_result cuDevicePrimaryCtxRelease(int device) { return cuDevicePrimaryCtxRelease_v2(device); }
vr_cu_result cuDevicePrimaryCtxReset(int device) { return cuDevicePrimaryCtxReset_v2(device); }
vr_cu_result cuDevicePrimaryCtxSetFlags(int device, unsigned flags) { return cuDevicePrimaryCtxSetFlags_v2(device, flags); }
vr_cu_result cuStreamDestroy(uint64_t stream) { return cuStreamDestroy_v2(stream); }
vr_cu_result cuEventDestroy(uint64_t event) { return cuEventDestroy_v2(event); }
vr_cu_result cuMemHostRegister(uint64_t host, uint64_t size_bytes, unsigned flags) { return cuMemHostRegister_v2(host, size_bytes, flags); }
vr_cu_result cuStreamBeginCapture(uint64_t stream) { return cuStreamBeginCapture_v2(stream, VR_CU_STREAM_CAPTURE_MODE_GLOBAL); }

vr_cu_result cuIpcOpenMemHandle(uint64_t *address, struct vr_cu_ipc_handle handle, unsigned flags) {
    return cuIpcOpenMemHandle_v2(address, handle, flags);
}

vr_cu_result cuStreamWriteValue32(uint64_t stream, uint64_t address, uint32_t value, unsigned flags) {
    return cuStreamWriteValue32_v2(stream, address, value, flags);
}

vr_cu_result cuStreamWaitValue32(uint64_t stream, uint64_t address, uint32_t value, unsigned flags) {
    return cuStreamWaitValue32_v2(stream, address, value, flags);
}

vr_cu_result cuStreamWriteValue64(uint64_t stream, uint64_t address, uint64_t value, unsigned flags) {
    return cuStreamWriteValue64_v2(stream, address, value, flags);
}

vr_cu_result cuStreamWaitValue64(uint64_t stream, uint64_t address, uint64_t value, unsigned flags) {
    return cuStreamWaitValue64_v2(stream, address, value, flags);
}

vr_cu_result cuStreamBatchMemOp(uint64_t stream, unsigned count, const struct vr_cu_mem_op *ops, unsigned flags) {
    return cuStreamBatchMemOp_v2(stream, count, ops, flags);
}
