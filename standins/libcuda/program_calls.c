// program_calls.c: every row of program_calls.def under its exported name.
#include "libcuda.h"

// clang-format off
#define WITH_SIM(...) (sim, __VA_ARGS__)
#define X(member, symbol, exported, version, parameters, arguments)      \
    vr_cu_result exported parameters {                                   \
        struct vr_sim *sim;                                              \
        const vr_cu_result entered = vr_libcuda_enter(&sim);             \
        if (entered != VR_CU_SUCCESS) return entered;                    \
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
