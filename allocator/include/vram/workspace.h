// vram/workspace.h: scratch memory of libraries, from the allocator: workspaces of cuBLAS and cuBLASLt, plans of cuFFT or any other.
//
// A library that multiplies matrices wants one workspace per handle and stream. Here they are ordinary blocks of the allocator, made at
// the first use of a pair and kept until they are cleared, with the sizes that PyTorch gives them. A pair that is used in a capture has
// another workspace for it, in the private pool of the graph; it goes back to that pool when the capture is over. So a graph never
// knows the address of a workspace that others use or that could be freed, and nothing need be cleared around captures.
#ifndef VRAM_WORKSPACE_H
#define VRAM_WORKSPACE_H

#include "vram/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- sizes ------------------------------------------------------------------------------------------------------------------------
// Values of the environment variables that decide; NULL: not set.
struct vram_workspace_env {
    const char *cublas;   // CUBLAS_WORKSPACE_CONFIG, as ":4096:2:16:8": KiB and count, summed up
    const char *cublaslt; // CUBLASLT_WORKSPACE_SIZE, in KiB
    const char *unified;  // TORCH_CUBLASLT_UNIFIED_WORKSPACE, "1" or "0"
};
struct vram_workspace_sizes {
    uint64_t cublas_bytes;
    uint64_t cublaslt_bytes;
    bool cublas_unreadable;   // CUBLAS_WORKSPACE_CONFIG is set and says nothing: the default is taken
    bool cublaslt_unreadable; // the same of CUBLASLT_WORKSPACE_SIZE
    bool cublaslt_cut;        // more was wanted than cuBLAS has, and "0" was not said
    bool shared;              // "1": cuBLASLt works in cuBLAS's workspace
};
// The sizes on a device of this compute capability. env may be NULL: the environment of the process, read now. The default for cuBLAS is
// 32 MiB on 9.0 and 8,519,680 bytes elsewhere, for cuBLASLt 1 MiB (PyTorch's). Any thread.
VRAM_API void vram_get_workspace_sizes(const struct vram_workspace_env *env, int major, int minor, struct vram_workspace_sizes *sizes);

// --- workspaces -------------------------------------------------------------------------------------------------------------------
struct vram_workspaces;
enum vram_workspace_kind { VRAM_WORKSPACE_CUBLAS, VRAM_WORKSPACE_CUBLASLT };
struct vram_workspace {
    uint64_t address; // 0 where the size is 0
    uint64_t size_bytes;
    bool captured; // made for the capture that is under way on the stream
};

// The allocator is borrowed until vram_workspaces_destroy(). *workspaces is given to the caller. NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_workspaces_create(struct vram_allocator *allocator, struct vram_workspaces **workspaces);
// Frees all workspaces: the handles that were told of them must not be used any more. No other call may be under way. NULL is ignored.
VRAM_API void vram_workspaces_destroy(struct vram_workspaces *workspaces);
// The workspace of a handle (any number that names one) on a stream of `device`; made if need be, and made anew when the environment asks
// for more than it has. Statuses of vram_malloc(). Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_workspace_get(struct vram_workspaces *workspaces, uint32_t device, uint64_t handle,
                                                            uint64_t stream, enum vram_workspace_kind kind,
                                                            struct vram_workspace *workspace);
// Frees all of them, as torch._C._cuda_clearCublasWorkspaces() does. Work queued on their streams may still use them. The first status
// that is not OK; the rest is freed all the same.
VRAM_API VRAM_NODISCARD enum vram_status vram_workspaces_clear(struct vram_workspaces *workspaces);
// Frees those of one handle: before it is destroyed.
VRAM_API VRAM_NODISCARD enum vram_status vram_workspaces_forget(struct vram_workspaces *workspaces, uint64_t handle);
// How many there are on all devices, and the bytes they were asked for with. Each may be NULL.
VRAM_API void vram_workspaces_count(struct vram_workspaces *workspaces, uint64_t *count, uint64_t *size_bytes);

// --- cuBLAS itself ----------------------------------------------------------------------------------------------------------------
struct vram_cublas;
// Loads cuBLAS: `path`, or for NULL what VRAM_CUBLAS_LIBRARY names, or libcublas.so.13, .12, .11. *cublas is given to the caller.
// UNSUPPORTED where there is none, NO_HOST_MEMORY. *error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_cublas_open(const char *path, struct vram_cublas **cublas, struct vram_error *error);
VRAM_API void vram_cublas_close(struct vram_cublas *cublas);
// Makes a cublasHandle_t work on `stream` with its workspace: cublasSetStream(), which takes any workspace away, then
// cublasSetWorkspace(). To be called whenever the handle is fetched, as PyTorch does. Statuses of vram_workspace_get(), or DRIVER where
// cuBLAS refuses. One thread per handle at a time.
VRAM_API VRAM_NODISCARD enum vram_status vram_cublas_set(struct vram_cublas *cublas, struct vram_workspaces *workspaces, uint32_t device,
                                                         void *handle, uint64_t stream, struct vram_error *error);

