// Exported functions of libcuda, and the process's simulator.
#define _GNU_SOURCE // dladdr()
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "check_stacks.h"
#include "libcuda.h"
#include "names.h"
#include "vram/sim.h"

// ---- Synchronous copies on the calling thread's default stream.

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

// ---- The rows of program_calls.def under their exported names.

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

// ---- The process's simulator, and the rows of calls.def and their per-thread variants under their exported names.

static _Atomic(struct vram_driver *) instance;

struct vr_sim *vr_libcuda_sim(void) {
    return (struct vr_sim *)(void *)atomic_load_explicit(&instance, memory_order_acquire);
}

// --- injected failure -----------------------------------------------------------------------------------------------

// VRAM_SIM_FAIL=N or N:RESULT: the Nth call of the process (from 1) fails once, with RESULT (default 2, out of memory). Tests use it to
// make each call of a program fail in turn.
static _Atomic(uint64_t) calls_until_failure; // 0: off
static vr_cu_result failure;

static __attribute__((constructor)) void read_failure(void) {
    const char *text = vr_os_getenv("VRAM_SIM_FAIL");
    if (text == NULL) return;
    char *end;
    const unsigned long long nth = strtoull(text, &end, 10);
    const long result = *end == ':' ? strtol(end + 1, NULL, 10) : VR_CU_OUT_OF_MEMORY;
    failure = result > 0 && result < 1000 ? (vr_cu_result)result : VR_CU_UNKNOWN;
    atomic_store(&calls_until_failure, nth);
}

// Reports which call failed.
static void print_failure(const void *caller) {
    Dl_info facts;
    const bool named = dladdr(caller, &facts) != 0 && facts.dli_sname != NULL;
    (void)fprintf(stderr, "vram sim: VRAM_SIM_FAIL: %s fails with %d\n", named ? facts.dli_sname : "a call", (int)failure);
}

static vr_cu_result find_injected(const void *caller) {
    if (atomic_load_explicit(&calls_until_failure, memory_order_relaxed) == 0) return VR_CU_SUCCESS;
    // Stop at 0, so that later calls of other threads do not wrap around.
    uint64_t left = atomic_load(&calls_until_failure);
    while (left != 0 && !atomic_compare_exchange_weak(&calls_until_failure, &left, left - 1)) {
    }
    if (left != 1) return VR_CU_SUCCESS;
    print_failure(caller);
    return failure;
}

// Not inlined, because its return address identifies the function.
__attribute__((noinline)) vr_cu_result vr_libcuda_enter(struct vr_sim **sim) {
    struct vr_sim *found = vr_libcuda_sim();
    if (found == NULL) return VR_CU_NOT_INITIALIZED;
    vr_cu_result result = find_injected(__builtin_return_address(0));
    if (result == VR_CU_SUCCESS) *sim = found;
    return result;
}

// --- the instance -------------------------------------------------------------------------------------------------------

static int newest_version(void) {
    int newest = 0;
    for (size_t i = 0; i < vr_libcuda_name_count; i++) newest = vr_libcuda_names[i].last > newest ? vr_libcuda_names[i].last : newest;
    return newest;
}

// Reads options from VRAM_SIM, with defaults that suit foreign programs. Returns false if they are malformed.
static bool read_sim_options(struct vram_sim_options *options) {
    const char *text = vr_os_getenv("VRAM_SIM");
    *options = (struct vram_sim_options){.backed = true, .host_thread = true, .driver_version = (uint32_t)newest_version()};
    return text == NULL || vr_sim_parse_into(text, options, NULL) == VRAM_OK;
}

// Returns the CUDA version that the driver reports, even before cuInit.
static int libcuda_version(void) {
    static _Atomic(int) known; // cached, because every lookup of a name needs it
    const struct vr_sim *sim = vr_libcuda_sim();
    if (sim != NULL) return (int)sim->options.driver_version;
    int version = atomic_load_explicit(&known, memory_order_relaxed);
    if (version != 0) return version;
    struct vram_sim_options options;
    version = read_sim_options(&options) ? (int)options.driver_version : newest_version();
    atomic_store_explicit(&known, version, memory_order_relaxed);
    return version;
}

