// own_stream.c: copies that are over when the call is, on the calling thread's default stream.
#include "libcuda.h"

static vr_cu_result wait_after(vr_cu_result result) {
    return result == VR_CU_SUCCESS ? cuStreamSynchronize(VR_CU_STREAM_PER_THREAD) : result;
}

vr_cu_result vr_libcuda_copy_2d_own(const struct vr_cu_memcpy2d *copy) {
    return wait_after(cuMemcpy2DAsync_v2(copy, VR_CU_STREAM_PER_THREAD));
}

vr_cu_result vr_libcuda_copy_3d_own(const struct vr_cu_memcpy3d *copy) {
    return wait_after(cuMemcpy3DAsync_v2(copy, VR_CU_STREAM_PER_THREAD));
}

vr_cu_result vr_libcuda_copy_peer_own(const struct vr_cu_memcpy3d *copy) {
    return wait_after(cuMemcpy3DPeerAsync(copy, VR_CU_STREAM_PER_THREAD));
}

vr_cu_result vr_libcuda_line_peer_own(uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context, uint64_t size_bytes) {
    return wait_after(cuMemcpyPeerAsync(to, to_context, from, from_context, size_bytes, VR_CU_STREAM_PER_THREAD));
}