// --- plans -------------------------------------------------------------------------------------------------------------------------------
// Plans of a library (cuFFT's, or any), the least recently used given up first.
//
// A plan is made for a key, any bytes that describe the transform. Each device has a cache of its own. Plans hold no device memory of
// theirs: their work area comes from the allocator for as long as they are in use, on the stream they run on.

struct vram_plan_cache;

// Plans held per device until vram_plan_cache_set_max() says otherwise.
#define VRAM_PLAN_CACHE_DEFAULT 4096

// What the cache is made of. Called without any lock; may use the allocator, but no plan of the same key.
struct vram_plan_functions {
    // Makes a plan. *plan is any number that names it, *work_bytes what it needs to run. Another status is passed on to the caller.
    enum vram_status (*build)(uint32_t device, const void *key, size_t key_bytes, uint64_t *plan, uint64_t *work_bytes, void *user);
    void (*destroy)(uint32_t device, uint64_t plan, void *user);
    void *user;
};

// A plan in use, by one thread at a time.
struct vram_plan {
    uint64_t handle;       // of build()
    uint64_t work_address; // 0 for 0 bytes
    uint64_t work_bytes;
    uint64_t stream;
    uint32_t device;
    void *entry; // the cache's own
};

// Both functions are needed; the allocator is borrowed until vram_plan_cache_destroy(). *cache is given to the caller.
// INVALID_ARGUMENT, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status
vram_plan_cache_create(struct vram_allocator *allocator, const struct vram_plan_functions *functions, struct vram_plan_cache **cache);
// Destroys all plans; none may be in use. NULL is ignored.
VRAM_API void vram_plan_cache_destroy(struct vram_plan_cache *cache);

// Gets the plan of a key, or builds it, with a work area for `stream`. While it is in use nobody else has it: a thread that asks for the
// same plan waits (so a thread must not ask twice before it gave it back). Keys are equal when their bytes are. A failure leaves the cache
// without the new plan. INVALID_ARGUMENT for an empty or NULL key or a device beyond VRAM_MAX_DEVICES; statuses of build() and of
// vram_malloc(); NO_HOST_MEMORY. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_plan_acquire(struct vram_plan_cache *cache, uint32_t device, uint64_t stream, const void *key,
                                                           size_t key_bytes, struct vram_plan *plan);
// Gives it back once its work is queued on the stream. A plan that was given up in between, or was never held (maximum 0), is
// destroyed now. Status of the work area's vram_free().
VRAM_API VRAM_NODISCARD enum vram_status vram_plan_release(struct vram_plan_cache *cache, const struct vram_plan *plan);

// The greatest number of plans held for a device; the least recently used beyond it are given up now. 0: none is held.
// INVALID_ARGUMENT for a negative number or a device beyond VRAM_MAX_DEVICES.
VRAM_API VRAM_NODISCARD enum vram_status vram_plan_cache_set_max(struct vram_plan_cache *cache, uint32_t device, int64_t max_plans);
// Gives up all plans of a device; those in use when they are given back. INVALID_ARGUMENT.
VRAM_API VRAM_NODISCARD enum vram_status vram_plan_cache_clear(struct vram_plan_cache *cache, uint32_t device);

struct vram_plan_cache_stats {
    int64_t size; // plans held
    int64_t max_size;
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions; // given up to make room
};
VRAM_API VRAM_NODISCARD enum vram_status vram_get_plan_cache_stats(struct vram_plan_cache *cache, uint32_t device,
                                                                   struct vram_plan_cache_stats *stats);

// --- cuFFT itself -----------------------------------------------------------------------------------------------------------------
struct vram_cufft;
// A key for cuFFT's plans: the arguments of cufftMakePlanMany64(). No byte of it is padding; unused dimensions are 0.
struct vram_cufft_key {
    int32_t rank; // 1 to 3
    int32_t type; // cufftType
    int64_t n[3];
    int64_t in_embed[3]; // in_embed[0] == 0: packed data, and stride and distance count for nothing
    int64_t in_stride;
    int64_t in_distance;
    int64_t out_embed[3]; // the same
    int64_t out_stride;
    int64_t out_distance;
    int64_t batch;
};
// Loads cuFFT: `path`, or for NULL what VRAM_CUFFT_LIBRARY names, or libcufft.so.12, .11, .10. *cufft is given to the caller and must
// outlive caches that use its functions. UNSUPPORTED where there is none, NO_HOST_MEMORY. *error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_cufft_open(const char *path, struct vram_cufft **cufft, struct vram_error *error);
VRAM_API void vram_cufft_close(struct vram_cufft *cufft);
// Functions for a cache whose keys are struct vram_cufft_key and whose plans are cufftHandles without memory of their own. build: DRIVER
// where cuFFT refuses, INVALID_ARGUMENT for what is no such key. The device's context must be current when a plan is built.
VRAM_API void vram_cufft_functions(struct vram_cufft *cufft, struct vram_plan_functions *functions);
// Makes a plan in use run on its stream and in its work area. DRIVER where cuFFT refuses.
VRAM_API VRAM_NODISCARD enum vram_status vram_cufft_set(struct vram_cufft *cufft, const struct vram_plan *plan, struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
