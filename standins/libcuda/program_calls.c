// program_calls.c: every row of program_calls.def under its exported name.
#include "libcuda.h"

// clang-format off
#define WITH_SIM(...) (sim, __VA_ARGS__)
#define X(member, symbol, exported, version, parameters, arguments)      \
    vr_cu_result exported parameters {                                   \
        struct vr_sim *sim = vr_libcuda_sim();                           \
        if (sim == NULL) return VR_CU_NOT_INITIALIZED;                   \
        return vr_sim_call_##member WITH_SIM arguments;                  \
    }
#include "driver/sim/program_calls.def"
#undef X
// clang-format on

vr_cu_result vr_libcuda_launch_ex(const struct vr_cu_launch_config *config, uint64_t function, void **parameters, void **extra) {
    if (config == NULL) return VR_CU_INVALID_VALUE;
    struct vr_cu_launch_config own = *config;
    if (own.stream == 0) own.stream = VR_CU_STREAM_PER_THREAD;
    return cuLaunchKernelEx(&own, function, parameters, extra);
}

vr_cu_result vr_libcuda_copy2d_and_wait(const struct vr_cu_memcpy2d *copy, uint64_t stream) {
    const vr_cu_result result = cuMemcpy2DAsync_v2(copy, stream);
    return result == VR_CU_SUCCESS ? cuStreamSynchronize(stream) : result;
}

vr_cu_result vr_libcuda_copy3d_and_wait(const struct vr_cu_memcpy3d *copy, uint64_t stream) {
    const vr_cu_result result = cuMemcpy3DAsync_v2(copy, stream);
    return result == VR_CU_SUCCESS ? cuStreamSynchronize(stream) : result;
}

vr_cu_result vr_libcuda_copy3d_peer_and_wait(const struct vr_cu_memcpy3d_peer *copy, uint64_t stream) {
    const vr_cu_result result = cuMemcpy3DPeerAsync(copy, stream);
    return result == VR_CU_SUCCESS ? cuStreamSynchronize(stream) : result;
}

vr_cu_result vr_libcuda_copy_peer_and_wait(uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context, uint64_t size_bytes,
                                           uint64_t stream) {
    const vr_cu_result result = cuMemcpyPeerAsync(to, to_context, from, from_context, size_bytes, stream);
    return result == VR_CU_SUCCESS ? cuStreamSynchronize(stream) : result;
}
