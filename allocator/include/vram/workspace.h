// vram/workspace.h: scratch memory of libraries from the allocator: workspaces of cuBLAS and cuBLASLt, plans of cuFFT and others.
//
// A matrix library needs one workspace per handle and stream. Here workspaces are ordinary blocks of the allocator, made at the first use
// of a pair and kept until they are cleared, with PyTorch's sizes. A pair used in a capture gets another workspace, in the graph's private
// pool, which returns to that pool when the capture ends. A graph therefore never knows the address of a workspace that others use or that
// could be freed, and captures need no clearing before or after them.
#ifndef VRAM_WORKSPACE_H
#define VRAM_WORKSPACE_H

#include "vram/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- sizes ------------------------------------------------------------------------------------------------------------------------
// Values of the environment variables that set the sizes; NULL: not set.
struct vram_workspace_env {
    const char *cublas;   // CUBLAS_WORKSPACE_CONFIG, such as ":4096:2:16:8": pairs of KiB and count, added up
    const char *cublaslt; // CUBLASLT_WORKSPACE_SIZE, in KiB
    const char *unified;  // TORCH_CUBLASLT_UNIFIED_WORKSPACE, "1" or "0"
};
struct vram_workspace_sizes {
    uint64_t cublas_bytes;
    uint64_t cublaslt_bytes;
    bool cublas_unreadable;   // CUBLAS_WORKSPACE_CONFIG is set but invalid; the default applies
    bool cublaslt_unreadable; // CUBLASLT_WORKSPACE_SIZE is set but invalid; the default applies
    bool cublaslt_cut;        // the size requested was larger than cuBLAS's, and TORCH_CUBLASLT_UNIFIED_WORKSPACE was not "0"
    bool shared;              // "1": cuBLASLt uses cuBLAS's workspace
};
// Gets the sizes on a device of this compute capability. env may be NULL: the environment of the process, read now. The defaults are
// PyTorch's: for cuBLAS 32 MiB on 9.0 and 8,519,680 bytes elsewhere, for cuBLASLt 1 MiB. Any thread.
VRAM_API void vram_get_workspace_sizes(const struct vram_workspace_env *env, int major, int minor, struct vram_workspace_sizes *sizes);

// --- workspaces -------------------------------------------------------------------------------------------------------------------
struct vram_workspaces;
enum vram_workspace_kind { VRAM_WORKSPACE_CUBLAS, VRAM_WORKSPACE_CUBLASLT };
struct vram_workspace {
    uint64_t address; // 0 if the size is 0
    uint64_t size_bytes;
    bool captured; // made for the capture in progress on the stream
};

// The allocator is borrowed until vram_workspaces_destroy(). The caller owns *workspaces. NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_workspaces_create(struct vram_allocator *allocator, struct vram_workspaces **workspaces);
// Frees all workspaces: handles that were given them must not be used any more. No other call may be in progress. NULL is ignored.
VRAM_API void vram_workspaces_destroy(struct vram_workspaces *workspaces);
// Gets the workspace of a handle (any number that identifies one) on a stream of `device`. Makes it if needed, and replaces it if the
// environment asks for more than its size. Returns the statuses of vram_malloc(). Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_workspace_get(struct vram_workspaces *workspaces, uint32_t device, uint64_t handle,
                                                            uint64_t stream, enum vram_workspace_kind kind,
                                                            struct vram_workspace *workspace);
// Frees all workspaces, as torch._C._cuda_clearCublasWorkspaces() does. Work queued on their streams may still use them. Returns the first
// status that is not OK, but still frees the rest.
VRAM_API VRAM_NODISCARD enum vram_status vram_workspaces_clear(struct vram_workspaces *workspaces);
// Frees the workspaces of one handle, which is about to be destroyed.
VRAM_API VRAM_NODISCARD enum vram_status vram_workspaces_forget(struct vram_workspaces *workspaces, uint64_t handle);
// Gets the number of workspaces on all devices and the bytes requested for them. Either may be NULL.
VRAM_API void vram_workspaces_count(struct vram_workspaces *workspaces, uint64_t *count, uint64_t *size_bytes);

// --- cuBLAS itself ----------------------------------------------------------------------------------------------------------------
struct vram_cublas;
// Loads cuBLAS from `path`; NULL: from the file that VRAM_CUBLAS_LIBRARY names, else libcublas.so.13, .12 or .11. The caller owns *cublas.
// UNSUPPORTED if none exists, NO_HOST_MEMORY. *error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_cublas_open(const char *path, struct vram_cublas **cublas, struct vram_error *error);
VRAM_API void vram_cublas_close(struct vram_cublas *cublas);
// Makes a cublasHandle_t work on `stream` with its workspace: calls cublasSetStream(), which removes any workspace, then
// cublasSetWorkspace(). Call it whenever the handle is fetched, as PyTorch does. Returns the statuses of vram_workspace_get(), or DRIVER if
// cuBLAS refuses. One thread per handle at a time.
VRAM_API VRAM_NODISCARD enum vram_status vram_cublas_set(struct vram_cublas *cublas, struct vram_workspaces *workspaces, uint32_t device,
                                                         void *handle, uint64_t stream, struct vram_error *error);

