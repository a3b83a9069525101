// libcuda.h: the simulator as the library that foreign programs load in place of NVIDIA's. One instance per process, made by cuInit.
//
// The exported functions have the names and the binary interface of the driver API on a 64-bit system: handles and addresses are
// eight bytes, whatever the caller's header calls them.
#ifndef VR_STANDINS_LIBCUDA_H
#define VR_STANDINS_LIBCUDA_H

#include "sim/sim.h"
#include "vram/sim.h"

#define EXPORT __attribute__((visibility("default")))

// The process's simulator, or NULL before cuInit.
struct vr_sim *vr_libcuda_sim(void);
// How a function that is simulated here begins: the simulator, or why the call may not be made. NOT_INITIALIZED before cuInit; the result
// that VRAM_SIM_FAIL asks for, where this is the call to fail. *sim is written on success only.
vr_cu_result vr_libcuda_enter(struct vr_sim **sim);

// Puts what CUDA_VISIBLE_DEVICES says (NULL: not set) into the options. False: no device is seen.
bool vr_libcuda_see(const char *text, struct vram_sim_options *options);

// Lets other processes of the session see what this one uses; once per process.
void vr_libcuda_publish(struct vr_sim *sim);

// Whether calls are logged (call_log.c), and the line of one: the arguments of the call follow its result.
bool vr_libcuda_logs(void);
void vr_libcuda_log(const char *name, vr_cu_result result, ...);

// Counts reads that do not give what a GPU would have given, where `vram sim --reads` asks for it, and has them give what `--value` says.
// False, after a line on standard error, where that cannot be read. (reads.c)
bool vr_libcuda_watch_reads(struct vr_sim *sim);

// Undoes Zstandard. (unpack.c)
vr_sim_unpacking vr_libcuda_unpack_zstd;

// cuLaunchKernelEx whose default stream is the thread's. (exports.c)
vr_cu_result vr_libcuda_launch_ex(const struct vr_cu_launch_config *config, uint64_t function, void **parameters, void **extra);

// Copies that are over when the call is, on the thread's default stream. (exports.c)
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
