// How large the workspaces of cuBLAS and cuBLASLt are (allocator.md §workspaces-and-plans).
#include "base/base.h"
#include "os/os.h"
#include "vram/workspace.h"

enum { LARGEST_NUMBER = INT32_MAX }; // PyTorch reads an int

// One or more digits at *text, which moves past them. False, with nothing moved, where there are none or the number is too large.
static bool read_number(const char **text, uint64_t *number) {
    const char *at = *text;
    uint64_t value = 0;
    if (*at < '0' || *at > '9') return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (uint64_t)(*at - '0');
        if (value > LARGEST_NUMBER) return false;
    }
    *text = at;
    *number = value;
    return true;
}

// ":KiB:count" at `text`. Moves past it where it is one.
static bool read_piece(const char **text, uint64_t *size_bytes) {
    const char *at = *text;
    uint64_t kib = 0, count = 0;
    if (*at++ != ':' || !read_number(&at, &kib) || *at++ != ':' || !read_number(&at, &count)) return false;
    *text = at;
    return vr_mul_u64(kib * VR_KIB, count, size_bytes);
}

// The sum over every piece; what stands between pieces counts for nothing. False where there is none, or the sum fits no number.
static bool read_config(const char *text, uint64_t *size_bytes) {
    uint64_t sum = 0, piece = 0;
    bool any = false;
    while (*text != '\0') {
        if (!read_piece(&text, &piece)) {
            text++;
            continue;
        }
        any = true;
        if (!vr_add_u64(sum, piece, &sum)) return false;
    }
    if (any) *size_bytes = sum;
    return any;
}

// As std::stoi() reads: blanks before, anything after. No sign: a negative size is none.
static bool read_kib(const char *text, uint64_t *size_bytes) {
    uint64_t kib = 0;
    text += strspn(text, " \t\n\v\f\r");
    if (*text == '+') text++;
    if (!read_number(&text, &kib)) return false;
    *size_bytes = kib * VR_KIB;
    return true;
}

static bool says(const char *text, const char *word) { return text != NULL && strcmp(text, word) == 0; }

void vram_workspace_sizes(const struct vram_workspace_env *env, int major, int minor, struct vram_workspace_sizes *sizes) {
    if (sizes == NULL) return;
    const struct vram_workspace_env process = {
        .cublas = vr_os_getenv("CUBLAS_WORKSPACE_CONFIG"),
        .cublaslt = vr_os_getenv("CUBLASLT_WORKSPACE_SIZE"),
        .unified = vr_os_getenv("TORCH_CUBLASLT_UNIFIED_WORKSPACE"),
    };
    if (env == NULL) env = &process;
    const bool hopper = major == 9 && minor == 0;
    struct vram_workspace_sizes found = {
        .cublas_bytes = hopper ? 32 * VR_MIB : 2 * 4 * VR_MIB + 8 * 16 * VR_KIB,
        .cublaslt_bytes = VR_MIB,
        .shared = says(env->unified, "1"),
    };
    if (env->cublas != NULL) found.cublas_unreadable = !read_config(env->cublas, &found.cublas_bytes);
    if (env->cublaslt != NULL) found.cublaslt_unreadable = !read_kib(env->cublaslt, &found.cublaslt_bytes);
    if (!says(env->unified, "0") && found.cublaslt_bytes > found.cublas_bytes) {
        found.cublaslt_bytes = found.cublas_bytes;
        found.cublaslt_cut = true;
    }
    *sizes = found;
}
