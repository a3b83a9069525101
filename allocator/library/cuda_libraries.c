#include "base/base.h"
#include "os/os.h"
#include "vram/workspace.h"

// A symbol, and the place for its address.
struct vr_symbol {
    const char *name;
    void **address;
};

static void *open_one(const char *path, const char *variable, const char *const *names, const char **reason) {
    if (path == NULL) path = vr_os_getenv(variable);
    if (path != NULL) return vr_os_dlopen(path, reason);
    void *found = NULL;
    for (; found == NULL && *names != NULL; names++) found = vr_os_dlopen(*names, reason);
    return found;
}

// Loads `path`; for NULL the library that the environment variable names, else the first of the names (a list that ends with NULL) that
// exists. Finds all symbols in it. UNSUPPORTED, with nothing loaded, if one is missing. Close *library with vr_os_dlclose().
static enum vram_status load_library(const char *path, const char *variable, const char *const *names, const struct vr_symbol *symbols,
                                     size_t count, void **library, struct vram_error *error) {
    const char *reason = "the name of the function is NULL";
    void *found = open_one(path, variable, names, &reason);
    if (found == NULL) return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "cannot load the library: %s", reason);
    for (size_t i = 0; i < count; i++) {
        *symbols[i].address = vr_os_dlsym(found, symbols[i].name);
        if (*symbols[i].address != NULL) continue;
        vr_os_dlclose(found);
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "the library lacks %s", symbols[i].name);
    }
    *library = found;
    return VRAM_OK;
}

// cuBLAS, found at run time.

// The two functions of cublas_v2.h that are used; a cublasStatus_t is an int.
typedef int (*set_stream)(void *handle, void *stream);
typedef int (*set_workspace)(void *handle, void *address, size_t size_bytes);

struct vram_cublas {
    void *library;
    set_stream set_stream;
    set_workspace set_workspace;
};

static const char *const cublas_names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", NULL};

enum vram_status vram_cublas_open(const char *path, struct vram_cublas **cublas, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, cublas);
    struct vram_cublas *made = calloc(1, sizeof *made);
    if (made == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for cuBLAS");
    void *found[2];
    const struct vr_symbol symbols[] = {{"cublasSetStream_v2", &found[0]}, {"cublasSetWorkspace_v2", &found[1]}};
    const enum vram_status status =
        load_library(path, "VRAM_CUBLAS_LIBRARY", cublas_names, symbols, VR_COUNT_OF(symbols), &made->library, error);
    if (status != VRAM_OK) {
        free(made);
        return status;
    }
    // POSIX represents both kinds of pointers alike; C has no conversion.
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

static enum vram_status cublas_answer(struct vram_error *error, const char *call, int result) {
    if (result == 0) return VRAM_OK;
    return vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "%s failed with cuBLAS status %d", call, result);
}

enum vram_status vram_cublas_set(struct vram_cublas *cublas, struct vram_workspaces *workspaces, uint32_t device, void *handle,
                                 uint64_t stream, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, cublas && workspaces);
    struct vram_workspace workspace;
    const enum vram_status status =
        vram_workspace_get(workspaces, device, (uint64_t)(uintptr_t)handle, stream, VRAM_WORKSPACE_CUBLAS, &workspace);
    if (status != VRAM_OK)
        return vr_fail(error, status, VRAM_NO_OFFSET, "cannot allocate a workspace for cuBLAS: %s", vram_status_text(status));
    VR_TRY(cublas_answer(error, "cublasSetStream", cublas->set_stream(handle, (void *)(uintptr_t)stream)));
    void *address = (void *)(uintptr_t)workspace.address;
    return cublas_answer(error, "cublasSetWorkspace", cublas->set_workspace(handle, address, (size_t)workspace.size_bytes));
}

// cuFFT, found at run time, as the functions of a plan cache.

// The functions of cufft.h that are used; a cufftHandle, a cufftType and a cufftResult are ints.
#define CUFFT_CALLS(X)                                                                                                                     \
    X(create, cufftCreate, (int *plan))                                                                                                    \
    X(destroy, cufftDestroy, (int plan))                                                                                                   \
    X(set_auto_allocation, cufftSetAutoAllocation, (int plan, int on))                                                                     \
    X(make_plan_many, cufftMakePlanMany64,                                                                                                 \
      (int plan, int rank, long long *n, long long *in_embed, long long in_stride, long long in_distance, long long *out_embed,            \
       long long out_stride, long long out_distance, int type, long long batch, size_t *work_bytes))                                       \
    X(set_stream, cufftSetStream, (int plan, void *stream))                                                                                \
    X(set_work_area, cufftSetWorkArea, (int plan, void *address))

