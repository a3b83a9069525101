// program_calls.c: every row of program_calls.def under its exported name.
#include "libcuda.h"

// clang-format off
#define WITH_SIM(...) (sim, __VA_ARGS__)
#define ONLY(...)     __VA_ARGS__
#define X(member, symbol, exported, version, parameters, arguments)                                      \
    vr_cu_result exported parameters {                                                                   \
        struct vr_sim *sim;                                                                              \
        vr_cu_result result = vr_libcuda_enter(&sim);                                                    \
        if (result != VR_CU_SUCCESS) return result;                                                      \
        result = vr_sim_call_##member WITH_SIM arguments;                                                \
        if (vr_libcuda_logs()) vr_libcuda_log(#exported, result, ONLY arguments);                        \
        return result;                                                                                   \
    }
#include "sim/program_calls.def"
#undef X
// clang-format on

vr_cu_result vr_libcuda_launch_ex(const struct vr_cu_launch_config *config, uint64_t function, void **parameters, void **extra) {
    if (config == NULL) return VR_CU_INVALID_VALUE;
    struct vr_cu_launch_config own = *config;
    if (own.stream == 0) own.stream = VR_CU_STREAM_PER_THREAD;
    return cuLaunchKernelEx(&own, function, parameters, extra);
}