// Creates the simulator from the variable VRAM_SIM, with bytes=all by default. A malformed variable is an invalid value.
vr_cu_result cuInit(unsigned flags) {
    if (flags != 0) return VR_CU_INVALID_VALUE;
    if (vr_libcuda_sim() != NULL) return VR_CU_SUCCESS;
    const vr_cu_result failed = find_injected((const void *)(uintptr_t)cuInit);
    if (failed != VR_CU_SUCCESS) return failed;
    struct vram_sim_options options;
    if (!read_sim_options(&options)) return VR_CU_INVALID_VALUE;
    if (!vr_libcuda_see(vr_os_getenv("CUDA_VISIBLE_DEVICES"), &options)) return VR_CU_NO_DEVICE;
    struct vram_driver *made, *none = NULL;
    enum vram_status status = vram_sim_create(&options, &made);
    if (status != VRAM_OK) return status == VRAM_INVALID_ARGUMENT ? VR_CU_INVALID_VALUE : VR_CU_OUT_OF_MEMORY;
    ((struct vr_sim *)(void *)made)->unpack_zstd = vr_libcuda_unpack_zstd;
    if (!vr_libcuda_watch_reads((struct vr_sim *)(void *)made)) {
        vram_driver_destroy(made);
        return VR_CU_INVALID_VALUE;
    }
    vr_libcuda_check((struct vr_sim *)(void *)made);
    if (atomic_compare_exchange_strong(&instance, &none, made))
        vr_libcuda_publish((struct vr_sim *)(void *)made);
    else
        vram_driver_destroy(made); // another thread was first
    return VR_CU_SUCCESS;
}

// Waits for a copy. One on the device may return before it is complete: the host knows nothing more, and other streams still have to wait
// for it. The simulated copy is complete, so the checker does not get this wait.
static vr_cu_result wait_for_copy(uint64_t to, uint64_t from, uint64_t stream) {
    if (!vr_libcuda_checks_copy(to, from)) return cuStreamSynchronize(stream);
    const bool hidden = vr_libcuda_check_hide(true);
    const vr_cu_result result = cuStreamSynchronize(stream);
    (void)vr_libcuda_check_hide(hidden);
    return result;
}

// Copies between any two places and waits for the copy.
static vr_cu_result copy_and_wait(uint64_t to, uint64_t from, uint64_t size_bytes, uint64_t stream) {
    vr_cu_result result = cuMemcpyAsync(to, from, size_bytes, stream);
    return result == VR_CU_SUCCESS ? wait_for_copy(to, from, stream) : result;
}

// Waits for a copy by a function that names the device side.
static vr_cu_result end_of_copy(vr_cu_result result, uint64_t stream) {
    return result == VR_CU_SUCCESS ? cuStreamSynchronize(stream) : result;
}
static vr_cu_result htod_and_wait(uint64_t to, const void *from, uint64_t size_bytes, uint64_t stream) {
    return end_of_copy(cuMemcpyHtoDAsync_v2(to, from, size_bytes, stream), stream);
}
static vr_cu_result dtoh_and_wait(void *to, uint64_t from, uint64_t size_bytes, uint64_t stream) {
    return end_of_copy(cuMemcpyDtoHAsync_v2(to, from, size_bytes, stream), stream);
}
static vr_cu_result dtod_and_wait(uint64_t to, uint64_t from, uint64_t size_bytes, uint64_t stream) {
    const vr_cu_result result = cuMemcpyDtoDAsync_v2(to, from, size_bytes, stream);
    return result == VR_CU_SUCCESS ? wait_for_copy(to, from, stream) : result;
}

vr_cu_result cuMemcpy(uint64_t to, uint64_t from, uint64_t size_bytes) { return copy_and_wait(to, from, size_bytes, 0); }

