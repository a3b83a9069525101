// Constant answers: names and texts of results, refused export tables, and unsupported features.
#include <stdatomic.h>
#include <stdio.h>

#include "../common/missing.h"
#include "../common/own_runtime.h"
#include "libcuda.h"

// ---- Names and texts of all results, from the tables of facts. The texts are the runtime's, whose error numbers are the driver's.

static const struct {
    const char *kind, *name;
    int value;
} values[] = {
#define V(kind, name, value, first, last) {#kind, #name, value},
#include "../facts/cuda_values.def"
#undef V
};

static const struct {
    int result;
    const char *text;
} texts[] = {
#define T(error, text) {error, text},
#include "../facts/cudart_texts.def"
#undef T
};

static const char *result_name(vr_cu_result result) {
    for (size_t i = 0; i < VR_COUNT_OF(values); i++)
        if (values[i].value == (int)result && strcmp(values[i].kind, "CUresult") == 0) return values[i].name;
    return NULL;
}

vr_cu_result cuGetErrorName(vr_cu_result result, const char **name) {
    if (name == NULL) return VR_CU_INVALID_VALUE;
    *name = result_name(result);
    return *name == NULL ? VR_CU_INVALID_VALUE : VR_CU_SUCCESS;
}

// If the runtime has no text for a result, its name is the text.
vr_cu_result cuGetErrorString(vr_cu_result result, const char **text) {
    if (text == NULL) return VR_CU_INVALID_VALUE;
    *text = result_name(result);
    if (*text == NULL) return VR_CU_INVALID_VALUE;
    for (size_t i = 0; i < VR_COUNT_OF(texts); i++)
        if (texts[i].result == (int)result) *text = texts[i].text;
    return VR_CU_SUCCESS;
}

// ---- cuGetExportTable. NVIDIA's runtime and libraries use it to get undocumented tables, and a proof that the driver is NVIDIA's. This
// driver has neither. Under `vram sim` it reports the caller, whose part of the program does not reach the simulator.

// Matches libcudart.so.13, libcudart-faf08d9a.so.13 and the like.
static bool is_runtime(const char *module) {
    const char *slash = strrchr(module, '/');
    const char *name = slash == NULL ? module : slash + 1;
    return strncmp(name, "libcudart", sizeof "libcudart" - 1) == 0;
}

static void say_once(const char *module) {
    static atomic_flag printed = ATOMIC_FLAG_INIT;
    if (vr_os_getenv("VRAM_SIM_FRONT") == NULL || vr_own_runtime_needs_no_driver(module) || atomic_flag_test_and_set(&printed)) return;
    if (is_runtime(module))
        (void)fprintf(stderr,
                      "vram sim: %s is NVIDIA's CUDA runtime, which only accepts NVIDIA's driver; vram has no stand-in of that name\n",
                      module);
    else
        (void)fprintf(stderr,
                      "vram sim: %s contains NVIDIA's CUDA runtime (or is an NVIDIA library), which only accepts NVIDIA's driver and finds "
                      "no device. %s\n",
                      module, vr_own_runtime_advice(module));
}

vr_cu_result cuGetExportTable(const void **table, const void *id) {
    (void)table;
    (void)id;
    const void *caller = __builtin_return_address(0);
    vr_missing_count("libcuda", "cuGetExportTable", caller);
    say_once(vr_missing_module(caller));
    return VR_CU_NOT_SUPPORTED;
}

// ---- Functions with constant answers: there is no profiler, no network card and no other operating system.

static vr_cu_result enter_driver(void) {
    struct vr_sim *sim;
    return vr_libcuda_enter(&sim);
}

// Exists only on Windows.
vr_cu_result cuDeviceGetLuid(char *luid, unsigned *mask, int device) {
    (void)luid;
    (void)mask;
    (void)device;
    const vr_cu_result result = enter_driver();
    return result == VR_CU_SUCCESS ? VR_CU_NOT_SUPPORTED : result;
}

// Succeeds, as without a profiler.
vr_cu_result cuProfilerStart(void) { return enter_driver(); }
vr_cu_result cuProfilerStop(void) { return enter_driver(); }

// Does nothing, because no network card writes to this memory.
vr_cu_result cuFlushGPUDirectRDMAWrites(int target, int scope) {
    enum { CURRENT_CONTEXT = 0, TO_OWNER = 100, TO_ALL_DEVICES = 200 };
    const vr_cu_result result = enter_driver();
    if (result != VR_CU_SUCCESS) return result;
    return target == CURRENT_CONTEXT && (scope == TO_OWNER || scope == TO_ALL_DEVICES) ? VR_CU_SUCCESS : VR_CU_INVALID_VALUE;
}

// --- error logs: this driver writes none ----------------------------------------------------------------------------

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
