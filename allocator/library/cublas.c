// cuBLAS found at run time.
#include "library/load.h"
#include "vram/workspace.h"

// The two functions of cublas_v2.h that are called; a cublasStatus_t is an int.
typedef int (*set_stream)(void *handle, void *stream);
typedef int (*set_workspace)(void *handle, void *address, size_t size_bytes);

struct vram_cublas {
    void *library;
    set_stream set_stream;
    set_workspace set_workspace;
};

static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", NULL};

enum vram_status vram_cublas_open(const char *path, struct vram_cublas **cublas, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, cublas);
    struct vram_cublas *made = calloc(1, sizeof *made);
    if (made == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "no host memory for cuBLAS");
    void *found[2];
    const struct vr_symbol symbols[] = {{"cublasSetStream_v2", &found[0]}, {"cublasSetWorkspace_v2", &found[1]}};
    const enum vram_status status =
        vr_library_load(path, "VRAM_CUBLAS_LIBRARY", names, symbols, VR_COUNT_OF(symbols), &made->library, error);
    if (status != VRAM_OK) {
        free(made);
        return status;
    }
    // POSIX has one representation for both kinds of pointers; C has no conversion.
    memcpy(&made->set_stream, &found[0], sizeof found[0]);
    memcpy(&made->set_workspace, &found[1], sizeof found[1]);
    *cublas = made;
    return VRAM_OK;
}

void vram_cublas_close(struct vram_cublas *cublas) {
    if (cublas == NULL) return;
    vr_os_dlclose(cublas->library);
    free(cublas);
}

static enum vram_status answer(struct vram_error *error, const char *call, int result) {
    if (result == 0) return VRAM_OK;
    return vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "%s failed with cuBLAS status %d", call, result);
}

enum vram_status vram_cublas_set(struct vram_cublas *cublas, struct vram_workspaces *workspaces, uint32_t device, void *handle,
                                 uint64_t stream, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, cublas && workspaces);
    struct vram_workspace workspace;
    const enum vram_status status =
        vram_workspace_get(workspaces, device, (uint64_t)(uintptr_t)handle, stream, VRAM_WORKSPACE_CUBLAS, &workspace);
    if (status != VRAM_OK) return vr_fail(error, status, VRAM_NO_OFFSET, "no workspace for cuBLAS: %s", vram_status_text(status));
    VR_TRY(answer(error, "cublasSetStream", cublas->set_stream(handle, (void *)(uintptr_t)stream)));
    void *address = (void *)(uintptr_t)workspace.address;
    return answer(error, "cublasSetWorkspace", cublas->set_workspace(handle, address, (size_t)workspace.size_bytes));
}
