// vram/workspace.h: the scratch memory of cuBLAS and cuBLASLt, from the allocator.
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
VRAM_API void vram_workspace_sizes(const struct vram_workspace_env *env, int major, int minor, struct vram_workspace_sizes *sizes);

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

#ifdef __cplusplus
}
#endif
#endif