// clang-format off
#define WITH_SELF(...) (self, __VA_ARGS__)
#define X(member, symbol, exported, version, parameters, arguments)                                      \
    vr_cu_result exported parameters {                                                                   \
        struct vr_sim *sim;                                                                              \
        vr_cu_result result = vr_libcuda_enter(&sim);                                                    \
        if (result != VR_CU_SUCCESS) return result;                                                      \
        struct vram_driver *self = &sim->head;                                                           \
        result = self->calls->member WITH_SELF arguments;                                                \
        if (vr_libcuda_logs()) vr_libcuda_log(#exported, result, ONLY arguments);                        \
        return result;                                                                                   \
    }
// cuDriverGetVersion works without cuInit and cuCtxGetCurrent without the lock, so the functions that X generates for their rows are
// renamed.
static vr_cu_result version_of_instance(int *version);
static vr_cu_result current_of_instance(uint64_t *context);
#define cuDriverGetVersion version_of_instance
#define cuCtxGetCurrent    current_of_instance
#include "driver/calls.def"
#undef cuDriverGetVersion
#undef cuCtxGetCurrent
#undef X

vr_cu_result cuDriverGetVersion(int *version) {
    if (vr_libcuda_sim() != NULL) return version_of_instance(version);
    if (version == NULL) return VR_CU_INVALID_VALUE;
    *version = libcuda_version();
    return VR_CU_SUCCESS;
}

// Answers from the thread's cache at no cost on the clock, as NVIDIA's driver does.
vr_cu_result cuCtxGetCurrent(uint64_t *context) {
    const struct vr_sim *sim = vr_libcuda_sim();
    const bool counted = atomic_load_explicit(&calls_until_failure, memory_order_relaxed) != 0; // towards the call that fails
    if (sim != NULL && context != NULL && !counted && vr_sim_ctx_cached(sim, context)) return VR_CU_SUCCESS;
    return current_of_instance(context);
}

#define OWN(stream) ((stream) == 0 ? (uint64_t)VR_CU_STREAM_PER_THREAD : (uint64_t)(stream))
#define X(symbol, exported, version, parameters, target, arguments) \
    vr_cu_result exported parameters { return target arguments; }
#include "per_thread.def"
#undef X
// clang-format on

// ---- cuGetProcAddress. A name has one row per ABI version. The newest row that is not newer than the requested version and this driver's
// version is chosen. Variants (_ptsz, _ptds) are for programs that request the per-thread default stream.

enum { FLAG_PER_THREAD = 2, FLAGS_KNOWN = 3 };
enum { STATUS_FOUND, STATUS_NO_SYMBOL, STATUS_NO_VERSION };

static bool is_twin(const struct vr_libcuda_name *name) {
    const size_t length = strlen(name->exported);
    return length > 5 && (strcmp(name->exported + length - 5, "_ptsz") == 0 || strcmp(name->exported + length - 5, "_ptds") == 0);
}

// Returns the index of the first row of the name, or where that row would be.
static size_t first_row(const char *symbol) {
    size_t low = 0, high = vr_libcuda_name_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(vr_libcuda_names[middle].base, symbol) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Returns the best row, or NULL. *known: this driver has the name in some version.
static const struct vr_libcuda_name *find_name(const char *symbol, int version, bool per_thread, bool *known) {
    const struct vr_libcuda_name *best = NULL;
    const int newest = libcuda_version();
    for (size_t i = first_row(symbol); i < vr_libcuda_name_count && strcmp(vr_libcuda_names[i].base, symbol) == 0; i++) {
        const struct vr_libcuda_name *row = &vr_libcuda_names[i];
        if (is_twin(row) != per_thread || row->first > newest) continue;
        *known = true;
        if (row->first <= version && (best == NULL || row->first > best->first)) best = row;
    }
    return best;
}

static const struct vr_libcuda_name *find_with_flags(const char *symbol, int version, uint64_t flags, int *status) {
    bool known = false;
    const struct vr_libcuda_name *row = (flags & FLAG_PER_THREAD) != 0 ? find_name(symbol, version, true, &known) : NULL;
    if (row == NULL) row = find_name(symbol, version, false, &known);
    *status = row != NULL ? STATUS_FOUND : known ? STATUS_NO_VERSION : STATUS_NO_SYMBOL;
    return row;
}

// As CUDA documents: a missing symbol is success with a NULL pointer and the reason in *status.
vr_cu_result cuGetProcAddress_v2(const char *symbol, void **result, int version, uint64_t flags, int *status) {
    if (symbol == NULL || result == NULL || (flags & ~(uint64_t)FLAGS_KNOWN) != 0) return VR_CU_INVALID_VALUE;
    int found;
    const struct vr_libcuda_name *row = find_with_flags(symbol, version, flags, &found);
    *result = NULL;
    if (row != NULL) memcpy(result, &row->entry, sizeof *result);
    if (status != NULL) *status = found;
    return VR_CU_SUCCESS;
}

// Before CUDA 12, a missing symbol was an error.
vr_cu_result cuGetProcAddress(const char *symbol, void **result, int version, uint64_t flags) {
    const vr_cu_result asked = cuGetProcAddress_v2(symbol, result, version, flags, NULL);
    return asked == VR_CU_SUCCESS && *result == NULL ? VR_CU_NOT_FOUND : asked;
}
