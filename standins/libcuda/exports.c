// exports.c: every row of calls.def and every per-thread twin under its exported name.
#include <stdatomic.h>

#include "libcuda.h"

static _Atomic(struct vram_driver *) instance;

struct vr_sim *vr_libcuda_sim(void) {
    return (struct vr_sim *)(void *)atomic_load_explicit(&instance, memory_order_acquire);
}

// Makes the simulator from the variable VRAM_SIM; backed unless it says backed=0. A variable that cannot be read is an invalid value.
vr_cu_result cuInit(unsigned flags) {
    if (flags != 0) return VR_CU_INVALID_VALUE;
    if (vr_libcuda_sim() != NULL) return VR_CU_SUCCESS;
    const char *text = vr_os_getenv("VRAM_SIM");
    struct vram_sim_options options = {.backed = true};
    if (text != NULL && vr_sim_parse_into(text, &options, NULL) != VRAM_OK) return VR_CU_INVALID_VALUE;
    struct vram_driver *made, *none = NULL;
    enum vram_status status = vram_sim_create(&options, &made);
    if (status != VRAM_OK) return status == VRAM_INVALID_ARGUMENT ? VR_CU_INVALID_VALUE : VR_CU_OUT_OF_MEMORY;
    if (!atomic_compare_exchange_strong(&instance, &none, made)) vram_driver_destroy(made); // another thread was first
    return VR_CU_SUCCESS;
}

// A copy between any two places that is over when the call is.
static vr_cu_result copy_and_wait(uint64_t to, uint64_t from, uint64_t size_bytes, uint64_t stream) {
    vr_cu_result result = cuMemcpyAsync(to, from, size_bytes, stream);
    return result == VR_CU_SUCCESS ? cuStreamSynchronize(stream) : result;
}

vr_cu_result cuMemcpy(uint64_t to, uint64_t from, uint64_t size_bytes) { return copy_and_wait(to, from, size_bytes, 0); }

// clang-format off
#define WITH_SELF(...) (self, __VA_ARGS__)
#define ONLY(...)      __VA_ARGS__
#define X(member, symbol, exported, version, parameters, arguments)                                      \
    vr_cu_result exported parameters {                                                                   \
        struct vram_driver *self = atomic_load_explicit(&instance, memory_order_acquire);                \
        if (self == NULL) return VR_CU_NOT_INITIALIZED;                                                  \
        vr_cu_result result = self->calls->member WITH_SELF arguments;                                   \
        if (vr_libcuda_logs()) vr_libcuda_log(#exported, result, ONLY arguments);                        \
        return result;                                                                                   \
    }
#include "driver/calls.def"
#undef X

#define OWN(stream) ((stream) == 0 ? (uint64_t)VR_CU_STREAM_PER_THREAD : (uint64_t)(stream))
#define X(symbol, exported, version, parameters, target, arguments) \
    vr_cu_result exported parameters { return target arguments; }
#include "per_thread.def"
#undef X
// clang-format on