struct vram_cufft {
    void *library;
#define X(member, symbol, parameters) int(*member) parameters;
    CUFFT_CALLS(X)
#undef X
};

#define X(member, symbol, parameters) CALL_##member,
enum { CUFFT_CALLS(X) CUFFT_CALL_COUNT };
#undef X

static const char *const cufft_names[] = {"libcufft.so.12", "libcufft.so.11", "libcufft.so.10", NULL};

enum vram_status vram_cufft_open(const char *path, struct vram_cufft **cufft, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, cufft);
    struct vram_cufft *made = calloc(1, sizeof *made);
    if (made == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for cuFFT");
    void *found[CUFFT_CALL_COUNT];
    const struct vr_symbol symbols[] = {
#define X(member, symbol, parameters) {#symbol, &found[CALL_##member]},
        CUFFT_CALLS(X)
#undef X
    };
    const enum vram_status status = load_library(path, "VRAM_CUFFT_LIBRARY", cufft_names, symbols, CUFFT_CALL_COUNT, &made->library, error);
    if (status != VRAM_OK) {
        free(made);
        return status;
    }
    // POSIX represents both kinds of pointers alike; C has no conversion.
#define X(member, symbol, parameters) memcpy(&made->member, &found[CALL_##member], sizeof found[0]);
    CUFFT_CALLS(X)
#undef X
    *cufft = made;
    return VRAM_OK;
}

void vram_cufft_close(struct vram_cufft *cufft) {
    if (cufft == NULL) return;
    vr_os_dlclose(cufft->library);
    free(cufft);
}

// --- plans --------------------------------------------------------------------------------------------------------------------------

static void copy_numbers(long long to[3], const int64_t from[3]) {
    for (int i = 0; i < 3; i++) to[i] = from[i];
}

static int make_plan(const struct vram_cufft *cufft, int plan, const struct vram_cufft_key *key, size_t *work_bytes) {
    long long n[3], in[3], out[3];
    copy_numbers(n, key->n);
    copy_numbers(in, key->in_embed);
    copy_numbers(out, key->out_embed);
    return cufft->make_plan_many(plan, key->rank, n, in[0] == 0 ? NULL : in, key->in_stride, key->in_distance, out[0] == 0 ? NULL : out,
                                 key->out_stride, key->out_distance, key->type, key->batch, work_bytes);
}

static enum vram_status cufft_build(uint32_t device, const void *bytes, size_t key_bytes, uint64_t *plan, uint64_t *work_bytes,
                                    void *user) {
    (void)device;
    const struct vram_cufft *cufft = user;
    struct vram_cufft_key key;
    if (key_bytes != sizeof key) return VRAM_INVALID_ARGUMENT;
    memcpy(&key, bytes, sizeof key);
    if (key.rank < 1 || key.rank > 3) return VRAM_INVALID_ARGUMENT;
    int made = 0;
    size_t needed = 0;
    if (cufft->create(&made) != 0) return VRAM_DRIVER;
    if (cufft->set_auto_allocation(made, 0) != 0 || make_plan(cufft, made, &key, &needed) != 0) {
        (void)cufft->destroy(made);
        return VRAM_DRIVER;
    }
    *plan = (uint64_t)(unsigned)made;
    *work_bytes = needed;
    return VRAM_OK;
}

static void end_plan(uint32_t device, uint64_t plan, void *user) {
    (void)device;
    const struct vram_cufft *cufft = user;
    (void)cufft->destroy((int)plan); // a plan that cuFFT refuses is leaked
}

void vram_cufft_functions(struct vram_cufft *cufft, struct vram_plan_functions *functions) {
    if (cufft == NULL || functions == NULL) return;
    *functions = (struct vram_plan_functions){.build = cufft_build, .destroy = end_plan, .user = cufft};
}

static enum vram_status cufft_answer(struct vram_error *error, const char *call, int result) {
    if (result == 0) return VRAM_OK;
    return vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "%s failed with cuFFT result %d", call, result);
}

enum vram_status vram_cufft_set(struct vram_cufft *cufft, const struct vram_plan *plan, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, cufft && plan);
    const int handle = (int)plan->handle;
    VR_TRY(cufft_answer(error, "cufftSetStream", cufft->set_stream(handle, (void *)(uintptr_t)plan->stream)));
    return cufft_answer(error, "cufftSetWorkArea", cufft->set_work_area(handle, (void *)(uintptr_t)plan->work_address));
}
