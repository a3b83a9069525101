// refused.c: cuGetExportTable. NVIDIA's own runtime and libraries ask it for tables that no document describes, and for a proof that the
// driver is NVIDIA's. It has no tables and gives no proof. Under `vram sim` it says who asked: that part of the program does not reach the
// simulator.
#include <stdatomic.h>
#include <stdio.h>

#include "../common/missing.h"
#include "../common/own_runtime.h"
#include "libcuda.h"

// libcudart.so.13, libcudart-faf08d9a.so.13 and the like.
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
                      "vram sim: %s is NVIDIA's CUDA runtime, which takes no driver but NVIDIA's; vram has no runtime of that name\n",
                      module);
    else
        (void)fprintf(
            stderr,
            "vram sim: %s has NVIDIA's CUDA runtime linked into it (or is a library of NVIDIA's), which takes no driver but NVIDIA's; "
            "it finds no device. %s\n",
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