// --- plans -------------------------------------------------------------------------------------------------------------------------------
// Caches plans of a library (cuFFT or any other), evicting the least recently used first.
//
// A plan is made for a key: any bytes that describe the transform. Each device has a cache of its own. Plans own no device memory: their
// work area comes from the allocator while they are in use, on the stream they run on.

struct vram_plan_cache;

// Plans kept per device unless vram_plan_cache_set_max() changes it.
#define VRAM_PLAN_CACHE_DEFAULT 4096

// Functions that make and destroy plans. Called without any lock; may use the allocator, but not a plan of the same key.
struct vram_plan_functions {
    // Makes a plan. *plan is any number that identifies it, *work_bytes the work area it needs. A status other than OK goes to the caller.
    enum vram_status (*build)(uint32_t device, const void *key, size_t key_bytes, uint64_t *plan, uint64_t *work_bytes, void *user);
    void (*destroy)(uint32_t device, uint64_t plan, void *user);
    void *user;
};

// A plan in use by one thread at a time.
struct vram_plan {
    uint64_t handle;       // from build()
    uint64_t work_address; // 0 for 0 bytes
    uint64_t work_bytes;
    uint64_t stream;
    uint32_t device;
    void *entry; // internal to the cache
};

// Both functions are required; the allocator is borrowed until vram_plan_cache_destroy(). The caller owns *cache. INVALID_ARGUMENT,
// NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status
vram_plan_cache_create(struct vram_allocator *allocator, const struct vram_plan_functions *functions, struct vram_plan_cache **cache);
// Destroys all plans; no plan may be in use. NULL is ignored.
VRAM_API void vram_plan_cache_destroy(struct vram_plan_cache *cache);

// Finds the plan of a key, or builds it, with a work area for `stream`. The caller has exclusive use: another thread that acquires the same
// plan waits, so a thread must release a plan before it acquires it again. Keys are equal if their bytes are. On failure the new plan is
// not cached. INVALID_ARGUMENT for an empty or NULL key or a device beyond VRAM_MAX_DEVICES; statuses of build() and vram_malloc();
// NO_HOST_MEMORY. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_plan_acquire(struct vram_plan_cache *cache, uint32_t device, uint64_t stream, const void *key,
                                                           size_t key_bytes, struct vram_plan *plan);
// Releases a plan once its work is queued on the stream. A plan that was evicted meanwhile, or never cached (maximum 0), is destroyed now.
// Status of the work area's vram_free().
VRAM_API VRAM_NODISCARD enum vram_status vram_plan_release(struct vram_plan_cache *cache, const struct vram_plan *plan);

// Sets the maximum number of plans cached for a device; the least recently used beyond it are evicted now. 0 disables caching.
// INVALID_ARGUMENT for a negative number or a device beyond VRAM_MAX_DEVICES.
VRAM_API VRAM_NODISCARD enum vram_status vram_plan_cache_set_max(struct vram_plan_cache *cache, uint32_t device, int64_t max_plans);
// Evicts all plans of a device; plans in use go when they are released. INVALID_ARGUMENT.
VRAM_API VRAM_NODISCARD enum vram_status vram_plan_cache_clear(struct vram_plan_cache *cache, uint32_t device);

struct vram_plan_cache_stats {
    int64_t size; // cached plans
    int64_t max_size;
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions; // plans removed to make room
};
VRAM_API VRAM_NODISCARD enum vram_status vram_get_plan_cache_stats(struct vram_plan_cache *cache, uint32_t device,
                                                                   struct vram_plan_cache_stats *stats);

// --- cuFFT itself -----------------------------------------------------------------------------------------------------------------
struct vram_cufft;
// A key of cuFFT's plans: the arguments of cufftMakePlanMany64(). It has no padding bytes; unused dimensions are 0.
struct vram_cufft_key {
    int32_t rank; // 1 to 3
    int32_t type; // cufftType
    int64_t n[3];
    int64_t in_embed[3]; // in_embed[0] == 0: packed data; stride and distance are ignored
    int64_t in_stride;
    int64_t in_distance;
    int64_t out_embed[3]; // likewise
    int64_t out_stride;
    int64_t out_distance;
    int64_t batch;
};
// Loads cuFFT from `path`; NULL: from the file that VRAM_CUFFT_LIBRARY names, else libcufft.so.12, .11 or .10. The caller owns *cufft,
// which must outlive the caches that use its functions. UNSUPPORTED if none exists, NO_HOST_MEMORY. *error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_cufft_open(const char *path, struct vram_cufft **cufft, struct vram_error *error);
VRAM_API void vram_cufft_close(struct vram_cufft *cufft);
// Gives functions for a cache with keys of struct vram_cufft_key and plans that are cufftHandles without memory of their own. build returns
// DRIVER if cuFFT refuses, INVALID_ARGUMENT for another key. The device's context must be current when a plan is built.
VRAM_API void vram_cufft_functions(struct vram_cufft *cufft, struct vram_plan_functions *functions);
// Makes a plan in use run on its stream and in its work area. DRIVER if cuFFT refuses.
VRAM_API VRAM_NODISCARD enum vram_status vram_cufft_set(struct vram_cufft *cufft, const struct vram_plan *plan, struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
