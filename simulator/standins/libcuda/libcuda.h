// libcuda.h: the simulator as the library that foreign programs load instead of NVIDIA's. cuInit creates one instance per process.
//
// Exported functions have the names and the ABI of the driver API on a 64-bit system: handles and addresses have eight bytes, whatever type
// the caller's header uses.
#ifndef VR_STANDINS_LIBCUDA_H
#define VR_STANDINS_LIBCUDA_H

#include "sim/sim.h"
#include "vram/sim.h"

#define EXPORT __attribute__((visibility("default")))

// Returns the process's simulator, or NULL before cuInit.
struct vr_sim *vr_libcuda_sim(void);
// Call first in every simulated function: gets the simulator. Fails with NOT_INITIALIZED before cuInit, or with the injected result if
// VRAM_SIM_FAIL selects this call; *sim is written only on success.
vr_cu_result vr_libcuda_enter(struct vr_sim **sim);

// Applies CUDA_VISIBLE_DEVICES (text; NULL: not set) to the options. Returns false if no device is visible.
bool vr_libcuda_see(const char *text, struct vram_sim_options *options);

// Publishes this process's memory use to the other processes of the session. Call once per process.
void vr_libcuda_publish(struct vr_sim *sim);

// Returns whether calls are logged (call_log.c). vr_libcuda_log() writes one line; the arguments of the call follow its result.
bool vr_libcuda_logs(void);
void vr_libcuda_log(const char *name, vr_cu_result result, ...);

// Counts reads that do not return what a GPU would, if `vram sim --reads` is on, and answers them by the rules of `--value`. Returns false,
// after a line on standard error, if the rules are malformed. (reads.c)
bool vr_libcuda_watch_reads(struct vr_sim *sim);

// Gives the simulator a checker if the process runs under `vram check`. (checking.c)
void vr_libcuda_check(struct vr_sim *sim);
// Returns whether a checker runs, and a copy is between two places on devices.
bool vr_libcuda_checks_copy(uint64_t to, uint64_t from);

// Decompresses Zstandard. (unpack.c)
vr_sim_unpacking vr_libcuda_unpack_zstd;

// cuLaunchKernelEx with the per-thread default stream. (exports.c)
vr_cu_result vr_libcuda_launch_ex(const struct vr_cu_launch_config *config, uint64_t function, void **parameters, void **extra);

// Synchronous copies on the per-thread default stream. (exports.c)
vr_cu_result vr_libcuda_copy_2d_own(const struct vr_cu_memcpy2d *copy);
vr_cu_result vr_libcuda_copy_3d_own(const struct vr_cu_memcpy3d *copy);
vr_cu_result vr_libcuda_copy_peer_own(const struct vr_cu_memcpy3d *copy);
vr_cu_result vr_libcuda_line_peer_own(uint64_t to, uint64_t to_context, uint64_t from, uint64_t from_context, uint64_t size_bytes);

// clang-format off
#define X(member, symbol, exported, version, parameters, arguments) EXPORT vr_cu_result exported parameters;
#include "driver/calls.def"
#include "sim/program_calls.def"
#undef X
#define X(symbol, exported, version, parameters) EXPORT vr_cu_result exported parameters;
#include "companions.def"
#undef X
#define X(symbol, exported, version, parameters, target, arguments) EXPORT vr_cu_result exported parameters;
#include "per_thread.def"
#undef X
// clang-format on

#endif
